import { Effect } from "effect"
import type Stripe from "stripe"
import type { Provider } from "../Provider.ts"
import { named, page, type StripeCall } from "../stripe/StripeCall.ts"
import type { ListSubscriptions } from "./Api.ts"

/** Subscriptions at Stripe. */

/** The parameters of a list of subscriptions. */
export const subscriptionsParams = (params: ListSubscriptions): Stripe.SubscriptionListParams => params

/** The operations of `Provider` on subscriptions. */
export const stripeSubscriptions = (call: StripeCall) => {
  const retrieveSubscription: Provider["Type"]["retrieveSubscription"] = (account, id) =>
    named(call("subscriptions.retrieve", account, (client, scope) => client.subscriptions.retrieve(id, {}, scope)))

  /** The provider takes no keys with DELETE, and knows a canceled subscription no more to cancel it again. */
  const cancelSubscription: Provider["Type"]["cancelSubscription"] = (account, id) =>
    named(call("subscriptions.cancel", account, (client, scope) => client.subscriptions.cancel(id, {}, scope))).pipe(
      Effect.catchTag("ProviderObjectNotFound", (unknown) =>
        Effect.filterOrFail(
          retrieveSubscription(account, id),
          ({ status }) => status === "canceled",
          () => unknown
        )
      )
    )

  return {
    retrieveSubscription,
    cancelSubscription,
    listSubscriptions: (account, params) =>
      page(
        call("subscriptions.list", account, (client, scope) =>
          client.subscriptions.list(subscriptionsParams(params), scope)
        )
      )
  } satisfies Partial<Provider["Type"]>
}
