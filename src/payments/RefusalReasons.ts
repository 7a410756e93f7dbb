import {
  ProviderAnswer,
  ProviderObjectNotFound,
  ProviderPaymentRefused,
  ProviderRequestRefused
} from "../platform/errors/Errors.ts"
import { objectKinds } from "./ObjectKinds.ts"
import type { ProviderCallFailure } from "./ProviderErrors.ts"

/**
 * The reasons why the provider refuses a field, in the service's own words, by the provider's code; the message puts
 * the field's name first. The provider's messages are never passed on, since some carry part of a key or a payer's
 * data.
 */
const reasons: ReadonlyMap<string, string> = new Map([
  ["amount_too_large", "is more than the provider accepts in this currency"],
  ["amount_too_small", "is less than the provider accepts in this currency"],
  ["charge_already_refunded", "has been refunded in full already"],
  ["charge_disputed", "is disputed by its payer, and can't be refunded"],
  ["charge_not_refundable", "can't be refunded"],
  ["coupon_expired", "has expired"],
  ["parameter_invalid_empty", "must not be empty"],
  ["parameter_invalid_integer", "must be a whole number that the provider accepts"],
  ["parameter_invalid_string_blank", "must not be blank"],
  ["parameter_invalid_string_empty", "must not be empty"],
  ["parameter_missing", "is missing, and the provider needs it with the other fields that were sent"],
  ["parameter_unknown", "is not accepted by the provider"],
  ["parameters_exclusive", "is not accepted together with another field that was sent"],
  ["product_inactive", "belongs to an inactive product; activate the product first"],
  ["resource_already_exists", "is taken already"],
  [
    "resource_missing",
    "names no object of the connected account in this environment; sandbox and production are separate"
  ],
  ["url_invalid", "must be a URL that the provider accepts"]
])

/**
 * The reasons why a payment is refused, by the provider's or the issuer's code. A message may be shown to the payer, so
 * it does not say that a card was reported or looks fraudulent; the error's code does.
 */
const payments: ReadonlyMap<string, string> = new Map([
  ["authentication_required", "the payer has to confirm it with the bank"],
  ["card_declined", "the card was declined"],
  ["card_not_supported", "the card does not support this kind of payment"],
  ["card_velocity_exceeded", "the card has reached its limit"],
  ["currency_not_supported", "the card does not support the currency"],
  ["do_not_honor", "the card was declined"],
  ["expired_card", "the card has expired"],
  ["fraudulent", "the card was declined"],
  ["generic_decline", "the card was declined"],
  ["incorrect_cvc", "the card's security code is wrong"],
  ["incorrect_number", "the card's number is wrong"],
  ["insufficient_funds", "the card has insufficient funds"],
  ["invalid_cvc", "the card's security code is wrong"],
  ["invalid_expiry_month", "the card's expiry month is wrong"],
  ["invalid_expiry_year", "the card's expiry year is wrong"],
  ["lost_card", "the card was declined"],
  ["merchant_blacklist", "the card was declined"],
  ["pickup_card", "the card was declined"],
  ["processing_error", "the card could not be processed; it may work in a while"],
  ["stolen_card", "the card was declined"],
  ["try_again_later", "the card was declined; it may work later"],
  ["withdrawal_count_limit_exceeded", "the card has reached its limit"]
])

/** The reasons for refusals without a code of the provider's, by the last name in the field's path. */
const codeless: ReadonlyMap<string, string> = new Map([
  ["amount", "is more than is left to refund: the charge's `amount` less its `amount_refunded`"],
  ["currency", "is not a currency that the provider accepts for this account"]
])

const providerCode = (code: string): string => code.replace(/^provider_/, "")

/** Objects that codes start with; the message names them if the provider names no field. */
const subjects = ["charge", "coupon"] as const

/** The next step after a refused payment, by the provider's advice. */
const advice: ReadonlyMap<string | undefined, string> = new Map([
  ["confirm_card_data", " Ask the payer to check the card's data."],
  ["do_not_try_again", " Don't try this card again."],
  ["try_again_later", " It may work later."]
])

