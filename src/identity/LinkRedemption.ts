import { HttpServerRequest } from "@effect/platform"
import { Duration, Effect } from "effect"
import { type OriginNotTrusted, type RateLimitExceeded, type ServiceUnavailable, SessionInvalid } from "../Errors.ts"
import { clientNetwork } from "../kit/ClientAddress.ts"
import { type RateLimitPolicy, RateLimits } from "../kit/RateLimit.ts"
import type { TrustedProxies } from "../SettingsForms.ts"
import { requireTrustedOrigin } from "./Access.ts"
import { makeSessionAnswer } from "./SessionAnswer.ts"
import type { SignedIn } from "./SessionApi.ts"
import { setSessionCookie } from "./SessionCookie.ts"
import type { BegunSession } from "./SignIn.ts"

/** What signing in by a mailed link asks of the operator's settings. */
export interface RedemptionOptions {
  readonly trustedOrigins: ReadonlySet<string>
  readonly trustedProxies: TrustedProxies
  /** Failed authentications, and requests for links, per minute and client address. */
  readonly failedAuthenticationsPerMinute: number
}

/** How often an address may fail, or ask for a link. */
export const addressPolicy = (options: RedemptionOptions): RateLimitPolicy => ({
  limit: options.failedAuthenticationsPerMinute,
  per: Duration.minutes(1)
})

/**
 * A program may redeem a link without an `Origin`; where a browser sends one, it must be trusted: a foreign page must
 * not sign its visitor in as somebody else.
 */
const refuseForeignOrigin = (
  trustedOrigins: ReadonlySet<string>
): Effect.Effect<void, OriginNotTrusted, HttpServerRequest.HttpServerRequest> =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
    request.headers["origin"] === undefined ? Effect.void : requireTrustedOrigin(trustedOrigins)
  )

/**
 * Redeems a mailed token: sets the session's cookie and answers the session. Tokens that are not good count against
 * the client's address, together with its other failed authentications.
 */
export const makeRedemption = (options: RedemptionOptions) =>
  Effect.gen(function* () {
    const limits = yield* RateLimits
    const answer = yield* makeSessionAnswer
    const policy = addressPolicy(options)
    return <E>(
      redeem: Effect.Effect<BegunSession, E | SessionInvalid>
    ): Effect.Effect<
      SignedIn,
      E | SessionInvalid | OriginNotTrusted | RateLimitExceeded | ServiceUnavailable,
      HttpServerRequest.HttpServerRequest
    > =>
      Effect.gen(function* () {
        yield* refuseForeignOrigin(options.trustedOrigins)
        const { session, token } = yield* redeem.pipe(
          Effect.tapError((error) =>
            error instanceof SessionInvalid
              ? Effect.flatMap(clientNetwork(options.trustedProxies), (address) =>
                  limits.take(`failed-authentication:${address}`, policy)
                )
              : Effect.void
          )
        )
        yield* setSessionCookie(token)
        return yield* answer(session)
      })
  })
