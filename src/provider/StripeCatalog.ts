import type Stripe from "stripe"
import type { CreatePrice } from "./PricesApi.ts"
import type { CreateProduct } from "./ProductsApi.ts"
import type { Provider } from "./Provider.ts"
import { one, page, type StripeCall } from "./StripeCall.ts"

/** Products and prices at Stripe. */

const productParams = (params: CreateProduct): Stripe.ProductCreateParams => {
  const { images, marketing_features, ...rest } = params
  return {
    ...rest,
    ...(images === undefined ? {} : { images: [...images] }),
    ...(marketing_features === undefined ? {} : { marketing_features: [...marketing_features] })
  }
}

const priceParams = ({ recurring, ...rest }: CreatePrice): Stripe.PriceCreateParams => {
  if (recurring === undefined) {
    return { ...rest, expand: ["tiers"] }
  }
  const { usage_type: _, ...supported } = recurring
  return { ...rest, recurring: supported, expand: ["tiers"] }
}

/** The operations of `Provider` on products and prices. */
export const stripeCatalog = (call: StripeCall) =>
  ({
    createProduct: (account, params, { idempotencyKey }) =>
      one(
        call("products.create", account, (client, scope) =>
          client.products.create(productParams(params), { ...scope, idempotencyKey })
        )
      ),
    retrieveProduct: (account, id) =>
      one(
        call("products.retrieve", account, (client, scope) =>
          client.products.retrieve(id, { expand: ["default_price"] }, scope)
        )
      ),
    listProducts: (account, params) =>
      page(call("products.list", account, (client, scope) => client.products.list(params, scope))),

    createPrice: (account, params, { idempotencyKey }) =>
      one(
        call("prices.create", account, (client, scope) =>
          client.prices.create(priceParams(params), { ...scope, idempotencyKey })
        )
      ),
    retrievePrice: (account, id) =>
      one(
        call("prices.retrieve", account, (client, scope) => client.prices.retrieve(id, { expand: ["tiers"] }, scope))
      ),
    listPrices: (account, params) =>
      page(call("prices.list", account, (client, scope) => client.prices.list(params, scope)))
  }) satisfies Partial<Provider["Type"]>
