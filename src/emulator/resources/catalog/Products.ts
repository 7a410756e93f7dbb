import { Effect, Schema } from "effect"
import * as Params from "../../api/Params.ts"
import { noParams, type RequestContext, type Route } from "../../api/Route.ts"
import { newId } from "../../Ids.ts"
import { firstOf, invalid, type ProviderError, refuse, resourceMissing } from "../../ProviderError.ts"
import { given, type Product } from "../../Records.ts"
import { resource } from "../Resource.ts"
import { amountParams, createPrice } from "./PriceCreation.ts"

const description = Params.text(40_000)
const images = Params.listOf(Params.url, 8)
const marketingFeatures = Params.listOf(Schema.Struct({ name: Params.text(80) }), 15)
const packageDimensions = Schema.Struct({
  height: Params.positive,
  length: Params.positive,
  weight: Params.positive,
  width: Params.positive
})
const statementDescriptor = Params.matching(/^(?=.*[A-Za-z])[^<>\\"'*]{1,22}$/, "statement descriptor")
const taxCode = Params.matching(/^txcd_\d{8}$/, "tax code")

export const productDataParams = Schema.Struct({
  active: Params.optional(Params.boolean),
  id: Params.optional(Params.matching(/^[A-Za-z0-9_-]{1,255}$/, "id")),
  metadata: Params.optional(Params.metadata),
  name: Params.text(),
  statement_descriptor: Params.optional(statementDescriptor),
  tax_code: Params.optional(taxCode),
  unit_label: Params.optional(Params.text(255))
})

const createParams = Schema.Struct({
  ...productDataParams.fields,
  default_price_data: Params.optional(Schema.Struct(amountParams)),
  description: Params.optional(description),
  images: Params.optional(images),
  marketing_features: Params.optional(marketingFeatures),
  package_dimensions: Params.optional(packageDimensions),
  shippable: Params.optional(Params.boolean),
  type: Params.optional(Params.oneOf("good", "service")),
  url: Params.optional(Params.url)
})

const updateParams = Schema.Struct({
  active: Params.optional(Params.boolean),
  default_price: Params.optional(Params.clearable(Params.text())),
  description: Params.optional(Params.clearable(description)),
  images: Params.optional(Params.clearable(images)),
  marketing_features: Params.optional(Params.clearable(marketingFeatures)),
  metadata: Params.optional(Params.metadata),
  name: Params.optional(Params.text()),
  package_dimensions: Params.optional(Params.clearable(packageDimensions)),
  shippable: Params.optional(Params.boolean),
  statement_descriptor: Params.optional(Params.clearable(statementDescriptor)),
  tax_code: Params.optional(Params.clearable(taxCode)),
  unit_label: Params.optional(Params.clearable(Params.text(255))),
  url: Params.optional(Params.clearable(Params.url))
})

const makeProduct = (id: string, created: number, params: typeof createParams.Type): Product => ({
  id,
  object: "product",
  active: params.active ?? true,
  created,
  default_price: null,
  ...given(params, "description package_dimensions shippable statement_descriptor tax_code unit_label url"),
  images: params.images ?? [],
  livemode: false,
  marketing_features: params.marketing_features ?? [],
  metadata: Params.patchMetadata({}, params.metadata),
  name: params.name,
  tax_details: null,
  type: params.type ?? "service",
  updated: created
})

/** Creates a product, and its default price if one is described. Error: `resource_already_exists` for an id in use. */
export const createProduct = Effect.fnUntraced(function* (context: RequestContext, params: typeof createParams.Type) {
  const id = params.id ?? newId("prod_")
  if (context.objects.get("product", id) !== undefined) {
    return yield* invalid("id", `Product already exists: '${id}'`, "resource_already_exists")
  }
  const product = makeProduct(id, context.now, params)
  if (params.default_price_data === undefined) {
    return context.save("product", "product.created", product)
  }
  const price = yield* createPrice(context, id, params.default_price_data, "default_price_data")
  const priced = { ...product, default_price: price.id }
  context.save("product", "product.created", priced)
  context.emit({ type: "price.created", shape: "price", object: price })
  return priced
})

const products = resource("/v1/products", "product")

const checkDefaultPrice = (
  context: RequestContext,
  product: Product,
  id: string | null | undefined
): Effect.Effect<void, ProviderError> => {
  if (id === undefined || id === null) return Effect.void
  const price = context.objects.get("price", id)
  if (price === undefined) return resourceMissing("price", id, "default_price")
  return firstOf(
    price.product !== product.id &&
      invalid("default_price", `The price ${id} belongs to another product than ${product.id}.`),
    !price.active && invalid("default_price", "An inactive price cannot be the default price.")
  )
}

/** The changes of an update; null empties a list. */
const changesOf = ({ images, marketing_features, metadata: _, ...rest }: typeof updateParams.Type) => ({
  ...rest,
  ...(images === undefined ? {} : { images: images ?? [] }),
  ...(marketing_features === undefined ? {} : { marketing_features: marketing_features ?? [] })
})

const updateProduct = Effect.fnUntraced(function* (
  context: RequestContext,
  params: typeof updateParams.Type,
  before: Product
) {
  yield* checkDefaultPrice(context, before, params.default_price)
  const metadata = yield* Params.changedMetadata(before.metadata, params.metadata)
  const product: Product = { ...before, ...changesOf(params), metadata, updated: context.now }
  return context.save("product", "product.updated", product, before)
})

const deleteProduct = (context: RequestContext, _: object, product: Product): Effect.Effect<object, ProviderError> => {
  const { id } = product
  if (context.objects.all("price").some((price) => price.product === id)) {
    return refuse({ message: "This product cannot be deleted because it has one or more user-created prices." })
  }
  context.objects.remove("product", id)
  context.emit({ type: "product.deleted", shape: "product", object: product })
  return Effect.succeed({ id, object: "product", deleted: true })
}

export const productRoutes: ReadonlyArray<Route> = [
  products.create(createParams, createProduct),
  products.list(
    Params.optionals({
      active: Params.boolean,
      created: Params.range,
      ids: Params.listOf(Params.text()),
      shippable: Params.boolean,
      url: Params.url
    }),
    { matches: { ids: ({ id }, ids = [id]) => ids.includes(id) } }
  ),
  products.get,
  products.update(updateParams, updateProduct),
  products.remove("deleted")(noParams, deleteProduct)
]
