import { Effect } from "effect"
import type { RequestContext } from "../api/Route.ts"
import { refuse } from "../ProviderError.ts"
import type { PaymentIntent, Session, Subscription } from "../Records.ts"
import { createCustomer } from "../resources/billing/Customers.ts"
import { issue, makeInvoice } from "../resources/billing/Invoices.ts"
import { makeDiscount, makeSubscription } from "../resources/billing/SubscriptionCreation.ts"
import { type Choices, couponOf, type OpenCheckout, withChoices } from "./Choices.ts"
import { complete, fail, intentOf, succeed } from "./PaymentSteps.ts"

/** Adds a code's discount to a subscription; a discount for a single invoice is not kept on it. */
const discountedBy = (context: RequestContext, session: Session, subscription: Subscription) => {
  const coupon = couponOf(context, session)
  if (coupon === undefined) return { discount: undefined, subscription }
  const discount = makeDiscount(context, session, subscription, coupon)
  context.objects.put("discount", discount.id, discount)
  return {
    discount: discount.id,
    subscription: coupon.duration === "once" ? subscription : { ...subscription, discounts: [discount.id] }
  }
}

const paymentFor = (
  context: RequestContext,
  checkout: OpenCheckout,
  customer: string,
  email: string | null
): PaymentIntent | undefined => {
  const { order, session } = checkout
  if (session.amount_total === 0) return undefined
  const waiting = intentOf(context, checkout, order.attemptedIntent ?? null)
  return succeed(
    context,
    { ...waiting, customer, description: "Subscription creation", setup_future_usage: "off_session" },
    email
  )
}

/** Customer, first payment (none if everything sold is in a trial), subscription and first invoice. */
const subscribe = (context: RequestContext, checkout: OpenCheckout, email: string | null): Session => {
  const { order, session } = checkout
  const customer = createCustomer(context, email)
  const intent = paymentFor(context, checkout, customer.id, email)
  const made = makeSubscription(context, { customer, order, session })
  const { discount, subscription } = discountedBy(context, session, made)
  const invoice = makeInvoice(context, {
    customer,
    discount,
    items: order.items,
    paid: true,
    paymentIntent: intent?.id ?? null,
    reason: "subscription_create",
    subscription
  })
  const current: Subscription = { ...subscription, latest_invoice: invoice.id }
  context.objects.put("customer", customer.id, { ...customer, currency: session.currency, next_invoice_sequence: 2 })
  context.save("subscription", "customer.subscription.created", current)
  issue(context, invoice)
  return complete(context, session, email, {
    customer: customer.id,
    invoice: invoice.id,
    payment_intent: null,
    payment_status: intent === undefined ? "no_payment_required" : "paid",
    subscription: current.id
  })
}

export interface Payer extends Choices {
  readonly email: string | null
}

const emailOf = (session: Session, payer: Payer): string | null => payer.email ?? session.customer_email

const payOnce = (context: RequestContext, checkout: OpenCheckout, email: string | null): Session => {
  const { session } = checkout
  const customer = session.customer_creation === "always" ? createCustomer(context, email).id : null
  if (session.amount_total === 0) {
    return complete(context, session, email, {
      customer,
      payment_intent: null,
      payment_status: "no_payment_required"
    })
  }
  const intent = succeed(context, { ...intentOf(context, checkout, session.payment_intent), customer }, email)
  return complete(context, session, email, { customer, payment_intent: intent.id, payment_status: "paid" })
}

/** An order of 0 is completed without a payment (`no_payment_required`). */
export const pay = Effect.fnUntraced(function* (context: RequestContext, checkout: OpenCheckout, payer: Payer) {
  const chosen = yield* withChoices(context, checkout, payer)
  const email = emailOf(chosen.session, payer)
  return chosen.session.mode === "subscription" ? subscribe(context, chosen, email) : payOnce(context, chosen, email)
})

/** The session stays open, and the same payment intent can succeed later. */
export const declinePayment = Effect.fnUntraced(function* (
  context: RequestContext,
  checkout: OpenCheckout,
  payer: Payer
) {
  const chosen = yield* withChoices(context, checkout, payer)
  const { order, session } = chosen
  if (session.amount_total === 0) {
    return yield* refuse({ message: "There is nothing to pay, so there is no card to decline." })
  }
  const attempted = session.payment_intent ?? order.attemptedIntent ?? null
  const intent = fail(context, intentOf(context, chosen, attempted), emailOf(session, payer))
  if (session.mode === "subscription") {
    const attemptedOrder = { ...order, attemptedIntent: intent.id }
    context.objects.put("order", session.id, attemptedOrder)
    return { order: attemptedOrder, session }
  }
  const open: Session = { ...session, payment_intent: intent.id }
  context.objects.put("checkout.session", session.id, open)
  return { order, session: open }
})
