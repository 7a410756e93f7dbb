import { Schema } from "effect"
import { type Remark, remark } from "../platform/bounds/Rules.ts"
import { CurrencyCode, text } from "../platform/bounds/Text.ts"
import { described, optional, ProviderId } from "../platform/kit/Request.ts"
import { type ObjectKindName, objectKinds } from "./ObjectKinds.ts"
import { roundedAmounts } from "./RoundedAmounts.ts"

/** An object of the provider, passed through as it is: names and fields are the provider's own (contract 4.1). */
export const ProviderObject = Schema.Record({ key: Schema.String, value: Schema.Unknown }).annotations({
  identifier: "ProviderObject",
  description: "An object of the payment provider, with at least `id`"
})
export type ProviderObject = typeof ProviderObject.Type

/** A page of the provider's objects, newest first; line items are in the order of the sale. */
export const ProviderPage = Schema.Struct(
  {
    data: described(Schema.Array(ProviderObject), "The objects of this page"),
    has_more: described(Schema.Boolean, "Whether there are more after this page")
  },
  Schema.Record({ key: Schema.String, value: Schema.Unknown })
).annotations({ identifier: "ProviderPage", description: "A page of objects, newest first" })
export type ProviderPage = typeof ProviderPage.Type

/** A broken rule over several fields: the path of the field at fault, and what is wrong with it. */
export interface BrokenRule {
  readonly path: ReadonlyArray<PropertyKey>
  readonly message: string
}

export const Currency = CurrencyCode.annotations({
  description: "Lowercase ISO 4217 code",
  examples: ["brl"]
})

/**
 * The largest amount that the provider accepts in any currency: twelve digits in IDR, eight in others
 * (https://docs.stripe.com/currencies, minimum and maximum charge amounts). The provider checks the bound of the
 * currency and refuses more with `amount_too_large`.
 */
export const maximumAmount = 999_999_999_999

export const amountRemark: Remark = remark(
  "in the smallest unit of the currency: 1500 is R$15.00, or ¥1500 if the currency has no cents"
)

export const UnitAmount = Schema.Int.pipe(Schema.between(0, maximumAmount)).annotations({
  ...amountRemark,
  description: `Smallest currency unit: 500 means 5.00. The provider takes twelve digits in IDR, eight in other currencies. ${roundedAmounts}`,
  examples: [500]
})

const MetadataKey = text({
  min: 1,
  max: 40,
  pattern: /^[^[\]]+$/,
  rule: "must have a key of 1 to 40 characters, without [ and ]"
})

export const MetadataValue = text({ max: 500 })

/** A value in a change of metadata: null or an empty text removes its key. */
export const MetadataChange = Schema.NullOr(MetadataValue)

export const pairsOf = <V, I>(key: Schema.Schema<string>, value: Schema.Schema<V, I>, max: number) =>
  Schema.Record({ key, value }).pipe(
    Schema.filter((pairs) => Object.keys(pairs).length <= max || `must have at most ${max} pairs`, {
      jsonSchema: { maxProperties: max }
    })
  )

export const mergedMetadata =
  "Merged with the pairs that are there: other keys stay, and null or an empty value removes its key"

/** Key-value pairs kept on an object, within the provider's bounds: 50 pairs, keys of 40 characters, values of 500. */
export const Metadata = pairsOf(MetadataKey, MetadataValue, 50).annotations({
  identifier: "MetadataInput",
  description: "Up to 50 pairs; keys up to 40 characters without brackets, values up to 500"
})

/** A change of an object's metadata, within the same bounds. */
export const MetadataChanges = pairsOf(MetadataKey, MetadataChange, 50).annotations({
  identifier: "MetadataChanges",
  description: mergedMetadata
})

export const ProviderText = (max: number) => text({ min: 1, max })

/** An optional text; an empty string removes it from the object. */
export const removable = <A extends string>(text: Schema.Schema<A, string>) =>
  optional(Schema.Union(text, Schema.Literal("")), "An empty string removes it")

/** The id of another object, e.g. a price's product. */
export const referenceTo = (kind: ObjectKindName) => ProviderId.annotations({ examples: [objectKinds[kind].example] })

/** The text on a payer's bank statement: up to 22 characters with at least one Latin letter. */
export const StatementDescriptor = text({
  min: 1,
  max: 22,
  pattern: /^[^<>\\'"*]*$/,
  rule: "must be 1 to 22 characters with at least one Latin letter, without < > \\ ' \" *"
})
  .pipe(Schema.pattern(/[A-Za-z]/))
  .annotations({ description: "The text on a payer's bank statement" })

export const TaxBehavior = Schema.Literal("inclusive", "exclusive", "unspecified").annotations({
  identifier: "TaxBehavior",
  description: "Whether the amount contains the tax"
})

export const Quantity = Schema.Int.pipe(Schema.between(1, 999_999)).annotations({
  description: "How many units of the price are sold"
})

/** Query fields of lists that can be filtered by payment; if both are given, both must match. */
export const ofPaymentFields = {
  charge: optional(referenceTo("charge"), "Only objects of this charge"),
  payment_intent: optional(referenceTo("payment_intent"), "Only objects of this payment")
}

/** The sentence in an operation's description about fields that identify the payer (contract 4.14). */
export const payerOf = (fields: string): string =>
  `Fields that say who paid, such as ${fields}, are null unless the credential also has the permission \`customers:read\`.`
