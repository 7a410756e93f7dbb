import { Effect } from "effect"
import { handlersOf, serve } from "../../kit/Handlers.ts"
import { onAccount } from "../AccountOperations.ts"
import { pageShownTo, shownTo, withoutPayer } from "../PersonalData.ts"
import { Provider } from "../Provider.ts"
import { ChargesApi, PaymentIntentsApi } from "./Api.ts"

export const chargesHandlers = Effect.map(Provider, (provider) =>
  handlersOf(ChargesApi, {
    list: ({ urlParams }) =>
      onAccount((account) => provider.listCharges(account, urlParams)).pipe(Effect.flatMap(pageShownTo(withoutPayer))),
    get: ({ path }) =>
      onAccount((account) => provider.retrieveCharge(account, path.id)).pipe(Effect.flatMap(shownTo(withoutPayer)))
  })
)

export const chargesHttp = serve(ChargesApi, chargesHandlers)

export const paymentIntentsHandlers = Effect.map(Provider, (provider) =>
  handlersOf(PaymentIntentsApi, {
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

export const paymentIntentsHttp = serve(PaymentIntentsApi, paymentIntentsHandlers)
