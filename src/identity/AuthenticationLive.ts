import { type HttpMethod, HttpRouter, HttpServerRequest } from "@effect/platform"
import { Effect, Layer, Redacted, Schedule, Schema } from "effect"
import { takenBy } from "../platform/bounds/Rules.ts"
import {
  ApiKeyInvalid,
  AuthenticationRequired,
  EndpointManagementForbidden,
  OrganizationAccessDenied,
  OriginNotTrusted,
  PermissionDenied,
  SessionInvalid,
  ValidationFailed,
  WorkspaceAccessRequired
} from "../platform/errors/Errors.ts"
import type { Environment } from "../platform/kit/Environment.ts"
import { OrganizationId } from "../platform/kit/Ids.ts"
import { annotateSpan } from "../platform/telemetry/Spans.ts"
import { refuseBody } from "../server/Body.ts"
import {
  Authentication,
  KeyAuthentication,
  RedemptionLimit,
  SessionAuthentication,
  SignInLinkLimit,
  sessionCookie,
  workspaceHeader
} from "./Authentication.ts"
import type { TokensToTake } from "./keys/CredentialLimitsStatements.ts"
import { permissionsOf } from "./keys/GrantPolicy.ts"
import { Keys, maxKeyLength, presentedKey } from "./keys/Keys.ts"
import { isWebhookPermission, type Permission } from "./keys/Permissions.ts"
import type { PrincipalShape, Session } from "./Principal.ts"
import { RequestAdmission } from "./RequestAdmission.ts"
import { sessionCookiesOf, setSessionCookie } from "./sign-in/SessionCookie.ts"
import { isToken, Sessions, tokenHash } from "./sign-in/Sessions.ts"

export interface AuthenticationOptions {
  readonly permissionOf: (method: string, routePath: string) => Permission | undefined
  readonly takesBody: (method: string, routePath: string) => boolean
  /** Origins whose pages may make changes for a signed-in person. */
  readonly trustedOrigins: ReadonlySet<string>
}

const isUuid = Schema.is(Schema.UUID)

/** Requires the credential's organization in the path; an unknown organization gets the same error. */
const checkOrganization = (
  principal: PrincipalShape,
  { params }: HttpRouter.RouteContext
): Effect.Effect<void, OrganizationAccessDenied | ValidationFailed> => {
  const organizationId = params["organizationId"]
  if (!isUuid(organizationId)) {
    return new ValidationFailed({
      message: `\`organizationId\` in the path ${takenBy(OrganizationId.ast).words}.`,
      fields: ["organizationId"]
    })
  }
  return organizationId.toLowerCase() === principal.organizationId ? Effect.void : new OrganizationAccessDenied()
}

const touchInterval = "30 seconds"

/** Collects used keys and records them periodically, outside the requests. */
const makeUseRecorder = Effect.gen(function* () {
  const keys = yield* Keys
  const used = new Set<string>()
  const flush = Effect.suspend(() => {
    const ids = [...used]
    used.clear()
    return ids.length === 0 ? Effect.void : keys.touch(ids)
  }).pipe(
    Effect.catchAll((error) => Effect.logDebug("Times of use of keys were not recorded", error)),
    Effect.withTracerEnabled(false)
  )
  yield* Effect.acquireRelease(
    flush.pipe(Effect.repeat(Schedule.spaced(touchInterval)), Effect.interruptible, Effect.forkDaemon),
    (fiber) => Effect.zipRight(fiber.interruptAsFork(fiber.id()), flush)
  )
  return (id: string) => used.add(id)
})

const twoCookies = `The request has more than one cookie named ${sessionCookie}, of which only one can be the session's.`

/** Admits a session within its rate limit; renews the cookie when the session is extended. */
export const makeSessionAdmission = Effect.gen(function* () {
  const sessions = yield* Sessions
  const { admit, policies, refuse } = yield* RequestAdmission
  const invalid = () => new SessionInvalid()
  return Effect.gen(function* () {
    const [text = "", ...others] = sessionCookiesOf(yield* HttpServerRequest.HttpServerRequest)
    if (others.length > 0) {
      return yield* refuse(new SessionInvalid({ message: twoCookies }))
    }
    if (text === "") {
      return yield* new AuthenticationRequired()
    }
    if (!isToken(text)) {
      return yield* refuse(invalid())
    }
    const token = Redacted.make(text)
    const ask = (tokens: TokensToTake) =>
      Effect.tap(sessions.admit(token, policies, tokens), ({ extended }) =>
        extended ? setSessionCookie(token) : Effect.void
      )
    const name = `session:${tokenHash(token).toString("base64url")}`
    const { session } = yield* admit(name, ask, invalid, sessions.exists(token))
    return session
  })
})

