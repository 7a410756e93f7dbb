import type { RequestContext } from "../api/Route.ts"
import { newId } from "../Ids.ts"
import type { Charge, PaymentIntent, Session } from "../Records.ts"
import { recordCharge } from "../resources/balance/BalanceTransactions.ts"
import { countSale } from "../resources/checkout/PaymentLinks.ts"
import { type CardOutcome, decline, makeCharge, type PaymentMethod } from "../resources/payments/Charges.ts"
import { createPaymentIntent } from "../resources/payments/PaymentIntents.ts"
import type { OpenCheckout } from "./Choices.ts"
import { redeem } from "./Choices.ts"
import { noDetails } from "./CustomFields.ts"

/** The payment intent of an order: one for all attempts, created at the first of them (`payment_intent.created`). */
export const intentOf = (
  context: RequestContext,
  { order, session }: OpenCheckout,
  attempted: string | null
): PaymentIntent => {
  const known = attempted === null ? undefined : context.objects.get("payment_intent", attempted)
  if (known !== undefined) return { ...known, amount: session.amount_total }
  const { amount_total: amount, currency } = session
  return createPaymentIntent(context, { amount, currency, data: order.paymentIntentData })
}

interface Attempt {
  readonly outcome: CardOutcome
  readonly method: PaymentMethod
  readonly email: string | null
}

const charge = (context: RequestContext, intent: PaymentIntent, { email, method, outcome }: Attempt): Charge => {
  // An asynchronous payment method was chosen before the payment arrives
  const paymentMethod = typeof intent.payment_method === "string" ? intent.payment_method : newId("pm_")
  const attempt = makeCharge(intent, { created: context.now, outcome, method, paymentMethod, email })
  const made = outcome === "approved" ? { ...attempt, balance_transaction: recordCharge(context, attempt).id } : attempt
  return context.save("charge", outcome === "approved" ? "charge.succeeded" : "charge.failed", made)
}

/** The card, or another payment method, pays. Events: `charge.succeeded`, `payment_intent.succeeded`. */
export const succeed = (
  context: RequestContext,
  waiting: PaymentIntent,
  email: string | null,
  method: PaymentMethod = "card"
): PaymentIntent => {
  const paid = charge(context, waiting, { outcome: "approved", method, email })
  return context.save("payment_intent", "payment_intent.succeeded", {
    ...waiting,
    amount_received: waiting.amount,
    last_payment_error: null,
    latest_charge: paid.id,
    next_action: null,
    payment_method: paid.payment_method,
    status: "succeeded"
  })
}

/** The card is declined. Events: `charge.failed`, `payment_intent.payment_failed`. */
export const fail = (context: RequestContext, waiting: PaymentIntent, email: string | null): PaymentIntent => {
  const failed = charge(context, waiting, { outcome: "declined", method: "card", email })
  return context.save("payment_intent", "payment_intent.payment_failed", {
    ...waiting,
    last_payment_error: {
      advice_code: "try_again_later",
      charge: failed.id,
      code: decline.code,
      decline_code: decline.declineCode,
      doc_url: "https://stripe.com/docs/error-codes/card-declined",
      message: decline.message,
      network_decline_code: "01",
      type: "card_error"
    },
    latest_charge: failed.id,
    status: "requires_payment_method"
  })
}

export type Outcome = Pick<Session, "payment_status"> &
  Partial<Pick<Session, "customer" | "invoice" | "payment_intent" | "subscription">>

/** Events: `checkout.session.completed`, and `payment_link.updated` if that closes the link. */
export const complete = (
  context: RequestContext,
  session: Session,
  email: string | null,
  outcome: Outcome
): Session => {
  const completed = context.save("checkout.session", "checkout.session.completed", {
    ...session,
    ...outcome,
    customer_details: { ...noDetails, email, phone: session.customer_details?.phone ?? null },
    status: "complete",
    url: null
  })
  redeem(context, completed)
  countSale(context, completed)
  return completed
}
