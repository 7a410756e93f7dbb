import Stripe from "stripe"
import {
  IdempotencyKeyReused,
  IdempotencyRequestInProgress,
  ProviderPermissionDenied,
  ProviderRateLimited,
  type ProviderRequestRefused,
  ProviderTimeout,
  ProviderUnavailable
} from "../../errors/Errors.ts"
import { AccountAccessRevoked, type ProviderCallFailure } from "../ProviderErrors.ts"
import { objectNotFound, paymentRefused, requestRefused } from "../RefusalReasons.ts"
import type { FailedCall } from "./RepeatedCalls.ts"

/**
 * The parts of a provider's error that operators may see. Its message is not kept: the one for revoked access carries part
 * of the platform's key, others the payer's data.
 */
export interface ProviderErrorFacts {
  readonly status: number | undefined
  readonly type: string
  readonly code: string | undefined
  readonly param: string | undefined
  readonly providerRequestId: string | undefined
}

/** A parameter's path as the API writes it: `line_items[0][price]` is `line_items.0.price`. */
export const dottedPath = (param: string): string =>
  param
    .split(/[[\].]/)
    .filter((part) => part !== "")
    .join(".")

const safeCode = (code: string): string => (/^[a-z0-9_]{1,80}$/.test(code) ? code : "error")

const retryAfterOf = (headers: Stripe.errors.StripeError["headers"]): { readonly retryAfter?: number } => {
  const seconds = Number(headers?.["retry-after"])
  return Number.isFinite(seconds) && seconds > 0 ? { retryAfter: Math.min(seconds, 300) * 1000 } : {}
}

/** A failed call: the API's error, the facts for operators, and whether to repeat it. */
export interface CallFailure extends FailedCall {
  readonly error: ProviderCallFailure
  readonly facts: ProviderErrorFacts
}

/**
 * Whether a repeat of the call may succeed: no connection, a failure at the provider, too many calls, or the first one
 * with this key still in progress. The provider's own advice takes precedence. A time-out is not repeated: it has used up
 * the deadline.
 */
const isTransient = (thrown: Stripe.errors.StripeError, error: ProviderCallFailure): boolean => {
  const advice = thrown.headers?.["stripe-should-retry"]
  if (advice === "true" || advice === "false") {
    return advice === "true"
  }
  switch (error._tag) {
    case "ProviderRateLimited":
    case "IdempotencyRequestInProgress":
      return true
    case "ProviderUnavailable":
      return thrown instanceof Stripe.errors.StripeConnectionError || (thrown.statusCode ?? 0) >= 500
    default:
      return false
  }
}

/** The API's error for one that the `stripe` package threw (contract 12.3). */
export const fromStripeError = (thrown: unknown, accountId: string): CallFailure => {
  if (!(thrown instanceof Stripe.errors.StripeError)) {
    // The package throws a plain TypeError for an unexpected answer, e.g. `null`
    const facts = { ...noFacts, type: thrown instanceof Error ? thrown.name : typeof thrown }
    return { error: new ProviderUnavailable({ cause: facts }), facts, transient: false, retryAfter: undefined }
  }
  const facts: ProviderErrorFacts = {
    status: thrown.statusCode,
    type: thrown.rawType ?? thrown.type,
    code: thrown.code,
    param: thrown.param,
    providerRequestId: thrown.requestId
  }
  const error = classify(thrown, facts, accountId)
  return { error, facts, transient: isTransient(thrown, error), retryAfter: retryAfterOf(thrown.headers).retryAfter }
}

/** The facts of an answer without a provider's error. */
export const noFacts: ProviderErrorFacts = {
  status: undefined,
  type: "unknown",
  code: undefined,
  param: undefined,
  providerRequestId: undefined
}

const classify = (
  thrown: Stripe.errors.StripeError,
  facts: ProviderErrorFacts,
  accountId: string
): ProviderCallFailure => {
  if (thrown instanceof Stripe.errors.StripeConnectionError) {
    return isTimeout(thrown) ? new ProviderTimeout({ cause: facts }) : new ProviderUnavailable({ cause: facts })
  }
  // The provider says this with 400 as well as 429
  if (thrown instanceof Stripe.errors.StripeRateLimitError) {
    return new ProviderRateLimited({ cause: facts, ...retryAfterOf(thrown.headers) })
  }
  if (thrown.code === "idempotency_key_in_use") {
    return new IdempotencyRequestInProgress({ cause: facts })
  }
  switch (facts.status) {
    case 400:
      return thrown.rawType === "idempotency_error"
        ? new IdempotencyKeyReused({ cause: facts })
        : refused(thrown, facts)
    case 402:
      return paymentRefused({
        // The package turns an absent decline code into an empty string
        code: `provider_${safeCode(thrown.decline_code || thrown.code || facts.type)}`,
        cause: facts
      })
    case 403:
      return thrown.code === "account_invalid"
        ? new AccountAccessRevoked({ accountId })
        : new ProviderPermissionDenied({ cause: facts })
    case 404:
      return thrown.code === "resource_missing"
        ? objectNotFound({ fields: fieldsOf(thrown), cause: facts })
        : new ProviderUnavailable({ cause: facts })
    default:
      return new ProviderUnavailable({ cause: facts })
  }
}

const fieldsOf = (thrown: Stripe.errors.StripeError): ReadonlyArray<string> =>
  thrown.param === undefined ? [] : [dottedPath(thrown.param)]

const refused = (thrown: Stripe.errors.StripeError, facts: ProviderErrorFacts): ProviderRequestRefused =>
  requestRefused({
    code: `provider_${safeCode(thrown.code ?? facts.type)}`,
    fields: fieldsOf(thrown),
    cause: facts
  })

const isTimeout = (thrown: Stripe.errors.StripeError): boolean =>
  thrown.detail instanceof Error && "code" in thrown.detail && thrown.detail.code === "ETIMEDOUT"
