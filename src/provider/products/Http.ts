import { Effect } from "effect"
import { refusal } from "../../bounds/Refusals.ts"
import { ValidationFailed } from "../../errors/Errors.ts"
import { Principal } from "../../identity/Principal.ts"
import { Images } from "../../images/Images.ts"
import { handlersOf, serve } from "../../kit/Handlers.ts"
import { onAccount, write, writeOnAccount } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { ProductsApi } from "./Api.ts"
import { Products, requireKeyForPrice } from "./Products.ts"
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

export const productsHandlers = Effect.gen(function* () {
  const provider = yield* Provider
  const products = yield* Products
  const images = yield* Images
  return handlersOf(ProductsApi, {
    create: ({ headers, payload }) =>
      Effect.zipRight(
        requireImages(images, payload),
        writeOnAccount(
          {
            operation: "products.create",
            callerKey: headers["idempotency-key"],
            parameters: payload,
            action: "product.created",
            targetType: "product"
          },
          (account, options) => provider.createProduct(account, payload, options)
        )
      ),
    list: ({ urlParams }) => onAccount((account) => provider.listProducts(account, urlParams)),
    get: ({ path }) => onAccount((account) => provider.retrieveProduct(account, path.id)),
    update: Effect.fnUntraced(function* ({ headers, path, payload }) {
      const principal = yield* Principal
      yield* requireImages(images, payload)
      yield* requireKeyForPrice(payload, headers["idempotency-key"])
      return yield* write(
        {
          operation: "products.update",
          callerKey: headers["idempotency-key"],
          parameters: { id: path.id, changes: payload },
          action: "product.updated",
          targetType: "product"
        },
        (effectKey) => products.update(principal, path.id, payload, effectKey)
      )
    })
  })
})

export const productsHttp = serve(ProductsApi, productsHandlers)
