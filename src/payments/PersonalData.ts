import { Effect, Predicate } from "effect"
import { Principal } from "../identity/Principal.ts"
import type { ProviderObject, ProviderPage } from "./Schemas.ts"

/**
 * Customers' personal data, which only callers with the permission `customers:read` see (contract 4.14). Objects are
 * redacted where the API returns them, so that another provider behind the port can't forget it.
 */

/**
 * Fields of the provider that identify the payer: the payer's input, data of the payer's bank, the aliases that payment
 * methods use for payers, and the addresses of pages that name them, such as a bank slip. A test compares them with all
 * fields of the provider's types.
 */
const ofPayer: ReadonlySet<string> = new Set([
  "account_holder_name",
  "billing_details",
  "buyer_address",
  "buyer_id",
  "cardholder_name",
  "cashtag",
  "collected_information",
  "company_details",
  "customer_details",
  "customer_email",
  "dob",
  "email",
  "email_sent_to",
  "hosted_invoice_url",
  "hosted_verification_url",
  "hosted_voucher_url",
  "instructions_email",
  "invoice_pdf",
  "masterpass",
  "pay_id",
  "payer_details",
  "payer_email",
  "payer_id",
  "payer_name",
  "pdf",
  "receipt_email",
  "receipt_url",
  "shipping",
  "shipping_address_zip",
  "shipping_details",
  "tax_id",
  "verified_address",
  "verified_email",
  "verified_name",
  "verified_phone_last4",
  "visa_checkout",
  "vpa"
])

/** Exempt fields: the integrator's own pairs, which may have any name, and the bank accounts that payers pay into. */
const notOfPayer: ReadonlySet<string> = new Set(["financial_addresses", "metadata"])

const fieldWithoutPayer = (name: string, part: unknown): readonly [string, unknown] => {
  if (notOfPayer.has(name)) return [name, part]
  // The source of an older payment, such as a card: it has its holder's name and address under many field names
  const isSource = name === "source" && Predicate.isRecord(part)
  return [name, isSource || ofPayer.has(name) ? null : withoutPayerIn(part)]
}

const withoutPayerIn = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withoutPayerIn)
  return Predicate.isReadonlyRecord(value)
    ? Object.fromEntries(Object.entries(value).map(([name, part]) => fieldWithoutPayer(name, part)))
    : value
}

/** Returns the object with null in every field that identifies the payer, including nested objects. */
export const withoutPayer = (object: ProviderObject): ProviderObject =>
  Object.fromEntries(Object.entries(object).map(([name, part]) => fieldWithoutPayer(name, part)))

/** Redacts an object for callers without the permission. */
export type Reduced = (object: ProviderObject) => ProviderObject

const mayRead = Effect.map(Principal, ({ permissions }) => permissions.has("customers:read"))

export const shownTo =
  (reduced: Reduced) =>
  (object: ProviderObject): Effect.Effect<ProviderObject, never, Principal> =>
    Effect.map(mayRead, (whole) => (whole ? object : reduced(object)))

/** A page of objects, each as the caller may see it. */
export const pageShownTo =
  (reduced: Reduced) =>
  (page: ProviderPage): Effect.Effect<ProviderPage, never, Principal> =>
    Effect.map(mayRead, (whole) => (whole ? page : { ...page, data: page.data.map(reduced) }))
