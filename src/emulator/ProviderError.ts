import { Data } from "effect"

/** The error families of the provider that the emulator answers with (`error.type`). */
export type ProviderErrorType = "invalid_request_error" | "idempotency_error" | "card_error" | "api_error"

/**
 * A refusal in the provider's own terms: what becomes `{ error: { type, code, param, message, ... } }` with `status`.
 *
 * `param` is in the provider's notation (`line_items[0][price]`). `code` is absent where the provider sends none.
 */
export class ProviderError extends Data.TaggedError("ProviderError")<{
  readonly status: number
  readonly type: ProviderErrorType
  readonly message: string
  readonly code?: string
  readonly param?: string
  readonly declineCode?: string
}> {}

/** What is known of a refused request; see {@link refuse}. */
export interface Refusal {
  readonly message: string
  readonly code?: string
  readonly param?: string
  /** HTTP status; 400 where it is absent. */
  readonly status?: number
}

/** An `invalid_request_error`, status 400 unless told otherwise. */
export const refuse = ({ status = 400, ...rest }: Refusal): ProviderError =>
  new ProviderError({ status, type: "invalid_request_error", ...rest })

/**
 * An unknown object: status 404 where the id stands in the URL, 400 where it stands in a parameter, as at the provider.
 *
 * @param noun the provider's word in its message, such as `product` or `checkout.session`
 */
export const resourceMissing = (noun: string, id: string, param?: string): ProviderError =>
  refuse({
    status: param === undefined ? 404 : 400,
    code: "resource_missing",
    param: param ?? "id",
    message: `No such ${noun}: '${id}'`
  })

/** Access to an account that the platform does not have, or no longer has (status 403, `account_invalid`). */
export const accountInvalid = (account: string): ProviderError =>
  refuse({
    status: 403,
    code: "account_invalid",
    message: `The provided key does not have access to account '${account}' (or that account does not exist). Application access may have been revoked.`
  })

/** The answer to a defect: nothing about its cause leaves the process (status 500). */
export const internalError: ProviderError = new ProviderError({
  status: 500,
  type: "api_error",
  message: "An unknown error occurred in the emulator."
})

/** The error body as it goes over the wire. */
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
