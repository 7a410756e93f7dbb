import * as HttpApiMiddleware from "@effect/platform/HttpApiMiddleware"
import { errorSchemas, RateLimitExceeded, ServiceUnavailable } from "../platform/errors/Errors.ts"

/**
 * Limits per client address on requests without a credential: a request beyond them is refused before its body is read.
 * Declared on endpoints; implemented by `addressLimitsLayer`.
 */

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
