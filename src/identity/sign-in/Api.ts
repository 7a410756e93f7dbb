import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Uuid } from "../../platform/bounds/Text.ts"
import {
  errorSchema,
  errorSchemas,
  OriginNotTrusted,
  RateLimitExceeded,
  ResourceNotFound,
  ServiceUnavailable,
  SessionInvalid,
  WorkspaceAccessRequired
} from "../../platform/errors/Errors.ts"
import { OrganizationId } from "../../platform/kit/Ids.ts"
import { CreatedAt, described, ExpiresAt, NoQuery, strict, withStatus } from "../../platform/kit/Request.ts"
import { RedemptionLimit, SignInLinkLimit } from "../Authentication.ts"
import { Permission } from "../keys/Permissions.ts"
import { OrganizationNameShown } from "../organizations/OrganizationName.ts"
import { Email, MemberRole, OneTimeToken, WorkspaceEnvironment } from "../Schemas.ts"
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

const SessionList = Schema.Struct({
  data: described(Schema.Array(SessionShown), "The most recently used first")
}).annotations({ identifier: "SessionList" })

const SessionPath = Schema.Struct({ id: Uuid.annotations({ description: "The session's id (UUID)" }) })

const SelectWorkspace = strict(
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

export const RequestSignInLink = strict(
  Schema.Struct({ email: Email }).annotations({ identifier: "RequestSignInLink" })
)

/** The answer to a request for a sign-in link: the same for every address. */
export const SignInLinkRequested = Schema.Struct({
  sent: described(Schema.Literal(true), "Always true, whether or not the address is known"),
  toLog: described(
    Schema.Boolean,
    "Whether links are written to the service's log, as at a local start without a mail server"
  )
}).annotations({ identifier: "SignInLinkRequested" })

export const RedeemToken = strict(Schema.Struct({ token: OneTimeToken }).annotations({ identifier: "RedeemToken" }))

export const SignInPreview = Schema.Struct({
  email: described(Schema.String, "The address that the link was mailed to"),
  expiresAt: ExpiresAt
}).annotations({ identifier: "SignInPreview" })

export const LinkPage = HttpApiSchema.Text({ contentType: "text/html" })

/** The page that a mailed link opens; nothing is redeemed by opening it. */
export const linkPageEndpoint = (path: `/${string}`, summary: string, description: string) =>
  HttpApiEndpoint.get("page", path)
    .addSuccess(LinkPage)
    .annotate(OpenApi.Summary, summary)
    .annotate(OpenApi.Description, description)

/** An operation on a mailed link's token, which is the only credential. */
export const redemption = <const Name extends string>(
  name: Name,
  path: `/${string}`,
  summary: string,
  description: string
) =>
  HttpApiEndpoint.post(name, path)
    .setUrlParams(NoQuery)
    .setPayload(RedeemToken)
    .addError(errorSchemas(SessionInvalid, OriginNotTrusted, RateLimitExceeded))
    .middleware(RedemptionLimit)
    .annotate(OpenApi.Summary, summary)
    .annotate(OpenApi.Description, description)

/** Signing in by e-mail link (the contract leaves the session's login open). Needs no credential. */
export class SignInApi extends HttpApiGroup.make("signIn")
  .add(
    HttpApiEndpoint.post("requestLink", "/identity/sign-in-links")
      .setUrlParams(NoQuery)
      .setPayload(RequestSignInLink)
      .addSuccess(withStatus(202, SignInLinkRequested))
      .addError(errorSchema(RateLimitExceeded))
      .middleware(SignInLinkLimit)
      .annotate(OpenApi.Summary, "Ask for a sign-in link by e-mail")
      .annotate(
        OpenApi.Description,
        "The answer is the same whether or not the person exists; a new person is created at the first sign-in. At most 5 links to one mailbox in 15 minutes and 30 in a day for one client's network, and twice as many for all together."
      )
  )
  .add(
    linkPageEndpoint(
      "/identity/sign-in",
      "The page that a sign-in link opens",
      "Opening it redeems nothing: the page shows whom the link signs in, and its button sends the token, which follows the link's #, to `POST /identity/session`. If the console is served, the answer is 303 and leads to its page, which does the same."
    )
  )
  .add(
    redemption(
      "preview",
      "/identity/sign-in/preview",
      "Read whom a sign-in link is for",
      "Does not use the link: its page shows this before the person signs in."
    ).addSuccess(SignInPreview)
  )
  .add(
    redemption(
      "redeem",
      "/identity/session",
      "Sign in with a link's token; sets the session cookie",
      "A token works once, within 15 minutes, and ends the person's other open sign-in links. An `Origin` may be absent here; if it is sent, it must be a trusted one."
    ).addSuccess(SignedIn)
  )
  .addError(errorSchema(ServiceUnavailable))
  .annotate(OpenApi.Description, "Signing in by e-mail link") {}
