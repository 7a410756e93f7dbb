import * as HttpApiMiddleware from "@effect/platform/HttpApiMiddleware"
import { Schema } from "effect"
import { errorSchema, RateLimitExceeded, ServiceUnavailable } from "../errors/Errors.ts"

/**
 * Limits on what needs no credential, per client address: what is beyond them is refused before anything of its body is
 * read. Said on endpoints; implemented by `addressLimitsLayer`.
 */

const failure = Schema.Union(errorSchema(RateLimitExceeded), errorSchema(ServiceUnavailable))

/** On requests for sign-in links: as many as an address may fail to authenticate. */
export class SignInLinkLimit extends HttpApiMiddleware.Tag<SignInLinkLimit>()(
  "connected-payments/identity/SignInLinkLimit",
  { failure }
) {}

/**
 * On redemptions of mailed links: four times as many. Those that fail are counted with the address's other failures, and a
 * good link is not held up by them.
 */
export class RedemptionLimit extends HttpApiMiddleware.Tag<RedemptionLimit>()(
  "connected-payments/identity/RedemptionLimit",
  { failure }
) {}
