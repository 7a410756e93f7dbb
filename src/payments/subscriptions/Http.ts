import { handlersOf } from "../../platform/kit/Handlers.ts"
import { reading, writeOnAccount } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { SubscriptionsApi } from "./Api.ts"

export const subscriptionsHandlers = handlersOf(SubscriptionsApi, Provider, (provider) => ({
  ...reading(provider.listSubscriptions, provider.retrieveSubscription),
  update: (request) =>
    writeOnAccount({ operation: "subscriptions.update", action: "subscription.updated" }, request, (account, options) =>
      provider.updateSubscription(account, request.path.id, request.payload, options)
    ),
  cancel: (request) =>
    writeOnAccount({ operation: "subscriptions.cancel", action: "subscription.canceled" }, request, (account) =>
      provider.cancelSubscription(account, request.path.id)
    )
}))
