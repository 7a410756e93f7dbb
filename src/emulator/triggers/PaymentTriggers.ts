import { Effect, Schema } from "effect"
import type { RequestContext } from "../api/Route.ts"
import type { OpenCheckout } from "../checkout/Choices.ts"
import { laterMethods, payLater, settle } from "../checkout/LaterPayment.ts"
import { type Payer, pay } from "../checkout/Payment.ts"
import { fail, succeed } from "../checkout/PaymentSteps.ts"
import { type RenewalOrder, renewSubscription } from "../checkout/Renewal.ts"
import { amount, currency, maybe, metadata } from "../control/ControlInput.ts"
import { invalid, notFound } from "../ProviderError.ts"
import type { PaymentIntent, Session } from "../Records.ts"
import { makePayoutOf, movePayout, type PayoutState } from "../resources/balance/Payouts.ts"
import { cancelSubscription, existingSubscription } from "../resources/billing/Subscriptions.ts"
import { createPrice } from "../resources/catalog/PriceCreation.ts"
import { createProduct } from "../resources/catalog/Products.ts"
import { createSession } from "../resources/checkout/SessionCreation.ts"
import type { PaymentMethod } from "../resources/payments/Charges.ts"
import { closeDispute, openDispute } from "../resources/payments/Disputes.ts"
import { createPaymentIntent } from "../resources/payments/PaymentIntents.ts"
import { createRefund, failRefund, settleRefund } from "../resources/payments/Refunds.ts"
import { onlyForNew, type Trigger, trigger } from "./Trigger.ts"

export const moneyOptions = { amount: maybe(amount), currency: maybe(currency), metadata: maybe(metadata) }

const money = Schema.Struct(moneyOptions)

export type Money = typeof money.Type

export const usualMoney = { amount: 1_500, currency: "brl" } as const

/** A payment that waits for its card. Event: `payment_intent.created`. */
const newIntent = (context: RequestContext, options: Money): PaymentIntent => {
  const { amount, currency, metadata = {} } = { ...usualMoney, ...options }
  return createPaymentIntent(context, { amount, currency, data: { metadata } })
}

const chargeOf = Effect.fnUntraced(function* (context: RequestContext, named: string | undefined, options: Money) {
  if (named !== undefined) yield* onlyForNew("charge", options)
  const id = named ?? succeed(context, newIntent(context, options), null).latest_charge ?? ""
  const charge = context.objects.get("charge", id)
  return charge === undefined ? yield* notFound("charge", id) : charge
})

