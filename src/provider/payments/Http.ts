import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { BaseApi } from "../../kit/BaseApi.ts"
import { onAccount, write, writeOnAccount } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { SubscriptionsApi } from "../subscriptions/Api.ts"
import { ChargesApi, PaymentIntentsApi } from "./Api.ts"
import { RefundsApi } from "./RefundsApi.ts"

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

/** Serves `RefundsApi`. */
export const refundsHttp = HttpApiBuilder.group(BaseApi.add(RefundsApi), "refunds", (handlers) =>
  Effect.map(Provider, (provider) =>
    handlers.handle("create", ({ headers, payload }) =>
      writeOnAccount(
        {
          operation: "refunds.create",
          callerKey: headers["idempotency-key"],
          parameters: payload,
          action: "refund.created",
          targetType: "refund"
        },
        (account, options) => provider.createRefund(account, payload, options)
      )
    )
  )
)

/** Serves `SubscriptionsApi`. */
export const subscriptionsHttp = HttpApiBuilder.group(BaseApi.add(SubscriptionsApi), "subscriptions", (handlers) =>
  Effect.map(Provider, (provider) =>
    handlers
      .handle("list", ({ urlParams }) => onAccount((account) => provider.listSubscriptions(account, urlParams)))
      .handle("get", ({ path }) => onAccount((account) => provider.retrieveSubscription(account, path.id)))
      .handle("cancel", ({ headers, path }) =>
        write(
          {
            operation: "subscriptions.cancel",
            callerKey: headers["idempotency-key"],
            parameters: { id: path.id },
            action: "subscription.canceled",
            targetType: "subscription"
          },
          () => onAccount((account) => provider.cancelSubscription(account, path.id))
        )
      )
  )
)
