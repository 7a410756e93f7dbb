import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { BaseApi } from "../../kit/BaseApi.ts"
import { onAccount } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { ChargesApi, PaymentIntentsApi } from "./Api.ts"

/** Serves `ChargesApi`. */
export const chargesHttp = HttpApiBuilder.group(BaseApi.add(ChargesApi), "charges", (handlers) =>
  Effect.map(Provider, (provider) =>
    handlers
      .handle("list", ({ urlParams }) => onAccount((account) => provider.listCharges(account, urlParams)))
      .handle("get", ({ path }) => onAccount((account) => provider.retrieveCharge(account, path.id)))
  )
)

/** Serves `PaymentIntentsApi`. */
export const paymentIntentsHttp = HttpApiBuilder.group(BaseApi.add(PaymentIntentsApi), "paymentIntents", (handlers) =>
  Effect.map(Provider, (provider) =>
    handlers
      .handle("list", ({ urlParams }) => onAccount((account) => provider.listPaymentIntents(account, urlParams)))
      .handle("get", ({ path }) => onAccount((account) => provider.retrievePaymentIntent(account, path.id)))
  )
)
