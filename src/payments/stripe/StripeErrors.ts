import Stripe from "stripe"
import { hasErrorCode } from "../../platform/errors/ErrorCode.ts"
import {
  IdempotencyKeyReused,
  IdempotencyRequestInProgress,
  ProviderAnswer,
  ProviderOutcomeUnknown,
  ProviderPermissionDenied,
  ProviderRateLimited,
  type ProviderRequestRefused,
  ProviderTimeout,
  ProviderUnavailable
} from "../../platform/errors/Errors.ts"
import { AccountAccessRevoked, type ProviderCallFailure } from "../ProviderErrors.ts"
import { objectNotFound, paymentRefused, requestRefused } from "../RefusalReasons.ts"

/** A parameter's path as the API writes it: `line_items[0][price]` is `line_items.0.price`. */
export const dottedPath = (param: string): string =>
  param
    .split(/[[\].]/)
    .filter((part) => part !== "")
    .join(".")

const codeForm = /^[A-Za-z0-9_]{1,80}$/
const requestIdForm = /^req_[A-Za-z0-9_-]{1,64}$/

const paramForm = /^[^\p{Cc}]{1,255}$/u

/** A proxy may send anything, whatever the package's types say. */
const ofForm = (form: RegExp, value: unknown): string | undefined =>
  typeof value === "string" && form.test(value) ? value : undefined

const safeCode = (code: string): string => (/^[a-z0-9_]{1,80}$/.test(code) ? code : "error")

/** The code of an error: `error` if it does not look like a Stripe code, or the error's type if it has none. */
const codeOf = ({ code }: Stripe.errors.StripeError, facts: ProviderAnswer): string =>
  `provider_${safeCode(facts.code ?? (code ? "error" : facts.type))}`

const retryAfterOf = (headers: Stripe.errors.StripeError["headers"]): { readonly retryAfter?: number } => {
  const seconds = Number(headers?.["retry-after"])
  return Number.isFinite(seconds) && seconds > 0 ? { retryAfter: Math.min(seconds, 300) * 1000 } : {}
}

export interface FailedCall {
  /** Whether a retry may succeed: no connection, a failure at the provider, a rate limit, or a lock. */
  readonly transient: boolean
  readonly retryAfter: number | undefined
}

export interface CallFailure extends FailedCall {
  readonly error: ProviderCallFailure
  readonly facts: ProviderAnswer
}

/**
 * Whether the provider stored its own failure (status 500 or more) under the call's idempotency key, so that a retry
 * gets it again: the answer is already a replay, or it advises against a retry.
 */
export const isKept = (
  status: number | undefined,
  headers: Readonly<Record<string, string | undefined>> | undefined
): boolean =>
  (status ?? 0) >= 500 &&
  headers?.["idempotency-key"] !== undefined &&
  (headers["idempotent-replayed"] === "true" || headers["stripe-should-retry"] === "false")

/**
 * Whether a retry may succeed: no connection, a failure at the provider, a rate limit, or the first call with this key
 * still in progress. The provider's own advice takes precedence. A timeout is not retried: it has used up the deadline.
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

export const fromStripeError = (thrown: unknown, accountId: string): CallFailure => {
  if (!(thrown instanceof Stripe.errors.StripeError)) {
    // The package throws a plain TypeError for an unexpected answer, e.g. `null`
    const facts = noAnswer({ type: thrown instanceof Error ? thrown.name : typeof thrown })
    return { error: new ProviderUnavailable({ cause: facts }), facts, transient: false, retryAfter: undefined }
  }
  const facts = new ProviderAnswer({
    status: thrown.statusCode,
    type: ofForm(codeForm, thrown.rawType) ?? thrown.type,
    code: ofForm(codeForm, thrown.code),
    // The package turns an absent decline code into an empty string
    declineCode: ofForm(codeForm, thrown.decline_code),
    networkDeclineCode: ofForm(codeForm, thrown.network_decline_code),
    adviceCode: ofForm(codeForm, thrown.advice_code),
    param: ofForm(paramForm, thrown.param),
    providerRequestId: ofForm(requestIdForm, thrown.requestId)
  })
  const error = classify(thrown, facts, accountId)
  return { error, facts, transient: isTransient(thrown, error), retryAfter: retryAfterOf(thrown.headers).retryAfter }
}

/** The facts of an answer that has no error object of the provider. */
export const noAnswer = (known: { readonly status?: number; readonly type?: string; readonly requestId?: string }) =>
  new ProviderAnswer({
    status: known.status,
    type: known.type ?? "unknown",
    code: undefined,
    declineCode: undefined,
    networkDeclineCode: undefined,
    adviceCode: undefined,
    param: undefined,
    providerRequestId: ofForm(requestIdForm, known.requestId)
  })

const classify = (thrown: Stripe.errors.StripeError, facts: ProviderAnswer, accountId: string): ProviderCallFailure => {
  if (thrown instanceof Stripe.errors.StripeConnectionError) {
    return isTimeout(thrown) ? new ProviderTimeout({ cause: facts }) : new ProviderUnavailable({ cause: facts })
  }
  // The provider sends this with 400 as well as 429
  if (thrown instanceof Stripe.errors.StripeRateLimitError) {
    return new ProviderRateLimited({ cause: facts, ...retryAfterOf(thrown.headers) })
  }
  if (facts.code === "idempotency_key_in_use") {
    return new IdempotencyRequestInProgress({ cause: facts })
  }
  switch (facts.status) {
    case 400:
      return facts.type === "idempotency_error" ? new IdempotencyKeyReused({ cause: facts }) : refused(thrown, facts)
    case 402:
      return paymentRefused({
        code: facts.declineCode === undefined ? codeOf(thrown, facts) : `provider_${safeCode(facts.declineCode)}`,
        cause: facts
      })
    case 403:
      return facts.code === "account_invalid"
        ? new AccountAccessRevoked({ accountId, cause: facts })
        : new ProviderPermissionDenied({ cause: facts })
    case 404:
      return facts.code === "resource_missing"
        ? objectNotFound({ fields: fieldsOf(facts), cause: facts })
        : new ProviderUnavailable({ cause: facts })
    default:
      return isKept(facts.status, thrown.headers)
        ? new ProviderOutcomeUnknown({ cause: facts })
        : new ProviderUnavailable({ cause: facts })
  }
}

const fieldsOf = ({ param }: ProviderAnswer): ReadonlyArray<string> => (param === undefined ? [] : [dottedPath(param)])

const refused = (thrown: Stripe.errors.StripeError, facts: ProviderAnswer): ProviderRequestRefused =>
  requestRefused({ code: codeOf(thrown, facts), fields: fieldsOf(facts), cause: facts })

const isTimeout = (thrown: Stripe.errors.StripeError): boolean => hasErrorCode(thrown.detail, "ETIMEDOUT")
