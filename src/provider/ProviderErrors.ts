import { Data, Schema } from "effect"
import {
  errorSchema,
  IdempotencyKeyReused,
  IdempotencyRequestInProgress,
  ProviderAccountNotConnected,
  ProviderObjectNotFound,
  ProviderPaymentRefused,
  ProviderPermissionDenied,
  ProviderRateLimited,
  ProviderRequestRefused,
  ProviderTimeout,
  ProviderUnavailable,
  ServiceUnavailable
} from "../Errors.ts"

/** What a call to the provider can come to, but for revoked access. */
export type ProviderFailure =
  | ProviderRequestRefused
  | ProviderPaymentRefused
  | ProviderObjectNotFound
  | ProviderUnavailable
  | ProviderPermissionDenied
  | ProviderRateLimited
  | ProviderTimeout
  | IdempotencyKeyReused
  | IdempotencyRequestInProgress

/** The provider says that this account is not (or no longer) ours to act on. Confirmed by `Accounts` before it counts. */
export class AccountAccessRevoked extends Data.TaggedError("AccountAccessRevoked")<{ readonly accountId: string }> {}

/**
 * Whether the provider has refused a call for good: it made nothing, and would refuse the same again. After every other
 * failure the outcome is open, and a repeat under the same key completes it.
 */
export const isRefusal = (
  failure: ProviderFailure | AccountAccessRevoked
): failure is ProviderRequestRefused | ProviderPaymentRefused | ProviderObjectNotFound | ProviderPermissionDenied =>
  failure._tag === "ProviderRequestRefused" ||
  failure._tag === "ProviderPaymentRefused" ||
  failure._tag === "ProviderObjectNotFound" ||
  failure._tag === "ProviderPermissionDenied"

/** The errors of every operation on the connected account, for the API's declarations. */
export const providerErrors = Schema.Union(
  errorSchema(ProviderAccountNotConnected),
  errorSchema(ProviderRequestRefused),
  errorSchema(ProviderPaymentRefused),
  errorSchema(ProviderObjectNotFound),
  errorSchema(ProviderUnavailable),
  errorSchema(ProviderPermissionDenied),
  errorSchema(ProviderRateLimited),
  errorSchema(ProviderTimeout),
  errorSchema(IdempotencyKeyReused),
  errorSchema(IdempotencyRequestInProgress),
  errorSchema(ServiceUnavailable)
)
