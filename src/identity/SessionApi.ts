import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { errorSchema, ServiceUnavailable, WorkspaceAccessRequired } from "../Errors.ts"
import { OrganizationId } from "../kit/Ids.ts"
import { NoQuery, strict } from "../kit/Request.ts"
import { SessionAuthentication } from "./Authentication.ts"
import { MemberRole, WorkspaceEnvironment } from "./Schemas.ts"

/** A session, as its person sees it. */
export const SignedIn = Schema.Struct({
  person: Schema.Struct({ id: Schema.UUID, email: Schema.String }),
  organization: Schema.NullOr(Schema.Struct({ id: OrganizationId, name: Schema.String, role: MemberRole })).annotations(
    { description: "Null for a person without an organization" }
  ),
  environment: WorkspaceEnvironment.annotations({ description: "The selected workspace's environment" }),
  workspaces: Schema.Array(Schema.Struct({ environment: WorkspaceEnvironment })).annotations({
    description: "The workspaces that the person may enter"
  }),
  expiresAt: Schema.Date.annotations({ description: "12 hours after the last request" })
}).annotations({ identifier: "Session" })
export type SignedIn = typeof SignedIn.Type

/** What the OpenAPI document says of operations that take a person's session and no key. */
export const bySession = { security: [{ session: [] }] }

/** Body of `PUT /identity/session/workspace`. */
export const SelectWorkspace = strict(
  Schema.Struct({ environment: WorkspaceEnvironment }).annotations({ identifier: "SelectWorkspace" })
)

/** The session of a signed-in person, and the workspace that it works in (contract, Authentication, rules 2 and 8). */
export class SessionApi extends HttpApiGroup.make("session")
  .add(
    HttpApiEndpoint.get("get", "/identity/session")
      .setUrlParams(NoQuery)
      .addSuccess(SignedIn)
      .annotate(OpenApi.Summary, "Read who is signed in, and where")
  )
  .add(
    HttpApiEndpoint.del("end", "/identity/session")
      .setUrlParams(NoQuery)
      .annotate(OpenApi.Summary, "Sign out")
      .annotate(OpenApi.Description, "The session ends at once, and its cookie is removed.")
  )
  .add(
    HttpApiEndpoint.put("selectWorkspace", "/identity/session/workspace")
      .setUrlParams(NoQuery)
      .setPayload(SelectWorkspace)
      .addSuccess(SignedIn)
      .addError(errorSchema(WorkspaceAccessRequired))
      .annotate(OpenApi.Summary, "Select the workspace to work in")
  )
  .addError(errorSchema(ServiceUnavailable))
  .middleware(SessionAuthentication)
  .annotateEndpoints(OpenApi.Override, bySession)
  .annotate(OpenApi.Description, "The session of a signed-in person") {}
