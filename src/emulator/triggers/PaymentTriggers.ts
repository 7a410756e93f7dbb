import { Effect } from "effect"
import { existing, type RequestContext } from "../api/Route.ts"
import type { OpenCheckout } from "../checkout/Choices.ts"
import { payLater, settle } from "../checkout/LaterPayment.ts"
import { type Payer, pay } from "../checkout/Payment.ts"
import { fail, succeed } from "../checkout/PaymentSteps.ts"
import { type RenewalOrder, renewSubscription } from "../checkout/Renewal.ts"
import { invalid } from "../ProviderError.ts"
import type { PaymentIntent, Session } from "../Records.ts"
import { makePayoutOf, movePayout, type PayoutState } from "../resources/balance/Payouts.ts"
import { cancelSubscription, existingSubscription } from "../resources/billing/Subscriptions.ts"
import { createPrice } from "../resources/catalog/PriceCreation.ts"
import { createProduct } from "../resources/catalog/Products.ts"
import { createSession } from "../resources/checkout/SessionCreation.ts"
import { closeDispute, openDispute } from "../resources/payments/Disputes.ts"
import { createPaymentIntent } from "../resources/payments/PaymentIntents.ts"
import { createRefund, failRefund, settleRefund } from "../resources/payments/Refunds.ts"
import { type Implementations, onlyForNew } from "./Trigger.ts"
import type { OptionsOf } from "./TriggerList.ts"

type Money = OptionsOf<"payment_intent.succeeded">

const usualMoney = { amount: 1_500, currency: "brl" } as const

/** A payment that waits for its card. Event: `payment_intent.created`. */
const newIntent = (context: RequestContext, options: Money): PaymentIntent => {
  const { amount, currency, metadata = {} } = { ...usualMoney, ...options }
  return createPaymentIntent(context, { amount, currency, data: { metadata } })
}

const chargeOf = Effect.fnUntraced(function* (context: RequestContext, named: string | undefined, options: Money) {
  if (named !== undefined) yield* onlyForNew("charge", options)
  const id = named ?? succeed(context, newIntent(context, options), null).latest_charge ?? ""
  return yield* existing(context, "charge", id)
})

/** The named refund, otherwise one of a new payment: by card, or by bank slip, whose refunds wait. */
const refundOf = Effect.fnUntraced(function* (
  context: RequestContext,
  { refund: named, ...options }: Money & { readonly refund?: string },
  method: "boleto" | "card"
) {
  if (named !== undefined) {
    yield* onlyForNew("refund", options)
    return named
  }
  const paid = succeed(context, newIntent(context, options), null, method)
  return (yield* createRefund(context, { payment_intent: paid.id })).id
})

/** Opens a dispute. The metadata is the dispute's, which the trigger is about, not that of a new payment. */
const dispute = Effect.fnUntraced(function* (context: RequestContext, options: OptionsOf<"charge.dispute.created">) {
  const { charge: id, metadata = {}, reason = "fraudulent", ...rest } = options
  const charge = yield* chargeOf(context, id, rest)
  const { id: made } = yield* openDispute(context, charge, { metadata, reason })
  return made
})

export const paymentTriggers = {
  "payment_intent.succeeded": (context, options) =>
    Effect.sync(() => succeed(context, newIntent(context, options), null).id),
  "payment_intent.payment_failed": (context, options) =>
    Effect.sync(() => fail(context, newIntent(context, options), null).id),
  "charge.refunded": Effect.fnUntraced(function* (context, { charge: named, refund_amount: amount, ...options }) {
    const { id: charge } = yield* chargeOf(context, named, options)
    yield* createRefund(context, { charge, ...(amount === undefined ? {} : { amount }) })
    return charge
  }),
  "refund.updated": Effect.fnUntraced(function* (context, options) {
    const refund = yield* refundOf(context, options, "boleto")
    return (yield* settleRefund(context, refund)).id
  }),
  "refund.failed": Effect.fnUntraced(function* (context, { reason, ...options }) {
    const refund = yield* refundOf(context, options, "card")
    return (yield* failRefund(context, refund, reason)).id
  }),
  "charge.dispute.created": dispute,
  "charge.dispute.closed": Effect.fnUntraced(function* (context, { dispute: named, outcome = "lost", ...options }) {
    if (named !== undefined) yield* onlyForNew("dispute", options)
    const id = named ?? (yield* dispute(context, options))
    yield* closeDispute(context, id, outcome)
    return id
  })
} satisfies Partial<Implementations>

/** A payer who accepts the order as it is and enters no email address. */
const somebody: Payer = {
  amount: undefined,
  email: null,
  promotionCode: undefined,
  quantities: new Map(),
  upsells: new Set()
}

const newPrice = Effect.fnUntraced(function* (
  context: RequestContext,
  { amount, currency }: Money,
  isMonthly: boolean
) {
  const { id: product } = yield* createProduct(context, { name: isMonthly ? "Coffee every month" : "Coffee" })
  const price = yield* createPrice(context, product, {
    currency: currency ?? usualMoney.currency,
    unit_amount: amount ?? usualMoney.amount,
    ...(isMonthly ? { recurring: { interval: "month" } } : {})
  })
  context.emit({ type: "price.created", shape: "price", object: price })
  return price.id
})

