import { HttpServerRequest } from "@effect/platform"
import { Effect } from "effect"
import { type OriginNotTrusted, type RateLimitExceeded, type ServiceUnavailable, SessionInvalid } from "../Errors.ts"
import { requireTrustedOrigin } from "./Access.ts"
import { Admissions } from "./Admissions.ts"
import { makeSessionAnswer } from "./SessionAnswer.ts"
import type { SignedIn } from "./SessionApi.ts"
import { setSessionCookie } from "./SessionCookie.ts"
import type { BegunSession } from "./SignIn.ts"

/** What signing in by a mailed link asks of the operator's settings. */
export interface RedemptionOptions {
  readonly trustedOrigins: ReadonlySet<string>
}

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
    const { countFailure } = yield* Admissions
    const answer = yield* makeSessionAnswer
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
          Effect.tapError((error) => (error instanceof SessionInvalid ? countFailure : Effect.void))
        )
        yield* setSessionCookie(token)
        return yield* answer(session)
      })
  })
