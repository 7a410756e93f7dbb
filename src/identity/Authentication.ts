import * as HttpApiMiddleware from "@effect/platform/HttpApiMiddleware"
import { Context } from "effect"
import {
  ApiKeyInvalid,
  AuthenticationRequired,
  EndpointManagementForbidden,
  errorSchemas,
  OrganizationAccessDenied,
  OriginNotTrusted,
  PermissionDenied,
  RateLimitExceeded,
  ServiceUnavailable,
  SessionInvalid,
  ValidationFailed,
  WorkspaceAccessRequired
} from "../platform/errors/Errors.ts"
import { Principal, type Session } from "./Principal.ts"

/**
 * Authentication and authorization (contract 2): the API key in `x-api-key`, or else the session in the cookie; its
 * rate limit; the workspace that the request names; the organization in the path; for a session, access to the
 * workspace and the `Origin`; the operation's permission. Provides the `Principal`. Declared on a group; implemented by
 * `authenticationLayer`.
 */
export class Authentication extends HttpApiMiddleware.Tag<Authentication>()(
  "connected-payments/identity/Authentication",
  {
    provides: Principal,
    failure: errorSchemas(
      AuthenticationRequired,
      ApiKeyInvalid,
      SessionInvalid,
      OrganizationAccessDenied,
      WorkspaceAccessRequired,
      OriginNotTrusted,
      PermissionDenied,
      EndpointManagementForbidden,
      RateLimitExceeded,
      ValidationFailed,
      ServiceUnavailable
    )
  }
) {}

/**
 * The cookie with a session's token: HttpOnly, Secure, SameSite=Lax. Its prefix keeps other hosts of the same domain
 * from setting it: browsers accept such a cookie only from the host itself, without `Domain` and with path `/`.
 */
export const sessionCookie = "__Host-svc_session"

export const workspaceHeader = "service-workspace"

/** The signed-in person of a request, in the workspace that it names, or else the selected one. */
export class CurrentSession extends Context.Tag("connected-payments/identity/CurrentSession")<
  CurrentSession,
  Session
>() {}

/** Requires a signed-in person. Rate limit and `Origin` as above; see `sessionAuthenticationLayer`. */
export class SessionAuthentication extends HttpApiMiddleware.Tag<SessionAuthentication>()(
  "connected-payments/identity/SessionAuthentication",
  {
    provides: CurrentSession,
    failure: errorSchemas(
      AuthenticationRequired,
      SessionInvalid,
      OriginNotTrusted,
      RateLimitExceeded,
      ValidationFailed,
      ServiceUnavailable
    )
  }
) {}

/** Requires an API key. Rate limit as above; see `keyAuthenticationLayer`. */
export class KeyAuthentication extends HttpApiMiddleware.Tag<KeyAuthentication>()(
  "connected-payments/identity/KeyAuthentication",
  {
    provides: Principal,
    failure: errorSchemas(
      AuthenticationRequired,
      ApiKeyInvalid,
      RateLimitExceeded,
      ValidationFailed,
      ServiceUnavailable
    )
  }
) {}

/** A caller's credential. */
export type Credential = "apiKey" | "session"

export const credentialsOf = new Map<unknown, ReadonlyArray<Credential>>([
  [Authentication, ["apiKey", "session"]],
  [SessionAuthentication, ["session"]],
  [KeyAuthentication, ["apiKey"]]
])

/** Limits per client address: a request beyond them is refused before its body is read. */

const failure = errorSchemas(RateLimitExceeded, ServiceUnavailable)

/** The limit on requests for sign-in links: the same number as failed authentications per address. */
export class SignInLinkLimit extends HttpApiMiddleware.Tag<SignInLinkLimit>()(
  "connected-payments/identity/SignInLinkLimit",
  { failure }
) {}

/**
 * The limit on redemptions of mailed links: four times as many. Failed ones count as failed authentications of the
 * address, which never block a valid link.
 */
export class RedemptionLimit extends HttpApiMiddleware.Tag<RedemptionLimit>()(
  "connected-payments/identity/RedemptionLimit",
  { failure }
) {}
