import { Effect } from "effect"
import type Stripe from "stripe"
import { chosenByPayer, withoutUsage } from "../prices/StripePrices.ts"
import { explainRounding } from "../RoundedAmounts.ts"
import { named, one, page, type StripeCall } from "../stripe/StripeCall.ts"
import { metadataParams } from "../stripe/StripeMetadata.ts"
import type { CreateProduct, DefaultPriceData } from "./Api.ts"
import type { ProductChanges, ProductsPort } from "./Port.ts"

/** Products, single or listed, are returned with their default price as an object (contract 4.13). */
const expanded = { expand: ["default_price"] }
const expandedEach = { expand: ["data.default_price"] }

const defaultPriceParams = ({
  custom_unit_amount,
  recurring,
  ...rest
}: DefaultPriceData): Stripe.ProductCreateParams.DefaultPriceData => ({
  ...rest,
  ...(custom_unit_amount === undefined ? {} : { custom_unit_amount: chosenByPayer(custom_unit_amount) }),
  ...(recurring === undefined ? {} : { recurring: withoutUsage(recurring) })
})

export const productParams = (params: CreateProduct): Stripe.ProductCreateParams => {
  const { default_price_data, images, marketing_features, ...rest } = params
  return {
    ...rest,
    ...(default_price_data === undefined ? {} : { default_price_data: defaultPriceParams(default_price_data) }),
    ...(images === undefined ? {} : { images: [...images] }),
    ...(marketing_features === undefined ? {} : { marketing_features: [...marketing_features] }),
    ...expanded
  }
}

/** A list in a change: form encoding can't express an empty one, so Stripe accepts an empty string instead. */
const list = <A>(items: ReadonlyArray<A>): Array<A> | "" => (items.length === 0 ? "" : [...items])

export const productChangeParams = (changes: ProductChanges): Stripe.ProductUpdateParams => {
  const { images, marketing_features, metadata, ...rest } = changes
  return {
    ...rest,
    ...(images === undefined ? {} : { images: list(images) }),
    ...(marketing_features === undefined ? {} : { marketing_features: list(marketing_features) }),
    ...metadataParams(metadata),
    ...expanded
  }
}

export const stripeProducts = (call: StripeCall): ProductsPort => ({
  createProduct: (account, params, { idempotencyKey }) =>
    one(
      call("products.create", account, (client, scope) =>
        client.products.create(productParams(params), { ...scope, idempotencyKey })
      )
    ).pipe(Effect.mapError(explainRounding(params.default_price_data?.currency))),
  updateProduct: (account, id, changes, { idempotencyKey }) =>
    named(
      call("products.update", account, (client, scope) =>
        client.products.update(id, productChangeParams(changes), { ...scope, idempotencyKey })
      )
    ),
  retrieveProduct: (account, id) =>
    named(call("products.retrieve", account, (client, scope) => client.products.retrieve(id, expanded, scope))),
  listProducts: (account, params) =>
    page(call("products.list", account, (client, scope) => client.products.list({ ...params, ...expandedEach }, scope)))
})
