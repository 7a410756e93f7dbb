import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { BaseApi } from "../../kit/BaseApi.ts"
import { onAccount, write, writeOnAccount } from "../AccountOperations.ts"
import { operationsOf } from "../Operations.ts"
import { Provider } from "../Provider.ts"
import { SubscriptionsApi } from "./Api.ts"

/** What the operations of `SubscriptionsApi` do. */
export const subscriptionsOperations = Effect.map(Provider, (provider) =>
  operationsOf(SubscriptionsApi, {
    list: ({ urlParams }) => onAccount((account) => provider.listSubscriptions(account, urlParams)),
    get: ({ path }) => onAccount((account) => provider.retrieveSubscription(account, path.id)),
    update: ({ headers, path, payload }) =>
      writeOnAccount(
        {
          operation: "subscriptions.update",
          callerKey: headers["idempotency-key"],
          parameters: { id: path.id, ...payload },
          action: "subscription.updated",
          targetType: "subscription"
        },
        (account, options) => provider.updateSubscription(account, path.id, payload, options)
      ),
    cancel: ({ headers, path }) =>
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
  })
)

/** Serves `SubscriptionsApi`. */
export const subscriptionsHttp = HttpApiBuilder.group(BaseApi.add(SubscriptionsApi), "subscriptions", (handlers) =>
  Effect.map(subscriptionsOperations, (operations) =>
    handlers
      .handle("list", operations.list)
      .handle("get", operations.get)
      .handle("update", operations.update)
      .handle("cancel", operations.cancel)
  )
)
