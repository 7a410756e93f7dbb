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
