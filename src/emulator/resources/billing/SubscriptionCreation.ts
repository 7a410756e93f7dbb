import { Struct } from "effect"
import { storedList } from "../../api/Lists.ts"
import type { RequestContext } from "../../api/Route.ts"
import { addDays, addMonths, periodEnd } from "../../checkout/Calendar.ts"
import { newId } from "../../Ids.ts"
import {
  type Coupon,
  type Customer,
  type Discount,
  type LineItem,
  nulls,
  type Order,
  type Price,
  type Session,
  type Subscription,
  type SubscriptionItem
} from "../../Records.ts"
import { issuedBySelf } from "../checkout/Sales.ts"

const planOf = (price: Price, recurring: NonNullable<Price["recurring"]>): SubscriptionItem["plan"] => ({
  ...Struct.pick(price, "id", "active", "billing_scheme", "created", "currency", "metadata", "nickname", "product"),
  ...Struct.pick(recurring, "interval", "interval_count", "trial_period_days", "usage_type"),
  object: "plan",
  amount: price.unit_amount,
  amount_decimal: price.unit_amount_decimal,
  livemode: false,
  meter: null,
  tiers_mode: price.tiers_mode,
  transform_usage: price.transform_quantity
})

interface Period {
  readonly start: number
  readonly end: number
}

const makeItem = (
  subscription: string,
  { price, quantity }: LineItem,
  recurring: NonNullable<Price["recurring"]>,
  { end, start }: Period
): SubscriptionItem => ({
  id: newId("si_"),
  object: "subscription_item",
  billing_thresholds: null,
  created: start,
  current_period_end: end,
  current_period_start: start,
  current_trial: null,
  discounts: [],
  metadata: {},
  plan: planOf(price, recurring),
  price,
  quantity,
  subscription,
  tax_rates: []
})

const itemsOf = (subscription: string, order: Order, start: number, trialEnd: number | null) =>
  order.items.flatMap((item) => {
    const { recurring } = item.price
    if (recurring === null) return []
    return [makeItem(subscription, item, recurring, { start, end: trialEnd ?? periodEnd(start, start, recurring) })]
  })

export interface SubscriptionTerms {
  readonly customer: Customer
  readonly order: Order
  readonly session: Session
}

export const makeSubscription = (
  { now }: RequestContext,
  { customer, order, session }: SubscriptionTerms
): Subscription => {
  const id = newId("sub_")
  const { description, metadata, trialPeriodDays } = order.subscriptionData
  const trialEnd = trialPeriodDays === null ? null : addDays(now, trialPeriodDays)
  return {
    id,
    object: "subscription",
    ...nulls("application application_fee_percent billing_cycle_anchor_config billing_thresholds cancel_at"),
    ...nulls("canceled_at customer_account days_until_due default_source ended_at latest_invoice managed_payments"),
    ...nulls("next_pending_invoice_item_invoice on_behalf_of pause_collection pending_invoice_item_interval"),
    ...nulls("pending_setup_intent pending_update schedule test_clock transfer_data"),
    automatic_tax: { disabled_reason: null, enabled: false, liability: null },
    billing_cycle_anchor: trialEnd ?? now,
    billing_mode: { flexible: { proration_discounts: "included" }, type: "flexible" },
    billing_schedules: [],
    cancel_at_period_end: false,
    cancellation_details: { comment: null, feedback: null, feedback_option: null, reason: null },
    collection_method: "charge_automatically",
    created: now,
    currency: session.currency,
    customer: customer.id,
    default_payment_method: newId("pm_"),
    default_tax_rates: [],
    description,
    discounts: [],
    invoice_settings: issuedBySelf,
    items: storedList(itemsOf(id, order, now, trialEnd), `/v1/subscription_items?subscription=${id}`),
    livemode: false,
    metadata,
    payment_settings: {
      payment_method_options: null,
      payment_method_types: ["card"],
      save_default_payment_method: "off"
    },
    start_date: now,
    status: trialEnd === null ? "active" : "trialing",
    trial_end: trialEnd,
    trial_settings: { end_behavior: { billing_cycle_anchor: null, missing_payment_method: "create_invoice" } },
    trial_start: trialEnd === null ? null : now
  }
}

/** The end of a coupon's discount that begins now; null if it has no end date. */
const discountEnd = (now: number, { duration, duration_in_months }: Coupon): number | null =>
  duration === "repeating" && duration_in_months !== null ? addMonths(now, duration_in_months) : null

export const makeDiscount = (
  { now }: RequestContext,
  session: Session,
  subscription: Subscription,
  coupon: Coupon
): Discount => ({
  id: newId("di_"),
  object: "discount",
  checkout_session: session.id,
  customer: subscription.customer,
  ...nulls("customer_account invoice invoice_item subscription_item"),
  end: discountEnd(now, coupon),
  promotion_code: session.discounts[0]?.promotion_code ?? null,
  source: { coupon: coupon.id, type: "coupon" },
  start: now,
  subscription: subscription.id
})
