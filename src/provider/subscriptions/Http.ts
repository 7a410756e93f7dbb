import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { BaseApi } from "../../kit/BaseApi.ts"
import { onAccount, write } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { SubscriptionsApi } from "./Api.ts"

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
