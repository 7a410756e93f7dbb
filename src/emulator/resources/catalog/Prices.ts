import { Effect, Schema } from "effect"
import * as Params from "../../api/Params.ts"
import { named, type RequestContext, type Route } from "../../api/Route.ts"
import { invalid, type ProviderError } from "../../ProviderError.ts"
import type { Price } from "../../Records.ts"
import { resource } from "../Resource.ts"
import { createPrice, pricingParams } from "./PriceCreation.ts"
import { createProduct, productDataParams } from "./Products.ts"

const createParams = Schema.Struct({
  ...pricingParams,
  product: Params.optional(Params.text()),
  product_data: Params.optional(productDataParams),
  transfer_lookup_key: Params.optional(Params.boolean)
})

const updateParams = Schema.Struct({
  active: Params.optional(Params.boolean),
  lookup_key: Params.optional(Params.clearable(Params.text(200))),
  metadata: Params.optional(Params.metadata),
  nickname: Params.optional(Params.clearable(Params.text())),
  tax_behavior: Params.optional(Params.oneOf("exclusive", "inclusive", "unspecified")),
  transfer_lookup_key: Params.optional(Params.boolean)
})

const filters = Params.optionals({
  active: Params.boolean,
  created: Params.range,
  currency: Params.currency,
  lookup_keys: Params.listOf(Params.text(200), 10),
  product: Params.text(),
  recurring: Params.optionals({
    interval: Params.oneOf("day", "week", "month", "year"),
    usage_type: Params.oneOf("licensed", "metered")
  }),
  type: Params.oneOf("one_time", "recurring")
})

/** The product of a new price: an existing one, or one that is created with the price. */
const productOf = Effect.fnUntraced(function* (context: RequestContext, params: typeof createParams.Type) {
  if (params.product !== undefined && params.product_data !== undefined) {
    return yield* invalid(
      "product_data",
      "You may only specify one of these parameters: product, product_data.",
      "parameters_exclusive"
    )
  }
  if (params.product_data !== undefined) return (yield* createProduct(context, params.product_data)).id
  if (params.product === undefined) {
    return yield* invalid("product", "Missing required param: product.", "parameter_missing")
  }
  return (yield* named(context, "product", params.product)).id
})

/** Takes a lookup key from its holder if the request says so, otherwise fails. */
const claimLookupKey = (
  context: RequestContext,
  { lookup_key, transfer_lookup_key }: Pick<typeof updateParams.Type, "lookup_key" | "transfer_lookup_key">,
  claimant?: string
): Effect.Effect<void, ProviderError> => {
  if (lookup_key === undefined || lookup_key === null) return Effect.void
  const holder = context.objects.all("price").find((price) => price.lookup_key === lookup_key && price.id !== claimant)
  if (holder === undefined) return Effect.void
  if (transfer_lookup_key !== true) {
    return invalid("lookup_key", `A price (\`${holder.id}\`) already uses that lookup key.`, "resource_already_exists")
  }
  context.save("price", "price.updated", { ...holder, lookup_key: null }, holder)
  return Effect.void
}

const create = Effect.fnUntraced(function* (context: RequestContext, params: typeof createParams.Type) {
  const { product: _, product_data: __, transfer_lookup_key: ___, ...pricing } = params
  yield* claimLookupKey(context, params)
  const price = yield* createPrice(context, yield* productOf(context, params), pricing)
  context.emit({ type: "price.created", shape: "price", object: price })
  return price
})

const prices = resource("/v1/prices", "price")

const update = Effect.fnUntraced(function* (context: RequestContext, params: typeof updateParams.Type, before: Price) {
  const { metadata: patch, transfer_lookup_key: _, ...rest } = params
  const metadata = yield* Params.changedMetadata(before.metadata, patch)
  if (params.active === false && context.objects.get("product", before.product)?.default_price === before.id) {
    return yield* invalid("active", "This price cannot be archived because it is the default price of its product.")
  }
  const settled = before.tax_behavior !== "unspecified"
  if (settled && params.tax_behavior !== undefined && params.tax_behavior !== before.tax_behavior) {
    return yield* invalid(
      "tax_behavior",
      `The tax behavior of a price cannot be changed once it is \`${before.tax_behavior}\`.`
    )
  }
  yield* claimLookupKey(context, params, before.id)
  const price: Price = { ...before, ...rest, metadata }
  return context.save("price", "price.updated", price, before)
})

export const priceRoutes: ReadonlyArray<Route> = [
  prices.create(createParams, create),
  prices.list(filters, {
    matches: {
      lookup_keys: ({ lookup_key }, asked) =>
        asked === undefined || (lookup_key !== null && asked.includes(lookup_key)),
      recurring: ({ recurring }, asked) =>
        (asked?.interval === undefined || asked.interval === recurring?.interval) &&
        (asked?.usage_type === undefined || asked.usage_type === recurring?.usage_type)
    }
  }),
  prices.get,
  prices.update(updateParams, update)
]
