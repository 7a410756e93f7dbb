import { Data } from "effect"
import type { ApiError } from "./DocumentedError.ts"

/**
 * The facts of a failed provider answer, without its message, which is never kept: the one for revoked access carries
 * part of the platform's key, others the payer's data. It is the `cause` of errors that the provider caused, so that
 * the request's log line and span can include it.
 */
export class ProviderAnswer extends Data.Class<{
  readonly status: number | undefined
  /** The provider's type of error, such as `card_error`. */
  readonly type: string
  readonly code: string | undefined
  /** Why the issuer refused a payment, such as `insufficient_funds`. */
  readonly declineCode: string | undefined
  /** The issuer's or the card network's own code of the refusal. */
  readonly networkDeclineCode: string | undefined
  /** The provider's advice after a refused payment: `try_again_later`, `do_not_try_again` or `confirm_card_data`. */
  readonly adviceCode: string | undefined
  /** The refused parameter, by the provider's name. */
  readonly param: string | undefined
  /** The provider's id of the request (`req_…`), by which its support and the account's owner find it. */
  readonly providerRequestId: string | undefined
}> {}

/** The log line and span attributes that name an error; the provider's only if it caused the error. */
export const errorAttributes = (error: ApiError): Readonly<Record<string, string>> => {
  const answer = error.cause
  if (!(answer instanceof ProviderAnswer)) return { "api.error.code": error.code }
  const attributes = {
    "provider.request_id": answer.providerRequestId,
    "provider.error_type": answer.type,
    "provider.error_code": answer.code,
    "provider.decline_code": answer.declineCode,
    "provider.network_decline_code": answer.networkDeclineCode
  } satisfies Record<ProviderAttribute, string | undefined>
  return {
    "api.error.code": error.code,
    ...Object.fromEntries(
      Object.entries(attributes).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
    )
  }
}

export const providerAttributes = [
  "provider.request_id",
  "provider.error_type",
  "provider.error_code",
  "provider.decline_code",
  "provider.network_decline_code"
] as const

type ProviderAttribute = (typeof providerAttributes)[number]
