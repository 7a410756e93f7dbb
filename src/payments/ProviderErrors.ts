import { Data } from "effect"
import {
  errorSchemas,
  IdempotencyKeyReused,
  IdempotencyRequestInProgress,
  ProviderAccountNotConnected,
  ProviderObjectNotFound,
  ProviderOperationUnsupported,
  ProviderOutcomeUnknown,
  ProviderPaymentRefused,
  ProviderPermissionDenied,
  ProviderRateLimited,
  ProviderRequestRefused,
  ProviderTimeout,
  ProviderUnavailable,
  ServiceUnavailable
} from "../platform/errors/Errors.ts"

const callErrors = [
  ProviderRequestRefused,
  ProviderPaymentRefused,
  ProviderObjectNotFound,
  ProviderOperationUnsupported,
  ProviderUnavailable,
  ProviderOutcomeUnknown,
  ProviderPermissionDenied,
  ProviderRateLimited,
  ProviderTimeout,
  IdempotencyKeyReused,
  IdempotencyRequestInProgress
] as const

export type ProviderFailure = InstanceType<(typeof callErrors)[number]>

export type AccountFailure = ProviderFailure | ProviderAccountNotConnected | ServiceUnavailable

/** `Accounts` confirms it before it disconnects the account. */
export class AccountAccessRevoked extends Data.TaggedError("AccountAccessRevoked")<{
  readonly accountId: string
  readonly cause?: unknown
}> {}

export type ProviderCallFailure = ProviderFailure | AccountAccessRevoked

/**
 * Whether the provider refused a call permanently: it created nothing, and would refuse the same call again. After any
 * other failure the outcome is unknown, and a repeat under the same key completes the call.
 */
export const isRefusal = (
  failure: ProviderCallFailure
): failure is
  | ProviderRequestRefused
  | ProviderPaymentRefused
  | ProviderObjectNotFound
  | ProviderOperationUnsupported
  | ProviderPermissionDenied =>
  failure._tag === "ProviderRequestRefused" ||
  failure._tag === "ProviderPaymentRefused" ||
  failure._tag === "ProviderObjectNotFound" ||
  failure._tag === "ProviderOperationUnsupported" ||
  failure._tag === "ProviderPermissionDenied"

export const providerErrors = errorSchemas(ProviderAccountNotConnected, ...callErrors, ServiceUnavailable)
