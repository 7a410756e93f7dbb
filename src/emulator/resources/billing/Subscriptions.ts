import { Effect, Schema } from "effect"
import { listParams, page } from "../../api/Lists.ts"
import * as Params from "../../api/Params.ts"
import { named, type RequestContext, type Route, route } from "../../api/Route.ts"
import { notFound, type ProviderError, refuse } from "../../ProviderError.ts"
import { nulls, type Subscription } from "../../Records.ts"
import { resource } from "../Resource.ts"

const statuses = "active all canceled ended incomplete incomplete_expired past_due paused trialing unpaid"

const filters = Params.optionals({
  collection_method: Params.oneOf("charge_automatically", "send_invoice"),
  created: Params.range,
  customer: Params.text(),
  price: Params.text(),
  status: Params.oneOfWords(statuses)
})

const reasons = "customer_service low_quality missing_features other switched_service too_complex too_expensive unused"

const cancelParams = Schema.Struct({
  cancellation_details: Params.optional(
    Schema.Struct({
      comment: Params.optional(Params.clearable(Params.text())),
      feedback: Params.optional(Params.clearable(Params.oneOfWords(reasons)))
    })
  ),
  invoice_now: Params.optional(Params.boolean),
  prorate: Params.optional(Params.boolean)
})

const updateParams = Schema.Struct({
  cancel_at_period_end: Params.optional(Params.boolean),
  metadata: Params.optional(Params.metadata)
})

const subscriptions = resource("/v1/subscriptions", "subscription")

export const existingSubscription: (context: RequestContext, id: string) => Effect.Effect<Subscription, ProviderError> =
  subscriptions.existing

const hasEnded = (status: string): boolean => status === "canceled" || status === "incomplete_expired"

/** Whether a list shows a status: by default, every one but `canceled`. */
const isListed = (status: string, asked: (typeof filters.Type)["status"]): boolean => {
  switch (asked) {
    case undefined:
      return status !== "canceled"
    case "all":
      return true
    case "ended":
      return hasEnded(status)
    default:
      return status === asked
  }
}

/** An ended subscription is not found, as at the provider. Event: `….deleted`. */
export const cancelSubscription = Effect.fnUntraced(function* (
  context: RequestContext,
  params: typeof cancelParams.Type,
  before: Subscription
) {
  if (hasEnded(before.status)) return yield* notFound("subscription", before.id)
  return context.save("subscription", "customer.subscription.deleted", {
    ...before,
    canceled_at: context.now,
    cancellation_details: {
      comment: params.cancellation_details?.comment ?? null,
      feedback: params.cancellation_details?.feedback ?? null,
      feedback_option: null,
      reason: "cancellation_requested"
    },
    ended_at: context.now,
    status: "canceled"
  })
})

export const endSubscription = (context: RequestContext, before: Subscription): Subscription =>
  context.save("subscription", "customer.subscription.deleted", {
    ...before,
    ended_at: context.now,
    status: "canceled"
  })

const cancellationAtEnd = (context: RequestContext, { items }: Subscription, ends: boolean) => ({
  cancel_at: ends ? Math.max(...items.data.map(({ current_period_end }) => current_period_end)) : null,
  cancel_at_period_end: ends,
  canceled_at: ends ? context.now : null,
  cancellation_details: {
    ...nulls("comment feedback feedback_option"),
    reason: ends ? ("cancellation_requested" as const) : null
  }
})

/** At the end of its period, or withdraws that. Event: `….updated` if something changes. */
const update = Effect.fnUntraced(function* (
  context: RequestContext,
  params: typeof updateParams.Type,
  before: Subscription
) {
  const ends = params.cancel_at_period_end
  if (ends !== undefined && hasEnded(before.status)) {
    return yield* refuse({
      message: "A canceled subscription can only update its cancellation_details and metadata."
    })
  }
  const changes = ends !== undefined && ends !== before.cancel_at_period_end
  const subscription: Subscription = {
    ...before,
    ...(changes ? cancellationAtEnd(context, before, ends) : {}),
    metadata: Params.patchMetadata(before.metadata, params.metadata)
  }
  if (changes || params.metadata !== undefined) {
    context.save("subscription", "customer.subscription.updated", subscription, before)
  }
  return subscription
})

const itemListParams = listParams(Schema.Struct({ subscription: Params.text() }))

const listItems = Effect.fnUntraced(function* (context: RequestContext, params: typeof itemListParams.Type) {
  const subscription = yield* named(context, "subscription", params.subscription)
  return yield* page(
    { items: subscription.items.data, noun: "subscription item", url: "/v1/subscription_items" },
    params
  )
})

export const subscriptionRoutes: ReadonlyArray<Route> = [
  subscriptions.list(filters, {
    matches: {
      price: ({ items }, asked) => asked === undefined || items.data.some(({ price }) => price.id === asked),
      status: ({ status }, asked) => isListed(status, asked)
    }
  }),
  subscriptions.get,
  subscriptions.update(updateParams, update),
  subscriptions.remove("subscription")(cancelParams, cancelSubscription),
  route({
    method: "GET",
    path: "/v1/subscription_items",
    answers: { listOf: "subscription_item" },
    params: itemListParams,
    run: listItems
  })
]
