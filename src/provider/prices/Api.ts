import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Authentication } from "../../identity/Authentication.ts"
import { RequiredPermission } from "../../identity/keys/Permissions.ts"
import {
  BooleanFromQuery,
  IdempotencyHeaders,
  NoQuery,
  OrganizationPath,
  optional,
  ProviderObjectPath,
  pageFields,
  strict
} from "../../kit/Request.ts"
import { providerErrors } from "../ProviderErrors.ts"
import {
  type BrokenRule,
  Currency,
  Metadata,
  ProviderObject,
  ProviderPage,
  ProviderText,
  Reference,
  StatementDescriptor,
  TaxBehavior,
  UnitAmount
} from "../Schemas.ts"
import { amountRules, CustomUnitAmount, RecurringWithTrial, Tiers, TransformQuantity } from "./PriceFields.ts"

/** A product that is created with its price. */
const ProductData = Schema.Struct({
  name: ProviderText(250),
  active: optional(Schema.Boolean),
  statement_descriptor: optional(StatementDescriptor),
  unit_label: optional(ProviderText(12)),
  metadata: optional(Metadata)
})

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
    : [{ path: ["product_data"], message: "is not taken together with product: send one of the two" }]
}

/** Body of `POST P/prices` (contract 4.6). */
export const CreatePrice = strict(
  Schema.Struct({
    product: optional(Reference),
    product_data: optional(ProductData),
    currency: Currency,
    unit_amount: optional(UnitAmount),
    custom_unit_amount: optional(CustomUnitAmount),
    tiers: optional(Tiers),
    tiers_mode: optional(Schema.Literal("graduated", "volume")),
    transform_quantity: optional(TransformQuantity),
    recurring: optional(RecurringWithTrial),
    nickname: optional(ProviderText(250)),
    lookup_key: optional(ProviderText(200)),
    tax_behavior: optional(TaxBehavior),
    metadata: optional(Metadata)
  })
    .pipe(Schema.filter((price) => [...productRules(price), ...amountRules(price)]))
    .annotations({ identifier: "CreatePrice" })
)
export type CreatePrice = typeof CreatePrice.Type

/** Query of `GET P/prices`. */
export const ListPrices = strict(
  Schema.Struct({
    ...pageFields,
    active: optional(BooleanFromQuery),
    product: optional(Reference)
  })
)
export type ListPrices = typeof ListPrices.Type

/** Prices on the organization's connected account. */
export class PricesApi extends HttpApiGroup.make("prices")
  .add(
    HttpApiEndpoint.post("create", "/prices")
      .setPath(OrganizationPath)
      .setUrlParams(NoQuery)
      .setHeaders(IdempotencyHeaders)
      .setPayload(CreatePrice)
      .addSuccess(ProviderObject)
      .annotate(RequiredPermission, "products:write")
      .annotate(OpenApi.Summary, "Create a price")
      .annotate(
        OpenApi.Description,
        "For an existing `product`, or for one that `product_data` creates. Its amount is one of `unit_amount` (with `transform_quantity` per package of units), `custom_unit_amount` (the payer chooses) and `tiers` with `tiers_mode`. Metered usage is not supported: `recurring.usage_type` is ignored."
      )
  )
  .add(
    HttpApiEndpoint.get("list", "/prices")
      .setPath(OrganizationPath)
      .setUrlParams(ListPrices)
      .addSuccess(ProviderPage)
      .annotate(RequiredPermission, "products:read")
      .annotate(OpenApi.Summary, "List prices")
  )
  .add(
    HttpApiEndpoint.get("get", "/prices/:id")
      .setPath(ProviderObjectPath)
      .setUrlParams(NoQuery)
      .addSuccess(ProviderObject)
      .annotate(RequiredPermission, "products:read")
      .annotate(OpenApi.Summary, "Read a price, with its tiers")
  )
  .addError(providerErrors)
  .middleware(Authentication)
  .prefix("/v2/organizations/:organizationId/provider")
  .annotate(OpenApi.Description, "Prices on the organization's connected account") {}