/** The URL that payers are redirected to; nobody opens it. */
const success_url = "https://shop.example/thanks"

const newSale = Effect.fnUntraced(function* (context: RequestContext, money: Money) {
  const price = yield* newPrice(context, money, false)
  return yield* createSession(context, {
    mode: "payment",
    line_items: [{ price, quantity: 1 }],
    metadata: money.metadata ?? {},
    success_url
  })
})

const newSubscriptionSale = Effect.fnUntraced(function* (context: RequestContext, money: Money, items: number) {
  const prices = yield* Effect.forEach(Array.from({ length: items }), () => newPrice(context, money, true))
  return yield* createSession(context, {
    mode: "subscription",
    line_items: prices.map((price) => ({ price, quantity: 1 })),
    subscription_data: { metadata: money.metadata ?? {} },
    success_url
  })
})

/** A session with what it sells, to be completed; fails with 400 if it is not open. */
const openCheckout = Effect.fnUntraced(function* ({ objects }: RequestContext, session: Session) {
  const order = objects.get("order", session.id)
  if (session.status !== "open" || order === undefined) {
    return yield* invalid("session", `Session ${session.id} is not open: ${session.status}.`)
  }
  return { order, session } satisfies OpenCheckout
})

const bring = (state: PayoutState) =>
  Effect.fnUntraced(function* (context: RequestContext, { payout, ...asked }: OptionsOf<"payout.created">) {
    if (payout === undefined) return (yield* makePayoutOf(context, { ...usualMoney, ...asked, state })).id
    yield* onlyForNew("payout", asked)
    return (yield* movePayout(context, payout, state)).id
  })

export const payoutTriggers = {
  "payout.created": bring("pending"),
  "payout.updated": bring("in_transit"),
  "payout.paid": bring("paid"),
  "payout.failed": bring("failed"),
  "payout.canceled": bring("canceled")
} satisfies Partial<Implementations>

const sessionNamedOrNew = Effect.fnUntraced(function* (
  context: RequestContext,
  named: string | undefined,
  money: Money
) {
  if (named === undefined) return yield* newSale(context, money)
  yield* onlyForNew("session", money)
  return yield* existing(context, "checkout.session", named)
})

type LaterOptions = OptionsOf<"checkout.session.async_payment_succeeded">

/** A session that waits for its payment: the named one, which is completed first if it is open, or a new one. */
const unpaid = Effect.fnUntraced(function* (
  context: RequestContext,
  { method, session: named, ...money }: LaterOptions
) {
  const session = yield* sessionNamedOrNew(context, named, money)
  if (session.status === "complete") {
    yield* onlyForNew("session", method === undefined ? {} : { method })
    return session
  }
  return yield* payLater(context, yield* openCheckout(context, session), somebody, method ?? "boleto")
})

const settled = (outcome: "succeeded" | "failed") =>
  Effect.fnUntraced(function* (context: RequestContext, options: LaterOptions) {
    return (yield* settle(context, yield* unpaid(context, options), outcome)).id
  })

export const checkoutTriggers = {
  "checkout.session.completed": Effect.fnUntraced(function* (context, { method = "card", session: named, ...money }) {
    const checkout = yield* openCheckout(context, yield* sessionNamedOrNew(context, named, money))
    const { id } = yield* method === "card"
      ? pay(context, checkout, somebody)
      : payLater(context, checkout, somebody, method)
    return id
  }),
  "checkout.session.async_payment_succeeded": settled("succeeded"),
  "checkout.session.async_payment_failed": settled("failed")
} satisfies Partial<Implementations>

const subscribe = Effect.fnUntraced(function* (
  context: RequestContext,
  { items = 1, ...money }: OptionsOf<"customer.subscription.created">
) {
  const open = yield* openCheckout(context, yield* newSubscriptionSale(context, money, items))
  const { subscription } = yield* pay(context, open, somebody)
  return subscription ?? (yield* Effect.dieMessage("A session in subscription mode leads to a subscription"))
})

const namedOrNew = Effect.fnUntraced(function* (
  context: RequestContext,
  { subscription, ...asked }: OptionsOf<"invoice.paid">
) {
  if (subscription === undefined) return yield* subscribe(context, asked)
  yield* onlyForNew("subscription", asked)
  return subscription
})

const renewal = (outcome: RenewalOrder["outcome"]) =>
  Effect.fnUntraced(function* (context: RequestContext, asked: OptionsOf<"invoice.paid">) {
    const id = yield* namedOrNew(context, asked)
    if (context.objects.get("subscription", id)?.cancel_at_period_end === true) {
      return yield* invalid("subscription", `Subscription ${id} ends with its period.`)
    }
    const { latest_invoice } = yield* renewSubscription(context, { id, outcome })
    return latest_invoice ?? (yield* Effect.dieMessage("A renewal makes an invoice"))
  })

export const subscriptionTriggers = {
  "customer.subscription.created": subscribe,
  "invoice.paid": renewal("paid"),
  "invoice.payment_failed": renewal("failed"),
  "customer.subscription.deleted": Effect.fnUntraced(function* (context, asked) {
    const open = yield* existingSubscription(context, yield* namedOrNew(context, asked))
    return (yield* cancelSubscription(context, {}, open)).id
  })
} satisfies Partial<Implementations>
