import * as HttpApiMiddleware from "@effect/platform/HttpApiMiddleware"
import { Schema } from "effect"
import { errorSchema, RateLimitExceeded, ServiceUnavailable } from "../Errors.ts"

/**
 * The limit on what needs no credential, per client address: what is beyond it is refused before anything of its body is
 * read. Said on an endpoint; implemented by `addressLimitLayer`.
 */
export class AddressLimit extends HttpApiMiddleware.Tag<AddressLimit>()("connected-payments/identity/AddressLimit", {
  failure: Schema.Union(errorSchema(RateLimitExceeded), errorSchema(ServiceUnavailable))
}) {}