/** The sentence with the id by which the provider's support, or the account's owner, can find the request. */
const whereToLook = (cause: unknown): string => {
  const id = cause instanceof ProviderAnswer ? cause.providerRequestId : undefined
  return id !== undefined ? ` The provider's id of the request is ${id}.` : ""
}

const adviceOf = (cause: unknown): string =>
  cause instanceof ProviderAnswer ? (advice.get(cause.adviceCode) ?? "") : ""

/** A refusal's message about a field, if more is known than the provider's code. */
type ReasonOf = (field: string) => string | undefined

const reasonOf = (code: string, field: string): string =>
  reasons.get(code) ??
  (code === "invalid_request_error" ? codeless.get(field.split(".").at(-1) ?? "") : undefined) ??
  `was refused by the payment provider; its code is ${code}`

const requestMessage = (code: string, fields: ReadonlyArray<string>, known: ReasonOf): string => {
  if (fields.length === 0) {
    const subject = subjects.find((name) => code.startsWith(`${name}_`))
    const reason = reasons.get(code)
    return reason === undefined || subject === undefined
      ? `The payment provider refused the request; its code is ${code}.`
      : `The payment provider refused the request: the ${subject} ${reason}.`
  }
  return fields
    .map((field) => `${field === "id" ? "`id` in the path" : `\`${field}\``} ${known(field) ?? reasonOf(code, field)}.`)
    .join(" ")
}

export interface ProviderRefusal {
  readonly code: string
  readonly fields: ReadonlyArray<string>
  readonly cause?: unknown
}

export const requestRefused = (
  { cause, code, fields }: ProviderRefusal,
  known: ReasonOf = () => undefined
): ProviderRequestRefused =>
  new ProviderRequestRefused({
    code,
    fields,
    cause,
    message: `${requestMessage(providerCode(code), fields, known)}${whereToLook(cause)}`
  })

export const objectNotFound = (
  { cause, fields }: Omit<ProviderRefusal, "code">,
  known: ReasonOf = () => undefined
): ProviderObjectNotFound =>
  new ProviderObjectNotFound({
    fields,
    cause,
    ...(fields.length === 0 ? {} : { message: requestMessage("resource_missing", fields, known) })
  })

export const paymentRefused = ({ cause, code }: Omit<ProviderRefusal, "fields">): ProviderPaymentRefused =>
  new ProviderPaymentRefused({
    code,
    cause,
    message: `The payment provider refused the payment: ${payments.get(providerCode(code)) ?? `its code is ${providerCode(code)}`}.${adviceOf(cause)}${whereToLook(cause)}`
  })

/**
 * The API's names for the provider's fields, by path prefix: the provider's `applies_to.products.0` is `products.0` to
 * callers. Null if callers have no such field.
 */
export type FieldNames = Readonly<Record<string, string | null>>

/** The provider's names, by object type, for the id in a path, which is `id` to callers. */
export const pathIdNames: FieldNames = Object.fromEntries(
  [...Object.keys(objectKinds), "coupon", "intent", "subscription_exposed_id"].map((name) => [name, "id"])
)

const renamed = (fields: ReadonlyArray<string>, names: FieldNames): ReadonlyArray<string> => {
  // The longest matching prefix wins
  const known = Object.entries(names).toSorted(([a], [b]) => b.length - a.length)
  const ours = fields.flatMap((field) => {
    const found = known.find(([path]) => path === "" || field === path || field.startsWith(`${path}.`))
    if (found === undefined) {
      return [field]
    }
    const [path, name] = found
    if (name === null) {
      return []
    }
    return [path === "" ? `${name}.${field}` : `${name}${field.slice(path.length)}`]
  })
  return [...new Set(ours)]
}

export const inOurNames =
  (names: FieldNames) =>
  <E extends ProviderCallFailure>(failure: E): E | ProviderRequestRefused | ProviderObjectNotFound => {
    if (failure._tag === "ProviderRequestRefused") {
      const { cause, code, fields } = failure
      return requestRefused({ cause, code, fields: renamed(fields, names) })
    }
    if (failure._tag === "ProviderObjectNotFound") {
      const { cause, fields } = failure
      return objectNotFound({ cause, fields: renamed(fields, names) })
    }
    return failure
  }
