import { OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { BooleanFromQuery, described, optional, pageFields, strict } from "../../platform/kit/Request.ts"
import { providerCreate, providerGet, providerGroup, providerList, providerUpdate } from "../Endpoints.ts"
import { amountRules, CustomUnitAmount, Recurring } from "../prices/PriceFields.ts"
import {
  type BrokenRule,
  Currency,
  Metadata,
  MetadataChanges,
  ProviderText,
  referenceTo,
  removable,
  StatementDescriptor,
  TaxBehavior,
  UnitAmount
} from "../Schemas.ts"
import { HttpsUrl, ImageUrl } from "./Urls.ts"

/** A new default price of a product. Tiers, trials and lookup keys need `POST P/prices`. */
export const DefaultPriceData = Schema.Struct({
  currency: Currency,
  unit_amount: optional(UnitAmount),
  custom_unit_amount: optional(CustomUnitAmount, "Lets the payer choose the amount"),
  recurring: optional(Recurring, "The billing interval; without it, the price is charged once"),
  tax_behavior: optional(TaxBehavior),
  metadata: optional(Metadata)
})
  .pipe(Schema.filter(amountRules))
  .annotations({ identifier: "DefaultPriceData" })
export type DefaultPriceData = typeof DefaultPriceData.Type

/** The text that payers read beneath a product's name. The bound is the provider's. */
const Description = ProviderText(40_000).annotations({
  description: "The text beneath the name, up to 40,000 characters"
})

const MarketingFeature = Schema.Struct({
  name: described(ProviderText(80), "One feature, as the pricing table says it, up to 80 characters")
}).annotations({ identifier: "MarketingFeatures" })

/** The name and the unit of a product. The bounds are the provider's. */
const Name = ProviderText(250).annotations({
  description: "The name that payers see at checkout and on receipts, up to 250 characters"
})
export const UnitLabel = ProviderText(12).annotations({
  description: "The name of one unit on invoices, such as `seat`; up to 12 characters"
})

const productFields = {
  images: optional(
    Schema.Array(ImageUrl).pipe(Schema.maxItems(8)),
    "Up to 8 public https URLs, the first one shown first"
  ),
  marketing_features: optional(
    Schema.Array(MarketingFeature).pipe(Schema.maxItems(15)),
    "The features that a pricing table lists"
  ),
  shippable: optional(Schema.Boolean, "Whether it is a physical good"),
  statement_descriptor: optional(StatementDescriptor)
}

export const CreateProduct = strict(
  Schema.Struct({
    name: Name,
    active: optional(Schema.Boolean, "False takes it off sale; default true"),
    default_price_data: optional(DefaultPriceData, "The price that is created with the product"),
    ...productFields,
    description: optional(Description),
    metadata: optional(Metadata),
    unit_label: optional(UnitLabel),
    url: optional(HttpsUrl, "A page about the product that anybody can open")
  }).annotations({ identifier: "CreateProduct" })
)
export type CreateProduct = typeof CreateProduct.Type

const priceRule = (product: {
  readonly default_price?: string
  readonly default_price_data?: object
}): ReadonlyArray<BrokenRule> =>
  product.default_price !== undefined && product.default_price_data !== undefined
    ? [{ path: ["default_price_data"], message: "is not accepted together with default_price: send one of the two" }]
    : []

/** The default price is replaced by another of the product (`default_price`) or a new one. */
export const UpdateProduct = strict(
  Schema.Struct({
    name: optional(Name),
    active: optional(Schema.Boolean, "False takes it off sale, true puts it back"),
    default_price: optional(referenceTo("price"), "The id of another of its prices, to be sold at from now on"),
    default_price_data: optional(DefaultPriceData, "A new price, to be sold at from now on"),
    ...productFields,
    description: removable(Description),
    metadata: optional(MetadataChanges),
    unit_label: removable(UnitLabel),
    url: removable(HttpsUrl)
  })
    .pipe(Schema.filter(priceRule))
    .annotations({ identifier: "UpdateProduct" })
)
export type UpdateProduct = typeof UpdateProduct.Type

export const ListProducts = strict(Schema.Struct({ ...pageFields, active: optional(BooleanFromQuery) }))
export type ListProducts = typeof ListProducts.Type

export class ProductsApi extends providerGroup("products", "Products on the organization's connected account")
  .add(
    providerCreate("/products", "products:write", "Create a product")
      .setPayload(CreateProduct)
      .annotate(OpenApi.Description, "With `default_price_data`, its default price is created with it.")
  )
  .add(
    providerList("/products", "products:read", "List products, each with its default price").setUrlParams(ListProducts)
  )
  .add(providerGet("/products/:id", "products:read", "Read a product, with its default price"))
  .add(
    providerUpdate("/products/:id", "products:write", "Change a product, or replace its default price")
      .setPayload(UpdateProduct)
      .annotate(
        OpenApi.Description,
        "Absent fields are unchanged, and `metadata` is merged. `default_price` sets one of the product's prices, `default_price_data` creates a new one: a financial mutation, which needs an `Idempotency-Key`. The former price stays as it is."
      )
  ) {}
