import { Data, Effect } from "effect"
import type { Kind } from "./Records.ts"

export type ProviderErrorType = "invalid_request_error" | "idempotency_error" | "card_error" | "api_error"

/** `param` is in the provider's notation (`line_items[0][price]`); `code` is absent if the provider sends none. */
export class ProviderError extends Data.TaggedError("ProviderError")<{
  readonly status: number
  readonly type: ProviderErrorType
  readonly message: string
  readonly code?: string
  readonly param?: string
  readonly declineCode?: string
}> {}

export interface Refusal {
  readonly message: string
  readonly code?: string
  readonly param?: string
  /** HTTP status; default 400. */
  readonly status?: number
}

/** An `invalid_request_error`, by default with status 400. */
export const refuse = ({ status = 400, ...rest }: Refusal): ProviderError =>
  new ProviderError({ status, type: "invalid_request_error", ...rest })

/** The provider's parameter name for the id in an object's URL, used in its refusals, if it is not the kind itself. */
const pathParams: Partial<Record<Kind, string>> = {
  balance_transaction: "id",
  "checkout.session": "session",
  customer: "id",
  event: "id",
  payment_intent: "intent",
  product: "id",
  subscription: "id"
}

export type Check = Effect.Effect<void, ProviderError>

/** Fails with the first of the refusals; false stands for one whose condition is not met. */
export const firstOf = (...refusals: ReadonlyArray<ProviderError | false>): Check =>
  refusals.find((refusal) => refusal !== false) ?? Effect.void

export const invalid = (param: string, message: string, code?: string): ProviderError =>
  refuse({ param, message, ...(code === undefined ? {} : { code }) })

const nounOf = (kind: Kind): string =>
  kind === "balance_transaction" || kind === "promotion_code" ? kind.replace("_", " ") : kind

const noSuch = (status: number, noun: string, id: string, param: string): ProviderError =>
  refuse({ status, code: "resource_missing", param, message: `No such ${noun}: '${id}'` })

/** An unknown object whose id is in the URL (status 404). */
export const notFound = (kind: Kind, id: string): ProviderError =>
  noSuch(404, nounOf(kind), id, pathParams[kind] ?? kind)

export const orFail = <A>(value: A | undefined, error: ProviderError): Effect.Effect<A, ProviderError> =>
  value === undefined ? error : Effect.succeed(value)

/** An unknown object whose id is in a parameter (status 400). */
export const resourceMissing = (noun: string, id: string, param: string): ProviderError => noSuch(400, noun, id, param)

/** An account that the platform has no access to, or no longer has (status 403, `account_invalid`). */
export const accountInvalid = (account: string): ProviderError =>
  refuse({
    status: 403,
    code: "account_invalid",
    message: `The provided key does not have access to account '${account}' (or that account does not exist). Application access may have been revoked.`
  })

/** The answer to a defect (status 500); it reveals nothing about the cause. */
export const internalError: ProviderError = new ProviderError({
  status: 500,
  type: "api_error",
  message: "An unknown error occurred in the emulator."
})

export const errorBody = (error: ProviderError): string =>
  JSON.stringify({
    error: {
      ...(error.code === undefined
        ? {}
        : { code: error.code, doc_url: `https://stripe.com/docs/error-codes/${error.code.replaceAll("_", "-")}` }),
      ...(error.declineCode === undefined ? {} : { decline_code: error.declineCode }),
      message: error.message,
      ...(error.param === undefined ? {} : { param: error.param }),
      type: error.type
    }
  })
