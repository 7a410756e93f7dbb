import { Effect, Predicate } from "effect"
import type Stripe from "stripe"
import { ProviderRequestRefused } from "../../platform/errors/Errors.ts"
import type { ChangeObject, ConnectedAccount, ListObjects, ProviderCall, RetrieveObject } from "../ProviderCall.ts"
import { isRefusal } from "../ProviderErrors.ts"
import type { ProviderObject } from "../Schemas.ts"
import { named, page, type StripeCall } from "../stripe/StripeCall.ts"
import { stripeObjects } from "../stripe/StripeObjects.ts"
import type { ListSubscriptions, UpdateSubscription } from "./Api.ts"

export interface SubscriptionsPort {
  /** Without `status`, canceled subscriptions are left out. */
  readonly listSubscriptions: ListObjects<ListSubscriptions>
  readonly retrieveSubscription: RetrieveObject
  /** Cancels at the end of the period, or undoes that. Refuses a subscription that has ended. */
  readonly updateSubscription: ChangeObject<UpdateSubscription>
  /** Cancels at once. Idempotent without a key: returns an already canceled subscription as it is. */
  readonly cancelSubscription: RetrieveObject
}

export const subscriptionsParams = (params: ListSubscriptions): Stripe.SubscriptionListParams => params

export const updateSubscriptionParams = (params: UpdateSubscription): Stripe.SubscriptionUpdateParams => params

const itemsConcurrency = 5

/**
 * Returns a subscription with all of its items, of which Stripe shows ten and accepts twenty. If reading the others
 * is refused, returns the subscription as it is, since a change has already been made.
 */
const makeWhole =
  (call: StripeCall) =>
  (account: ConnectedAccount, subscription: ProviderObject): ProviderCall<ProviderObject> => {
    const { id, items } = subscription
    return Predicate.isRecord(items) && items["has_more"] === true
      ? page(
          call("subscription_items.list", account, (client, scope) =>
            client.subscriptionItems.list({ subscription: String(id), limit: 100 }, scope)
          )
        ).pipe(
          Effect.map(({ data, has_more }) => ({ ...subscription, items: { ...items, data, has_more } })),
          Effect.catchIf(isRefusal, () => Effect.succeed(subscription))
        )
      : Effect.succeed(subscription)
  }

/** Stripe refuses to change an ended subscription without a code or parameter: its status tells why. */
const explained = (refusal: ProviderRequestRefused, { status }: ProviderObject): ProviderRequestRefused =>
  status === "canceled" || status === "incomplete_expired"
    ? new ProviderRequestRefused({
        code: refusal.code,
        fields: ["id"],
        cause: refusal.cause,
        message: "`id` in the path names a subscription that has ended, which can't be changed any more."
      })
    : refusal

export const stripeSubscriptions = (call: StripeCall): SubscriptionsPort => {
  const whole = makeWhole(call)
  const { list, retrieve, update } = stripeObjects(call)
  const subscriptions = (client: Stripe) => client.subscriptions
  const listOnes = list("subscriptions.list", subscriptions, subscriptionsParams)
  const retrieveOne = retrieve("subscriptions.retrieve", subscriptions, {})
  const updateOne = update("subscriptions.update", subscriptions, updateSubscriptionParams)

  const retrieveSubscription: SubscriptionsPort["retrieveSubscription"] = (account, id) =>
    Effect.flatMap(retrieveOne(account, id), (subscription) => whole(account, subscription))

  /**
   * Stripe accepts no idempotency keys with DELETE, and answers 404 to a second cancellation. So the subscription is
   * read; if it is canceled, it is returned.
   */
  const cancelSubscription: SubscriptionsPort["cancelSubscription"] = (account, id) =>
    named(call("subscriptions.cancel", account, (client, scope) => client.subscriptions.cancel(id, {}, scope))).pipe(
      Effect.flatMap((subscription) => whole(account, subscription)),
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
    updateSubscription: (account, id, params, options) =>
      updateOne(account, id, params, options).pipe(
        Effect.flatMap((subscription) => whole(account, subscription)),
        Effect.catchTag("ProviderRequestRefused", (refusal) =>
          refusal.fields.length > 0
            ? Effect.fail(refusal)
            : retrieveSubscription(account, id).pipe(
                Effect.match({
                  onFailure: () => refusal,
                  onSuccess: (subscription) => explained(refusal, subscription)
                }),
                Effect.flatMap(Effect.fail)
              )
        )
      ),
    listSubscriptions: (account, params) =>
      Effect.gen(function* () {
        const listed = yield* listOnes(account, params)
        const data = yield* Effect.forEach(listed.data, (subscription) => whole(account, subscription), {
          concurrency: itemsConcurrency
        })
        return { ...listed, data }
      })
  }
}
