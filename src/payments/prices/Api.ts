import { OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { familiar, rule } from "../../platform/bounds/Rules.ts"
import { BooleanFromQuery, described, optional, pageFields, strict } from "../../platform/kit/Request.ts"
import { providerCreate, providerGet, providerGroup, providerList, providerUpdate } from "../Endpoints.ts"
import { UnitLabel } from "../products/Api.ts"
import {
  type BrokenRule,
  Currency,
  Metadata,
  MetadataChanges,
  ProviderText,
  referenceTo,
  StatementDescriptor,
  TaxBehavior,
  UnitAmount
} from "../Schemas.ts"
import { amountRules, CustomUnitAmount, RecurringWithTrial, Tiers, TransformQuantity } from "./PriceFields.ts"

const ProductData = Schema.Struct({
  name: described(ProviderText(250), "The new product's name, which payers see, up to 250 characters"),
  active: optional(Schema.Boolean, "False takes it off sale; default true"),
  statement_descriptor: optional(StatementDescriptor),
  unit_label: optional(UnitLabel),
  metadata: optional(Metadata)
}).annotations({ identifier: "CreatePriceProductData" })

const productRules = (price: {
  readonly product?: string
  readonly product_data?: object
}): ReadonlyArray<BrokenRule> => {
  if (price.product === undefined) {
    return price.product_data === undefined
      ? [{ path: ["product"], message: "is missing; a price needs it or product_data" }]
      : []
  }
  return price.product_data === undefined
    ? []
    : [{ path: ["product_data"], message: "is not accepted together with product: send one of the two" }]
}

const LookupKey = ProviderText(200)

const transfer = {
  transfer_lookup_key: optional(
    Schema.Boolean,
    "With `lookup_key`: true takes the key from the price that has it, in one step. Without it, a key that is taken is refused"
  )
}

/** A transfer without a key to transfer is a mistake: the caller may believe that the key was moved. */
const transferRule = (price: {
  readonly lookup_key?: string | null
  readonly transfer_lookup_key?: boolean
}): ReadonlyArray<BrokenRule> =>
  price.transfer_lookup_key !== undefined && typeof price.lookup_key !== "string"
    ? [{ path: ["transfer_lookup_key"], message: "must not be sent without lookup_key, the key that it transfers" }]
    : []

export const CreatePrice = strict(
  Schema.Struct({
    product: optional(referenceTo("product")),
    product_data: optional(ProductData, "The product that is created with the price"),
    currency: Currency,
    unit_amount: optional(UnitAmount),
    custom_unit_amount: optional(CustomUnitAmount, "Lets the payer choose the amount"),
    tiers: optional(Tiers, "The tiers of a price that has them"),
    tiers_mode: optional(
      Schema.Literal("graduated", "volume").annotations({ identifier: "CreatePriceTiersMode" }),
      "`graduated` charges each unit by its tier, `volume` all units by the last one's"
    ),
    transform_quantity: optional(TransformQuantity),
    recurring: optional(RecurringWithTrial, "The billing interval; without it, the price is charged once"),
    nickname: optional(ProviderText(250), "A note about it, which payers don't see"),
    lookup_key: optional(LookupKey, "Your own name for it, by which it can be listed"),
    ...transfer,
    tax_behavior: optional(TaxBehavior),
    metadata: optional(Metadata)
  })
    .pipe(Schema.filter((price) => [...productRules(price), ...amountRules(price), ...transferRule(price)]))
    .annotations({ identifier: "CreatePrice" })
)
export type CreatePrice = typeof CreatePrice.Type

const fixed = "what a price costs never changes; create another price, and deactivate this one"

/** Body of `PATCH P/prices/{id}` (contract 4.6): absent fields are unchanged. A price's amount never changes. */
export const UpdatePrice = strict(
  Schema.Struct({
    active: optional(Schema.Boolean, "False ends sales at it; a product's default price can't be ended"),
    nickname: optional(
      Schema.NullOr(ProviderText(250)),
      "A note about it of at most 250 characters, which payers don't see; null removes it"
    ),
    lookup_key: optional(
      Schema.NullOr(LookupKey),
      "Your own name for it, of at most 200 characters, by which prices are listed; null removes it"
    ),
    ...transfer,
    metadata: optional(MetadataChanges)
  })
    .annotations(familiar({ currency: fixed, product: fixed, recurring: fixed, unit_amount: fixed }))
    .pipe(Schema.filter(transferRule))
    .annotations({ identifier: "UpdatePrice" })
)
export type UpdatePrice = typeof UpdatePrice.Type

const maximumLookupKeys = 10

/** Lookup keys in a query, as a repeated parameter; a single one arrives as a string. */
const LookupKeysFromQuery = Schema.transform(
  Schema.Union(LookupKey, Schema.Array(LookupKey).pipe(Schema.minItems(1), Schema.maxItems(maximumLookupKeys))),
  Schema.Array(Schema.typeSchema(LookupKey)).pipe(Schema.minItems(1), Schema.maxItems(maximumLookupKeys)),
  { strict: true, decode: (given) => (typeof given === "string" ? [given] : given), encode: (keys) => keys }
).annotations({
  ...rule(`must be 1 to ${maximumLookupKeys} lookup keys of 1 to 200 characters, each as a parameter of its own`),
  jsonSchema: {
    type: "array",
    items: { type: "string", minLength: 1, maxLength: 200 },
    minItems: 1,
    maxItems: maximumLookupKeys,
    description: "Only prices with one of these lookup keys, up to 10; in a query, repeat the parameter for each"
  }
})

export const ListPrices = strict(
  Schema.Struct({
    ...pageFields,
    active: optional(BooleanFromQuery),
    lookup_keys: optional(LookupKeysFromQuery),
    product: optional(referenceTo("product"))
  })
)
export type ListPrices = typeof ListPrices.Type

export class PricesApi extends providerGroup("prices", "Prices on the organization's connected account")
  .add(
    providerCreate("/prices", "products:write", "Create a price")
      .setPayload(CreatePrice)
      .annotate(
        OpenApi.Description,
        "For an existing `product`, or for one that `product_data` creates. Its amount is one of `unit_amount` (with `transform_quantity` per package of units), `custom_unit_amount` (the payer chooses) and `tiers` with `tiers_mode`. Metered usage is not supported: `recurring.usage_type` is ignored."
      )
  )
  .add(providerList("/prices", "products:read", "List prices, each with its tiers").setUrlParams(ListPrices))
  .add(providerGet("/prices/:id", "products:read", "Read a price, with its tiers"))
  .add(
    providerUpdate("/prices/:id", "products:write", "Activate, deactivate or rename a price, or give it a lookup key")
      .setPayload(UpdatePrice)
      .annotate(
        OpenApi.Description,
        "Absent fields are unchanged, null removes a `nickname` or `lookup_key`, and `metadata` is merged. A price's amount never changes: create another one, and move the `lookup_key` to it with `transfer_lookup_key`. A key that another price has is otherwise refused with `provider_resource_already_exists`. Past sales and running subscriptions at a deactivated price are unchanged."
      )
  ) {}
