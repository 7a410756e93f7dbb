import { Effect } from "effect"
import { handlersOf, serve } from "../../kit/Handlers.ts"
import { onAccount, write, writeOnAccount } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { SubscriptionsApi } from "./Api.ts"

export const subscriptionsHandlers = Effect.map(Provider, (provider) =>
  handlersOf(SubscriptionsApi, {
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

export const subscriptionsHttp = serve(SubscriptionsApi, subscriptionsHandlers)
