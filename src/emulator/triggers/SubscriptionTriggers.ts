import { Effect, Schema } from "effect"
import type { RequestContext } from "../api/Route.ts"
import { pay } from "../checkout/Payment.ts"
import { type RenewalOrder, renewSubscription } from "../checkout/Renewal.ts"
import { maybe } from "../control/ControlInput.ts"
import { invalid } from "../ProviderError.ts"
import { cancelSubscription, existingSubscription } from "../resources/Subscriptions.ts"
import { moneyOptions } from "./PaymentTriggers.ts"
import { newSubscriptionSale, openCheckout, somebody } from "./Sales.ts"
import { onlyForNew, type Trigger, trigger } from "./Trigger.ts"

const newOptions = Schema.Struct({ ...moneyOptions, items: maybe(Schema.Int.pipe(Schema.between(1, 20))) })

const options = Schema.Struct({ ...newOptions.fields, subscription: maybe(Schema.String) })
type SubscriptionOptions = typeof options.Type

const subscribe = Effect.fnUntraced(function* (
  context: RequestContext,
  { items = 1, ...money }: typeof newOptions.Type
) {
  const open = yield* openCheckout(context, yield* newSubscriptionSale(context, money, items))
  const { subscription } = yield* pay(context, open, somebody)
  return subscription ?? (yield* Effect.dieMessage("A session in subscription mode leads to a subscription"))
})

const namedOrNew = Effect.fnUntraced(function* (
  context: RequestContext,
  { subscription, ...asked }: SubscriptionOptions
) {
  if (subscription === undefined) return yield* subscribe(context, asked)
  yield* onlyForNew("subscription", asked)
  return subscription
})

const renewal = (outcome: RenewalOrder["outcome"]): Trigger =>
  trigger(
    options,
    Effect.fnUntraced(function* (context: RequestContext, asked: SubscriptionOptions) {
      const id = yield* namedOrNew(context, asked)
      if (context.objects.get("subscription", id)?.cancel_at_period_end === true) {
        return yield* invalid("subscription", `Subscription ${id} ends with its period.`)
      }
      const { latest_invoice } = yield* renewSubscription(context, { id, outcome })
      return latest_invoice ?? (yield* Effect.dieMessage("A renewal makes an invoice"))
    })
  )

export const subscriptionTriggers = {
  "customer.subscription.created": trigger(newOptions, subscribe),
  "invoice.paid": renewal("paid"),
  "invoice.payment_failed": renewal("failed"),
  "customer.subscription.deleted": trigger(
    options,
    Effect.fnUntraced(function* (context: RequestContext, asked: SubscriptionOptions) {
      const open = yield* existingSubscription(context, yield* namedOrNew(context, asked))
      return (yield* cancelSubscription(context, {}, open)).id
    })
  )
}