/** Admits a request's key within its rate limit, as a caller in the key's organization. */
export const makeKeyAdmission = Effect.gen(function* () {
  const keys = yield* Keys
  const { admit, policies, refuse } = yield* RequestAdmission
  const recordUse = yield* makeUseRecorder
  const invalid = () => new ApiKeyInvalid()
  return Effect.fnUntraced(function* (text: string) {
    if (text.length > maxKeyLength) {
      return yield* refuse(invalid())
    }
    const key = presentedKey(text)
    const ask = (tokens: TokensToTake) =>
      Effect.tap(keys.admit(key, policies, tokens), ({ principal }) =>
        Effect.sync(() => recordUse(principal.author.id))
      )
    const { principal } = yield* admit(`key:${key.hashText}`, ask, invalid, keys.exists(key))
    return principal
  })
})

/** Refuses a body on an operation that takes none, as unknown keys in a body are refused. */
const refuseUnreadBody = ({ takesBody }: AuthenticationOptions, { route }: HttpRouter.RouteContext) =>
  takesBody(route.method, route.path)
    ? Effect.void
    : // A defect, for example if the platform fails to read a body: the edge answers it
      Effect.orDie(Effect.flatMap(HttpServerRequest.HttpServerRequest, refuseBody))

/** If a request carries both a key and a cookie, the key decides. */
const makeAuthentication = Effect.fnUntraced(function* (options: AuthenticationOptions) {
  const admitKey = yield* makeKeyAdmission
  const admitSession = yield* makeSessionAdmission

  const bySession = Effect.fnUntraced(function* (routed: HttpRouter.RouteContext) {
    const session = yield* Effect.flatMap(admitSession, inRequestedWorkspace)
    const principal = yield* principalOf(session)
    yield* checkOrganization(principal, routed)
    yield* requireWorkspace(session)
    yield* requireTrustedOrigin(options.trustedOrigins)
    return principal
  })

  return Effect.gen(function* () {
    const routed = yield* HttpRouter.RouteContext
    const request = yield* HttpServerRequest.HttpServerRequest
    const key = request.headers["x-api-key"] ?? ""
    const principal = yield* key === "" ? bySession(routed) : admitKey(key)
    if (key !== "") {
      yield* checkOrganization(principal, routed)
      yield* requireWorkspaceOfKey(principal)
    }
    // The route's method: HEAD is served by the route of GET
    const permission = options.permissionOf(routed.route.method, routed.route.path)
    yield* permission === undefined
      ? new PermissionDenied({ message: "This operation is not open to anybody." })
      : requirePermission(principal, permission)
    yield* annotateSpan({
      "organization.id": principal.organizationId,
      environment: principal.environment,
      "author.kind": principal.author.kind,
      "author.id": principal.author.id
    })
    yield* refuseUnreadBody(options, routed)
    return principal
  })
})

/** `Authentication` by API key or session. An operation without a declared permission is closed to everybody. */
export const authenticationLayer = (
  options: AuthenticationOptions
): Layer.Layer<Authentication, never, Keys | Sessions | RequestAdmission> =>
  Layer.scoped(Authentication, makeAuthentication(options))

export const keyAuthenticationLayer = (
  options: AuthenticationOptions
): Layer.Layer<KeyAuthentication, never, Keys | RequestAdmission> =>
  Layer.scoped(
    KeyAuthentication,
    Effect.map(makeKeyAdmission, (admitKey) =>
      Effect.gen(function* () {
        const request = yield* HttpServerRequest.HttpServerRequest
        const key = request.headers["x-api-key"] ?? ""
        if (key === "") {
          return yield* new AuthenticationRequired({ message: "Send an API key in the x-api-key header." })
        }
        const principal = yield* Effect.tap(admitKey(key), requireWorkspaceOfKey)
        yield* refuseUnreadBody(options, yield* HttpRouter.RouteContext)
        return principal
      })
    )
  )

export const addressLimitsLayer: Layer.Layer<SignInLinkLimit | RedemptionLimit, never, RequestAdmission> = Layer.merge(
  Layer.effect(
    SignInLinkLimit,
    Effect.map(RequestAdmission, ({ admitSignInLink }) => admitSignInLink)
  ),
  Layer.effect(
    RedemptionLimit,
    Effect.map(RequestAdmission, ({ admitRedemption }) => admitRedemption)
  )
)

