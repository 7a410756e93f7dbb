import { Effect } from "effect"
import { keyedWrite } from "../../identity/KeyedWrite.ts"
import { Principal } from "../../identity/Principal.ts"
import { handlersOf } from "../../platform/kit/Handlers.ts"
import { CheckoutPage, CheckoutPagesApi } from "./Api.ts"
import { CheckoutPages } from "./CheckoutPages.ts"

export const checkoutPagesHandlers = handlersOf(
  CheckoutPagesApi,
  Effect.all([CheckoutPages, keyedWrite]),
  ([pages, write]) => ({
    create: (request) =>
      write.prepared({ operation: "checkout_pages.create", answer: CheckoutPage }, request, (principal) =>
        pages.prepareCreate(principal, request.payload)
      ),
    list: ({ urlParams }) => Effect.flatMap(Principal, (principal) => pages.list(principal, urlParams)),
    get: ({ path }) => Effect.flatMap(Principal, (principal) => pages.get(principal, path.id)),
    update: (request) =>
      write.prepared({ operation: "checkout_pages.update", answer: CheckoutPage }, request, (principal) =>
        pages.prepareUpdate(principal, request.path.id, request.payload)
      ),
    delete: (request) =>
      write.deletion("checkout_pages.delete", request, (principal) => pages.delete(principal, request.path.id))
  })
)
