import { Effect } from "effect"
import type Stripe from "stripe"
import { ProviderRequestRefused } from "../../errors/Errors.ts"
import type { ConnectedAccount, ProviderCall } from "../ProviderCall.ts"
import { named, page, type StripeCall } from "../stripe/StripeCall.ts"
import type { ListSubscriptions, UpdateSubscription } from "./Api.ts"
import type { SubscriptionsPort } from "./Port.ts"

/** The parameters of a list of subscriptions. */
export const subscriptionsParams = (params: ListSubscriptions): Stripe.SubscriptionListParams => params

/** The parameters of a change of a subscription. */
export const updateSubscriptionParams = (params: UpdateSubscription): Stripe.SubscriptionUpdateParams => params

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

  /** Stripe refuses a change of a subscription that has ended without a code or a parameter: reading it tells why. */
  const explain = (account: ConnectedAccount, id: string, refusal: ProviderRequestRefused): ProviderCall<never> =>
    retrieveSubscription(account, id).pipe(
      Effect.catchAll(() => Effect.fail(refusal)),
      Effect.flatMap(({ status }) =>
        status === "canceled" || status === "incomplete_expired"
          ? new ProviderRequestRefused({
              code: refusal.code,
              fields: ["id"],
              cause: refusal.cause,
              message: "`id` in the path names a subscription that has ended, which can't be changed any more."
            })
          : Effect.fail(refusal)
      )
    )

  return {
    retrieveSubscription,
    cancelSubscription,
    updateSubscription: (account, id, params, { idempotencyKey }) =>
      named(
        call("subscriptions.update", account, (client, scope) =>
          client.subscriptions.update(id, updateSubscriptionParams(params), { ...scope, idempotencyKey })
        )
      ).pipe(
        Effect.catchTag("ProviderRequestRefused", (refusal) =>
          refusal.fields.length === 0 ? explain(account, id, refusal) : Effect.fail(refusal)
        )
      ),
    listSubscriptions: (account, params) =>
      page(
        call("subscriptions.list", account, (client, scope) =>
          client.subscriptions.list(subscriptionsParams(params), scope)
        )
      )
  }
}
