import { Effect } from "effect"
import type Stripe from "stripe"
import { named, page, type StripeCall } from "../stripe/StripeCall.ts"
import type { ListSubscriptions } from "./Api.ts"
import type { SubscriptionsPort } from "./Port.ts"

/** The parameters of a list of subscriptions. */
export const subscriptionsParams = (params: ListSubscriptions): Stripe.SubscriptionListParams => params

/** Subscriptions at Stripe. */
export const stripeSubscriptions = (call: StripeCall): SubscriptionsPort => {
  const retrieveSubscription: SubscriptionsPort["retrieveSubscription"] = (account, id) =>
    named(call("subscriptions.retrieve", account, (client, scope) => client.subscriptions.retrieve(id, {}, scope)))

  /**
   * Stripe takes no idempotency keys with DELETE, and answers 404 to a second cancellation: if the subscription can be
   * read and is canceled, that is the answer.
   */
  const cancelSubscription: SubscriptionsPort["cancelSubscription"] = (account, id) =>
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
  }
}
