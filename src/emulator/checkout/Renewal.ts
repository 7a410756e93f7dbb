import { Effect } from "effect"
import { existing, type RequestContext } from "../api/Route.ts"
import { invalid } from "../ProviderError.ts"
import type { LineItem, PaymentIntent, Subscription } from "../Records.ts"
import { issue, makeInvoice } from "../resources/billing/Invoices.ts"
import { endSubscription, existingSubscription } from "../resources/billing/Subscriptions.ts"
import { makeItem, sumOf } from "../resources/checkout/Sales.ts"
import { createPaymentIntent } from "../resources/payments/PaymentIntents.ts"
import { periodEnd } from "./Calendar.ts"
import { discounted, fullPrice } from "./Discounts.ts"
import { fail, succeed } from "./PaymentSteps.ts"

export interface RenewalOrder {
  readonly id: string
  readonly outcome: "paid" | "failed"
}

const renewed = (before: Subscription, outcome: RenewalOrder["outcome"]): Subscription => ({
  ...before,
  items: {
    ...before.items,
    data: before.items.data.map((item) => ({
      ...item,
      current_period_end:
        item.price.recurring === null
          ? item.current_period_end
          : periodEnd(before.billing_cycle_anchor, item.current_period_end, item.price.recurring),
      current_period_start: item.current_period_end
    }))
  },
  status: outcome === "paid" ? "active" : "past_due"
})

const lineItems = (subscription: Subscription): ReadonlyArray<LineItem> =>
  subscription.items.data.map(({ price, quantity = 1 }) =>
    makeItem({ price, product: { name: price.nickname }, quantity }, false)
  )

/** Not by the present time, since a renewal may be early. */
const pricedItems = ({ objects }: RequestContext, subscription: Subscription) => {
  const begins = Math.max(...subscription.items.data.map(({ current_period_end }) => current_period_end))
  const [id] = subscription.discounts
  const discount = id === undefined ? undefined : objects.get("discount", id)
  const source = discount?.source.coupon
  const coupon = typeof source === "string" ? objects.get("coupon", source) : undefined
  const items = lineItems(subscription)
  if (discount === undefined || coupon === undefined || (discount.end !== null && discount.end <= begins)) {
    return { discount: undefined, items: fullPrice(items) }
  }
  return { discount: discount.id, items: discounted(items, coupon) }
}

interface Due {
  readonly amount: number
  readonly email: string | null
  readonly outcome: RenewalOrder["outcome"]
}

const charge = (
  context: RequestContext,
  { currency, customer }: Subscription,
  { amount, email, outcome }: Due
): PaymentIntent | undefined => {
  if (amount === 0) return undefined
  const data = { description: "Subscription update" }
  const waiting = createPaymentIntent(context, { amount, currency, customer, data })
  return outcome === "paid" ? succeed(context, waiting, email) : fail(context, waiting, email)
}

/**
 * Renews a subscription, whether or not its period has ended, or ends one that was canceled at the end of its period.
 *
 * Events: `customer.subscription.deleted` for one that ends. Otherwise those of the payment, then `invoice.created`,
 * `invoice.finalized`, and `invoice.paid` with `invoice.payment_succeeded` or `invoice.payment_failed`, and
 * `customer.subscription.updated`.
 *
 * Errors: `resource_missing` (404); a subscription that has ended (400).
 */
export const renewSubscription = Effect.fnUntraced(function* (context: RequestContext, order: RenewalOrder) {
  const before = yield* existingSubscription(context, order.id)
  if (before.status === "canceled") {
    return yield* invalid("id", "A canceled subscription is not renewed.")
  }
  if (before.cancel_at_period_end) return endSubscription(context, before)
  const customer = yield* existing(context, "customer", before.customer)
  const { discount, items } = pricedItems(context, before)
  const intent = charge(context, before, { amount: sumOf(items), email: customer.email, outcome: order.outcome })
  const next = renewed(before, intent === undefined ? "paid" : order.outcome)
  const invoice = makeInvoice(context, {
    customer,
    discount,
    items,
    paid: next.status === "active",
    paymentIntent: intent?.id ?? null,
    reason: "subscription_cycle",
    subscription: next
  })
  const subscription: Subscription = { ...next, latest_invoice: invoice.id }
  context.objects.put("customer", customer.id, {
    ...customer,
    next_invoice_sequence: (customer.next_invoice_sequence ?? 1) + 1
  })
  issue(context, invoice)
  return context.save("subscription", "customer.subscription.updated", subscription, before)
})
