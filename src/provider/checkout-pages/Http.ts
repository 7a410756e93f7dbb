import { Effect, Schema } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { handlersOf, serve } from "../../kit/Handlers.ts"
import { Idempotency } from "../../kit/Idempotency.ts"
import { CheckoutPage, CheckoutPagesApi } from "./Api.ts"
import { CheckoutPages } from "./CheckoutPages.ts"

export const checkoutPagesHandlers = Effect.gen(function* () {
  const pages = yield* CheckoutPages
  const idempotency = yield* Idempotency
  return handlersOf(CheckoutPagesApi, {
    create: ({ headers, payload }) =>
      Effect.flatMap(Principal, (principal) =>
        idempotency.runInTransaction(
          {
            tenant: principal,
            key: headers["idempotency-key"],
            operation: "checkout_pages.create",
            parameters: payload,
            encode: Schema.encodeSync(CheckoutPage)
          },
          pages.prepareCreate(principal, payload)
        )
      ),
    list: ({ urlParams }) => Effect.flatMap(Principal, (principal) => pages.list(principal, urlParams)),
    get: ({ path }) => Effect.flatMap(Principal, (principal) => pages.get(principal, path.id)),
    update: ({ headers, path, payload }) =>
      Effect.flatMap(Principal, (principal) =>
        idempotency.runInTransaction(
          {
            tenant: principal,
            key: headers["idempotency-key"],
            operation: "checkout_pages.update",
            parameters: { id: path.id, ...payload },
            encode: Schema.encodeSync(CheckoutPage)
          },
          pages.prepareUpdate(principal, path.id, payload)
        )
      ),
    delete: ({ path }) => Effect.flatMap(Principal, (principal) => pages.delete(principal, path.id))
  })
})

export const checkoutPagesHttp = serve(CheckoutPagesApi, checkoutPagesHandlers)
