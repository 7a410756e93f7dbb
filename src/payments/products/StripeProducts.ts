import { Effect } from "effect"
import type Stripe from "stripe"
import type { ChangeObject, CreateObject, ListObjects, RetrieveObject } from "../ProviderCall.ts"
import { chosenByPayer, withoutUsage } from "../prices/StripePrices.ts"
import { explainRounding } from "../RoundedAmounts.ts"
import type { StripeCall } from "../stripe/StripeCall.ts"
import { metadataParams, stripeObjects } from "../stripe/StripeObjects.ts"
import type { CreateProduct, DefaultPriceData, ListProducts, UpdateProduct } from "./Api.ts"

/** A change of a product. A new default price is created first, since the provider takes only its id here. */
export type ProductChanges = Omit<UpdateProduct, "default_price_data">

export interface ProductsPort {
  readonly createProduct: CreateObject<CreateProduct>
  /** Absent fields stay as they are; an empty list or text removes the current value. */
  readonly updateProduct: ChangeObject<ProductChanges>
  /** With `default_price` as an object, as in the answers to changes and in lists. */
  readonly retrieveProduct: RetrieveObject
  readonly listProducts: ListObjects<ListProducts>
}

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

export const stripeProducts = (call: StripeCall): ProductsPort => {
  const { create, list, retrieve, update } = stripeObjects(call)
  const createProduct = create("products.create", (client) => client.products, productParams)
  return {
    createProduct: (account, params, options) =>
      Effect.mapError(createProduct(account, params, options), explainRounding(params.default_price_data?.currency)),
    updateProduct: update("products.update", (client) => client.products, productChangeParams),
    retrieveProduct: retrieve("products.retrieve", (client) => client.products, expanded),
    listProducts: list(
      "products.list",
      (client) => client.products,
      (params) => ({ ...params, ...expandedEach })
    )
  }
}
