import { Schema } from "effect"
import { type Remark, remark } from "../bounds/Rules.ts"
import { controls, text } from "../bounds/Text.ts"
import { imageForm } from "../images/ImageUrl.ts"
import { optional, ProviderId, UnixSecondsFromQuery } from "../kit/Request.ts"

/** What the provider's operations have in common on the wire. Names are the provider's own (contract 4.1). */

/** An object of the provider's, passed through: fields beyond those the contract names are the provider's business. */
export const ProviderObject = Schema.Record({ key: Schema.String, value: Schema.Unknown }).annotations({
  identifier: "ProviderObject",
  description: "An object of the payment provider, with at least `id`"
})
export type ProviderObject = typeof ProviderObject.Type

/** A page of the provider's objects, newest first. */
export const ProviderPage = Schema.Struct(
  { data: Schema.Array(ProviderObject), has_more: Schema.Boolean },
  Schema.Record({ key: Schema.String, value: Schema.Unknown })
).annotations({ identifier: "ProviderPage", description: "A page of objects, newest first" })
export type ProviderPage = typeof ProviderPage.Type

/** Lowercase ISO 4217 code. */
export const Currency = text({
  min: 3,
  max: 3,
  pattern: /^[a-z]{3}$/,
  rule: "must be a lowercase ISO 4217 code, such as brl"
}).annotations({
  description: "Lowercase ISO 4217 code",
  examples: ["brl"]
})

/**
 * The largest amount that the provider takes in any currency: "The amount value supports up to twelve digits for IDR […],
 * and up to eight digits for all other currencies" (https://docs.stripe.com/currencies, minimum and maximum charge
 * amounts). Which currency takes how many is the provider's to say: it refuses more with `amount_too_large`.
 */
export const maximumAmount = 999_999_999_999

/** What is said of every amount that was refused. */
export const amountRemark: Remark = remark(
  "in the smallest unit of the currency: 1500 is R$15.00, or ¥1500 if the currency has no cents"
)

/** An amount in the smallest unit of its currency: 500 means 5.00 BRL. */
export const UnitAmount = Schema.Int.pipe(Schema.between(0, maximumAmount)).annotations({
  ...amountRemark,
  description:
    "Smallest currency unit: 500 means 5.00. The provider takes twelve digits in IDR, eight in other currencies",
  examples: [500]
})

/** Key-value pairs kept on the object, within the provider's own bounds: 50 pairs, keys of 40, values of 500. */
export const Metadata = Schema.Record({
  key: text({
    min: 1,
    max: 40,
    pattern: /^[^[\]]+$/,
    rule: "must have a key of 1 to 40 characters, without [ and ]"
  }),
  value: text({ max: 500 })
})
  .pipe(
    Schema.filter((pairs) => Object.keys(pairs).length <= 50 || "must have at most 50 pairs", {
      jsonSchema: { maxProperties: 50 }
    })
  )
  .annotations({ description: "Up to 50 pairs; keys up to 40 characters without brackets, values up to 500" })

/** Text that the provider shows or keeps. */
export const ProviderText = (max: number) => text({ min: 1, max })

/** An object id that refers to another object, e.g. a price's product. */
export const Reference = ProviderId

/** Without blanks and control characters, which the URL parser would drop without a word. */
const httpsForm = new RegExp(`^[hH][tT][tT][pP][sS]://[^\\s${controls}]+$`)

/** An https URL, as the provider takes for images and product pages. */
export const HttpsUrl = text({
  max: 2048,
  pattern: httpsForm,
  rule: "must be an https URL of at most 2048 characters, without blanks, such as https://shop.example/coffee"
}).pipe(
  Schema.filter((written) => URL.canParse(written), {
    description: "An https URL",
    arbitrary: () => (fc) => fc.webUrl({ validSchemes: ["https"] })
  })
)

/** What is said of an image's URL that was refused. */
export const imageRule =
  "must be an https URL of at most 2048 characters, without blanks, or the url that POST product-images answered"

/**
 * The URL of a product's image: https, or one of the service's own, which a local start serves by http. That an http URL is
 * the service's own is the handler's to check, who knows where the service is reached.
 */
export const ImageUrl = text({
  max: 2048,
  pattern: new RegExp(`${httpsForm.source}|${imageForm.source}`),
  rule: imageRule
}).pipe(
  Schema.filter((written) => URL.canParse(written), {
    description: "An https URL, or the `url` that `POST product-images` answered",
    arbitrary: () => (fc) => fc.webUrl({ validSchemes: ["https"] })
  })
)

/** What a payer's statement shows: up to 22 characters with at least one Latin letter. */
export const StatementDescriptor = text({
  min: 1,
  max: 22,
  pattern: /^[^<>\\'"*]*$/,
  rule: "must be 1 to 22 characters with at least one Latin letter, without < > \\ ' \" *"
}).pipe(Schema.pattern(/[A-Za-z]/))

/** Whether a price includes taxes. */
export const TaxBehavior = Schema.Literal("inclusive", "exclusive", "unspecified")

/** How many of a line item: 1 to 999999. */
export const Quantity = Schema.Int.pipe(Schema.between(1, 999_999))

/**
 * Marks sessions and payment links that this service made, in their metadata: what they sell is known here, and can be
 * completed from the provider where a crash came between its answer and our record.
 */
export const checkoutMarker = { key: "svc_source", value: "connected-payments" } as const

/** Metadata of what leads to checkout: one pair of the provider's 50 is the service's own. */
export const CheckoutMetadata = Metadata.pipe(
  Schema.filter(
    (pairs) => [
      ...(Object.keys(pairs).length > 49 ? [{ path: [], message: "must have at most 49 pairs" }] : []),
      ...(Object.hasOwn(pairs, checkoutMarker.key)
        ? [{ path: [checkoutMarker.key], message: "is a key that the service keeps for itself" }]
        : [])
    ],
    { jsonSchema: { maxProperties: 49, not: { required: [checkoutMarker.key] } } }
  )
).annotations({ description: "Up to 49 pairs; keys up to 40 characters without brackets, values up to 500" })

/** When an object was made, in lists that can be narrowed by it: Unix seconds, both inclusive. */
export const createdFields = {
  created_gte: optional(UnixSecondsFromQuery),
  created_lte: optional(UnixSecondsFromQuery)
}
