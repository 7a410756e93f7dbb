import { Effect } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { refusal } from "../../platform/bounds/Refusals.ts"
import { ValidationFailed } from "../../platform/errors/Errors.ts"
import { handlersOf } from "../../platform/kit/Handlers.ts"
import { reading, write, writeOnAccount } from "../AccountOperations.ts"
import { Images } from "../images/Images.ts"
import { Provider } from "../Provider.ts"
import { ProductsApi } from "./Api.ts"
import { makeProducts, requireKeyForPrice } from "./Products.ts"
import { imageRule } from "./Urls.ts"

/** Requires that each image's URL is https or the service's own, since a local start serves images over http. */
const requireImages = (
  { isOwn }: Images["Type"],
  { images = [] }: { readonly images?: ReadonlyArray<string> }
): Effect.Effect<void, ValidationFailed> => {
  const refused = images.flatMap((url, index) => (/^https:/i.test(url) || isOwn(url) ? [] : [`images.${index}`]))
  return refused.length === 0
    ? Effect.void
    : new ValidationFailed(refusal(new Map(refused.map((field) => [field, imageRule]))))
}

export const productsHandlers = handlersOf(
  ProductsApi,
  Effect.all([Provider, makeProducts, Images]),
  ([provider, products, images]) => ({
    ...reading(provider.listProducts, provider.retrieveProduct),
    create: (request) =>
      Effect.zipRight(
        requireImages(images, request.payload),
        writeOnAccount({ operation: "products.create", action: "product.created" }, request, (account, options) =>
          provider.createProduct(account, request.payload, options)
        )
      ),
    update: Effect.fnUntraced(function* (request) {
      const principal = yield* Principal
      yield* requireImages(images, request.payload)
      yield* requireKeyForPrice(request.payload, request.headers["idempotency-key"])
      return yield* write({ operation: "products.update", action: "product.updated" }, request, (keyFor) =>
        products.update(principal, request.path.id, request.payload, keyFor)
      )
    })
  })
)