export const sessionAuthenticationLayer = (
  options: AuthenticationOptions
): Layer.Layer<SessionAuthentication, never, Sessions | RequestAdmission> =>
  Layer.effect(
    SessionAuthentication,
    Effect.map(makeSessionAdmission, (admitSession) =>
      Effect.gen(function* () {
        const admitted = Effect.catchTag(
          admitSession,
          "AuthenticationRequired",
          () => new AuthenticationRequired({ message: "Sign in first." })
        )
        // Workspace access is checked by the operations that need it, so that everybody can sign out
        const session = yield* Effect.flatMap(admitted, inRequestedWorkspace)
        yield* requireTrustedOrigin(options.trustedOrigins)
        yield* refuseUnreadBody(options, yield* HttpRouter.RouteContext)
        return session
      })
    )
  )

export const principalOf = (
  session: Session
): Effect.Effect<PrincipalShape, OrganizationAccessDenied | WorkspaceAccessRequired> => {
  const { environment, membership, personId } = session
  if (membership === null) {
    return new OrganizationAccessDenied({ message: "This person has no organization yet." })
  }
  return Effect.succeed({
    organizationId: membership.organizationId,
    environment,
    permissions: permissionsOf(membership.role),
    author: { kind: "person", id: personId },
    role: membership.role
  })
}

/** Developers and viewers act only in the workspaces granted to them. */
export const requireWorkspace = (session: Session): Effect.Effect<void, WorkspaceAccessRequired> =>
  session.membership?.environments.includes(session.environment) === true ? Effect.void : new WorkspaceAccessRequired()

/** Methods that change nothing: other sites may cause such requests, but learn nothing from them. */
const safeMethods: ReadonlySet<HttpMethod.HttpMethod> = new Set(["GET", "HEAD", "OPTIONS"])

/** Requires a trusted `Origin` for changes, since browsers send a cookie with requests that other sites cause. */
export const requireTrustedOrigin = (
  trustedOrigins: ReadonlySet<string>
): Effect.Effect<void, OriginNotTrusted, HttpServerRequest.HttpServerRequest> =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
    safeMethods.has(request.method) || trustedOrigins.has(request.headers["origin"] ?? "")
      ? Effect.void
      : new OriginNotTrusted()
  )

export const requirePermission = (
  principal: PrincipalShape,
  permission: Permission
): Effect.Effect<void, EndpointManagementForbidden | PermissionDenied> => {
  if (principal.permissions.has(permission)) {
    return Effect.void
  }
  const caller = principal.role === undefined ? "This API key" : `The role ${principal.role}`
  return isWebhookPermission(permission)
    ? new EndpointManagementForbidden({ message: `${caller} lacks the webhook management scope ${permission}.` })
    : new PermissionDenied({ message: `${caller} lacks the permission ${permission}.` })
}

/**
 * The workspace named by a single request (contract 2.8): a person may work in both at once, in separate tabs, while a
 * session has only one selected workspace.
 */

const refused = (message: string) =>
  new ValidationFailed({ message: `\`${workspaceHeader}\` ${message}`, fields: [workspaceHeader] })

/** The environment that the request names; undefined if it names none. Fails if the header is invalid or sent twice. */
export const requestedEnvironment: Effect.Effect<
  Environment | undefined,
  ValidationFailed,
  HttpServerRequest.HttpServerRequest
> = Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) => {
  const named = headers[workspaceHeader]
  return named === undefined || named === "sandbox" || named === "production"
    ? Effect.succeed(named)
    : refused("in the headers must be sandbox or production, once.")
})

/** Selects the workspace that the request names, for this request alone; access is not checked. */
const inRequestedWorkspace = (
  session: Session
): Effect.Effect<Session, ValidationFailed, HttpServerRequest.HttpServerRequest> =>
  Effect.map(requestedEnvironment, (environment) => (environment === undefined ? session : { ...session, environment }))

/** If the request names an environment, requires it to be the key's. */
const requireWorkspaceOfKey = ({
  environment
}: {
  readonly environment: Environment
}): Effect.Effect<void, ValidationFailed, HttpServerRequest.HttpServerRequest> =>
  Effect.flatMap(requestedEnvironment, (named) =>
    named === undefined || named === environment
      ? Effect.void
      : refused(`in the headers must be ${environment}, the environment of the API key; leave it out.`)
  )