const refund = Effect.fnUntraced(function* (
  context: RequestContext,
  { charge: id, refund_amount, ...options }: Money & { readonly charge?: string; readonly refund_amount?: number }
) {
  const charge = yield* chargeOf(context, id, options)
  yield* createRefund(context, {
    charge: charge.id,
    ...(refund_amount === undefined ? {} : { amount: refund_amount })
  })
  return charge.id
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
const dispute = Effect.fnUntraced(function* (
  context: RequestContext,
  options: Money & { readonly charge?: string; readonly reason?: string }
) {
  const { charge: id, metadata = {}, reason = "fraudulent", ...rest } = options
  const charge = yield* chargeOf(context, id, rest)
  const { id: made } = yield* openDispute(context, charge, { metadata, reason })
  return made
})

const endDispute = Effect.fnUntraced(function* (
  context: RequestContext,
  options: Money & { readonly dispute?: string; readonly outcome?: "won" | "lost" }
) {
  const { dispute: named, outcome = "lost", ...rest } = options
  if (named !== undefined) yield* onlyForNew("dispute", rest)
  const id = named ?? (yield* dispute(context, rest))
  yield* closeDispute(context, id, outcome)
  return id
})

const id = maybe(Schema.String)

export const paymentTriggers = {
  "payment_intent.succeeded": trigger(money, (context, options) =>
    Effect.sync(() => succeed(context, newIntent(context, options), null).id)
  ),
  "payment_intent.payment_failed": trigger(money, (context, options) =>
    Effect.sync(() => fail(context, newIntent(context, options), null).id)
  ),
  "charge.refunded": trigger(Schema.Struct({ ...moneyOptions, charge: id, refund_amount: maybe(amount) }), refund),
  "refund.updated": trigger(Schema.Struct({ ...moneyOptions, refund: id }), (context, options) =>
    refundOf(context, options, "boleto").pipe(
      Effect.flatMap((refund) => settleRefund(context, refund)),
      Effect.map((refund) => refund.id)
    )
  ),
  "refund.failed": trigger(
    Schema.Struct({ ...moneyOptions, refund: id, reason: maybe(Schema.String.pipe(Schema.pattern(/^[a-z_]{1,64}$/))) }),
    (context, { reason, ...options }) =>
      refundOf(context, options, "card").pipe(
        Effect.flatMap((refund) => failRefund(context, refund, reason)),
        Effect.map((refund) => refund.id)
      )
  ),
  "charge.dispute.created": trigger(
    Schema.Struct({ ...moneyOptions, charge: id, reason: maybe(Schema.String.pipe(Schema.pattern(/^[a-z_]{1,64}$/))) }),
    dispute
  ),
  "charge.dispute.closed": trigger(
    Schema.Struct({ ...moneyOptions, dispute: id, outcome: maybe(Schema.Literal("won", "lost")) }),
    endDispute
  )
}

/** A payer who accepts the order as it is and enters no email address. */
export const somebody: Payer = {
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

export const newSale = Effect.fnUntraced(function* (context: RequestContext, money: Money) {
  const price = yield* newPrice(context, money, false)
  return yield* createSession(context, {
    mode: "payment",
    line_items: [{ price, quantity: 1 }],
    metadata: money.metadata ?? {},
    success_url
  })
})

export const newSubscriptionSale = Effect.fnUntraced(function* (context: RequestContext, money: Money, items: number) {
  const prices = yield* Effect.forEach(Array.from({ length: items }), () => newPrice(context, money, true))
  return yield* createSession(context, {
    mode: "subscription",
    line_items: prices.map((price) => ({ price, quantity: 1 })),
    subscription_data: { metadata: money.metadata ?? {} },
    success_url
  })
})

export const sessionOf = ({ objects }: RequestContext, id: string) => {
  const session = objects.get("checkout.session", id)
  return session === undefined ? notFound("checkout.session", id) : Effect.succeed(session)
}

/** A session with what it sells, to be completed; fails with 400 if it is not open. */
export const openCheckout = Effect.fnUntraced(function* ({ objects }: RequestContext, session: Session) {
  const order = objects.get("order", session.id)
  if (session.status !== "open" || order === undefined) {
    return yield* invalid("session", `Session ${session.id} is not open: ${session.status}.`)
  }
  return { order, session } satisfies OpenCheckout
})

const payoutOptions = Schema.Struct({ ...moneyOptions, automatic: maybe(Schema.Boolean), payout: maybe(Schema.String) })

const bring = Effect.fnUntraced(function* (
  context: RequestContext,
  state: PayoutState,
  { payout, ...asked }: typeof payoutOptions.Type
) {
  if (payout === undefined) {
    const { id } = yield* makePayoutOf(context, { ...usualMoney, ...asked, state })
    return id
  }
  yield* onlyForNew("payout", asked)
  const { id } = yield* movePayout(context, payout, state)
  return id
})

const to = (state: PayoutState): Trigger => trigger(payoutOptions, (context, asked) => bring(context, state, asked))

export const payoutTriggers = {
  "payout.created": to("pending"),
  "payout.updated": to("in_transit"),
  "payout.paid": to("paid"),
  "payout.failed": to("failed"),
  "payout.canceled": to("canceled")
}

const sessionId = maybe(Schema.String)

const sessionNamedOrNew = Effect.fnUntraced(function* (
  context: RequestContext,
  named: string | undefined,
  money: Money
) {
  if (named === undefined) return yield* newSale(context, money)
  yield* onlyForNew("session", money)
  return yield* sessionOf(context, named)
})

const complete = Effect.fnUntraced(function* (
  context: RequestContext,
  { method = "card", session: named, ...money }: Money & { readonly method?: PaymentMethod; readonly session?: string }
) {
  const checkout = yield* openCheckout(context, yield* sessionNamedOrNew(context, named, money))
  const { id } = yield* method === "card"
    ? pay(context, checkout, somebody)
    : payLater(context, checkout, somebody, method)
  return id
})

const laterOptions = Schema.Struct({
  ...moneyOptions,
  method: maybe(Schema.Literal(...laterMethods)),
  session: sessionId
})

/** A session that waits for its payment: the named one, which is completed first if it is open, or a new one. */
const unpaid = Effect.fnUntraced(function* (
  context: RequestContext,
  { method, session: named, ...money }: typeof laterOptions.Type
) {
  const session = yield* sessionNamedOrNew(context, named, money)
  if (session.status === "complete") {
    yield* onlyForNew("session", method === undefined ? {} : { method })
    return session
  }
  return yield* payLater(context, yield* openCheckout(context, session), somebody, method ?? "boleto")
})

const later = (outcome: "succeeded" | "failed"): Trigger =>
  trigger(laterOptions, (context, options) =>
    Effect.flatMap(unpaid(context, options), (session) => Effect.map(settle(context, session, outcome), ({ id }) => id))
  )

export const checkoutTriggers = {
  "checkout.session.completed": trigger(
    Schema.Struct({ ...moneyOptions, method: maybe(Schema.Literal("card", ...laterMethods)), session: sessionId }),
    complete
  ),
  "checkout.session.async_payment_succeeded": later("succeeded"),
  "checkout.session.async_payment_failed": later("failed")
}

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
