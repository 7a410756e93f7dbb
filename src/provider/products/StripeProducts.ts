import { Effect } from "effect"
import type Stripe from "stripe"
import type { ProductChanges, Provider } from "../Provider.ts"
import type { CreatePrice } from "../prices/Api.ts"
import { inOurNames } from "../RefusedFields.ts"
import { named, one, page, type StripeCall } from "../stripe/StripeCall.ts"
import type { CreateProduct } from "./Api.ts"

/** Products and prices at Stripe. */

const expandedProduct = { expand: ["default_price"] }
const expandedPrice = { expand: ["tiers"] }

/** Metered prices are not supported: the field is dropped (contract 4.6). */
const withoutUsage = <A extends { readonly usage_type?: string }>(recurring: A): Omit<A, "usage_type"> => {
  const { usage_type: _, ...supported } = recurring
  return supported
}

type DefaultPriceData = NonNullable<CreateProduct["default_price_data"]>

const defaultPriceParams = ({
  custom_unit_amount,
  recurring,
  ...rest
}: DefaultPriceData): Stripe.ProductCreateParams.DefaultPriceData => ({
  ...rest,
  ...(custom_unit_amount === undefined ? {} : { custom_unit_amount: { ...custom_unit_amount, enabled: true } }),
  ...(recurring === undefined ? {} : { recurring: withoutUsage(recurring) })
})

/** The parameters of a new product. */
export const productParams = (params: CreateProduct): Stripe.ProductCreateParams => {
  const { default_price_data, images, marketing_features, ...rest } = params
  return {
    ...rest,
    ...(default_price_data === undefined ? {} : { default_price_data: defaultPriceParams(default_price_data) }),
    ...(images === undefined ? {} : { images: [...images] }),
    ...(marketing_features === undefined ? {} : { marketing_features: [...marketing_features] }),
    ...expandedProduct
  }
}

/** An empty list has no form on the wire: the provider takes an empty string for it. */
const list = <A>(items: ReadonlyArray<A>): Array<A> | "" => (items.length === 0 ? "" : [...items])

/** The parameters of a product's change. */
export const productChangeParams = (changes: ProductChanges): Stripe.ProductUpdateParams => {
  const { images, marketing_features, ...rest } = changes
  return {
    ...rest,
    ...(images === undefined ? {} : { images: list(images) }),
    ...(marketing_features === undefined ? {} : { marketing_features: list(marketing_features) }),
    ...expandedProduct
  }
}

/** The parameters of a new price. */
export const priceParams = (params: CreatePrice): Stripe.PriceCreateParams => {
  const { custom_unit_amount, recurring, tiers, ...rest } = params
  return {
    ...rest,
    ...(custom_unit_amount === undefined ? {} : { custom_unit_amount: { ...custom_unit_amount, enabled: true } }),
    ...(recurring === undefined ? {} : { recurring: withoutUsage(recurring) }),
    ...(tiers === undefined ? {} : { billing_scheme: "tiered", tiers: tiers.map((tier) => ({ ...tier })) }),
    ...expandedPrice
  }
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
    updateProduct: (account, id, changes, { idempotencyKey }) =>
      named(
        call("products.update", account, (client, scope) =>
          client.products.update(id, productChangeParams(changes), { ...scope, idempotencyKey })
        )
      ),
    retrieveProduct: (account, id) =>
      named(
        call("products.retrieve", account, (client, scope) => client.products.retrieve(id, expandedProduct, scope))
      ),
    listProducts: (account, params) =>
      page(call("products.list", account, (client, scope) => client.products.list(params, scope))),

    createPrice: (account, params, { idempotencyKey }) =>
      one(
        call("prices.create", account, (client, scope) =>
          client.prices.create(priceParams(params), { ...scope, idempotencyKey })
        )
      ).pipe(Effect.mapError(inOurNames({ billing_scheme: "tiers" }))),
    deactivatePrice: (account, id, { idempotencyKey }) =>
      named(
        call("prices.update", account, (client, scope) =>
          client.prices.update(id, { active: false }, { ...scope, idempotencyKey })
        )
      ),
    retrievePrice: (account, id) =>
      named(call("prices.retrieve", account, (client, scope) => client.prices.retrieve(id, expandedPrice, scope))),
    listPrices: (account, params) =>
      page(call("prices.list", account, (client, scope) => client.prices.list(params, scope)))
  }) satisfies Partial<Provider["Type"]>
