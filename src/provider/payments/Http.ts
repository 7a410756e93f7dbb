import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { BaseApi } from "../../kit/BaseApi.ts"
import { onAccount } from "../AccountOperations.ts"
import { operationsOf } from "../Operations.ts"
import { pageShownTo, shownTo, withoutPayer } from "../PersonalData.ts"
import { Provider } from "../Provider.ts"
import { ChargesApi, PaymentIntentsApi } from "./Api.ts"

/** What the operations of `ChargesApi` do. */
export const chargesOperations = Effect.map(Provider, (provider) =>
  operationsOf(ChargesApi, {
    list: ({ urlParams }) =>
      onAccount((account) => provider.listCharges(account, urlParams)).pipe(Effect.flatMap(pageShownTo(withoutPayer))),
    get: ({ path }) =>
      onAccount((account) => provider.retrieveCharge(account, path.id)).pipe(Effect.flatMap(shownTo(withoutPayer)))
  })
)

/** Serves `ChargesApi`. */
export const chargesHttp = HttpApiBuilder.group(BaseApi.add(ChargesApi), "charges", (handlers) =>
  Effect.map(chargesOperations, (operations) => handlers.handle("list", operations.list).handle("get", operations.get))
)

/** What the operations of `PaymentIntentsApi` do. */
export const paymentIntentsOperations = Effect.map(Provider, (provider) =>
  operationsOf(PaymentIntentsApi, {
    list: ({ urlParams }) =>
      onAccount((account) => provider.listPaymentIntents(account, urlParams)).pipe(
        Effect.flatMap(pageShownTo(withoutPayer))
      ),
    get: ({ path }) =>
      onAccount((account) => provider.retrievePaymentIntent(account, path.id)).pipe(
        Effect.flatMap(shownTo(withoutPayer))
      )
  })
)

/** Serves `PaymentIntentsApi`. */
export const paymentIntentsHttp = HttpApiBuilder.group(BaseApi.add(PaymentIntentsApi), "paymentIntents", (handlers) =>
  Effect.map(paymentIntentsOperations, (operations) =>
    handlers.handle("list", operations.list).handle("get", operations.get)
  )
)
