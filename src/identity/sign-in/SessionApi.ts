import { OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Uuid } from "../../platform/bounds/Text.ts"
import {
  errorSchema,
  ResourceNotFound,
  ServiceUnavailable,
  WorkspaceAccessRequired
} from "../../platform/errors/Errors.ts"
import { OrganizationId } from "../../platform/kit/Ids.ts"
import { CreatedAt, described, ExpiresAt, strict } from "../../platform/kit/Request.ts"
import { Permission } from "../keys/Permissions.ts"
import { OrganizationNameShown } from "../organizations/OrganizationName.ts"
import { MemberRole, WorkspaceEnvironment } from "../Schemas.ts"
import { sessionDelete, sessionGet, sessionGroup, sessionPut } from "../SessionEndpoints.ts"

export const SignedIn = Schema.Struct({
  person: described(
    Schema.Struct({
      id: described(Schema.UUID, "The person's UUID"),
      email: described(Schema.String, "The address that links are mailed to")
    }).annotations({ identifier: "SessionPerson" }),
    "Who is signed in, and the address that links were mailed to"
  ),
  organization: described(
    Schema.NullOr(
      Schema.Struct({ id: OrganizationId, name: OrganizationNameShown, role: MemberRole }).annotations({
        identifier: "SessionOrganization"
      })
    ),
    "Null for a person without an organization"
  ),
  environment: described(
    WorkspaceEnvironment,
    "The environment that the request names, or else the selected workspace's"
  ),
  workspaces: described(
    Schema.Array(
      Schema.Struct({
        environment: WorkspaceEnvironment,
        permissions: Schema.Array(Permission).annotations({
          description: "The person's permissions there, as keys have them; `/identity` checks the role instead"
        })
      }).annotations({ identifier: "SessionWorkspacesItem" })
    ),
    "The workspaces that the person may enter"
  ),
  expiresAt: described(Schema.Date, "12 hours after the last request, and at most 30 days after signing in")
}).annotations({ identifier: "Session" })
export type SignedIn = typeof SignedIn.Type

export const SessionShown = Schema.Struct({
  id: described(Schema.UUID, "The id by which it can be ended"),
  current: described(Schema.Boolean, "Whether it is the session of this request"),
  environment: WorkspaceEnvironment,
  createdAt: CreatedAt,
  lastUsedAt: described(Schema.Date, "When it was used last, to the minute, in ISO 8601"),
  expiresAt: ExpiresAt,
  client: Schema.NullOr(Schema.String).annotations({
    description: "The browser and system that signed in; null if the service does not know the browser",
    examples: ["Firefox on Linux"]
  })
}).annotations({ identifier: "SessionShown" })

export const SessionList = Schema.Struct({
  data: described(Schema.Array(SessionShown), "The most recently used first")
}).annotations({ identifier: "SessionList" })

const SessionPath = Schema.Struct({ id: Uuid.annotations({ description: "The session's id (UUID)" }) })

export const SelectWorkspace = strict(
  Schema.Struct({ environment: WorkspaceEnvironment }).annotations({ identifier: "SelectWorkspace" })
)

export class SessionApi extends sessionGroup(
  "session",
  "The session of a signed-in person",
  errorSchema(ServiceUnavailable)
)
  .add(sessionGet("get", "/identity/session", "Read who is signed in, and where").addSuccess(SignedIn))
  .add(
    sessionDelete("end", "/identity/session", "Sign out").annotate(
      OpenApi.Description,
      "The session ends at once, and its cookie is removed."
    )
  )
  .add(
    sessionPut("selectWorkspace", "/identity/session/workspace", "Select the workspace to work in")
      .setPayload(SelectWorkspace)
      .addSuccess(SignedIn)
      .addError(errorSchema(WorkspaceAccessRequired))
  )
  .add(
    sessionGet("list", "/identity/sessions", "List your sessions, most recently used first")
      .addSuccess(SessionList)
      .annotate(
        OpenApi.Description,
        "Sessions that have not ended, at most 100: beyond that, a new sign-in ends the least recently used one."
      )
  )
  .add(
    sessionDelete("endAll", "/identity/sessions", "Sign out everywhere").annotate(
      OpenApi.Description,
      "Ends all of the person's sessions, including this one, and their open sign-in links."
    )
  )
  .add(
    sessionDelete("endOne", "/identity/sessions/:id", "End one of your sessions")
      .setPath(SessionPath)
      .addError(errorSchema(ResourceNotFound))
  ) {}
