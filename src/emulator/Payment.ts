import { Effect } from "effect"
import { type Choices, type OpenCheckout, withChoices } from "./Choices.ts"
import { complete, fail, intentOf, succeed } from "./PaymentSteps.ts"
import { refuse } from "./ProviderError.ts"
import type { Session } from "./Records.ts"
import type { RequestContext } from "./Route.ts"
import { createCustomer } from "./resources/Customers.ts"
import { subscribe } from "./Subscribing.ts"

/** What the payer entered on the page. */
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

/**
 * Pays an open session with the payer's choices: payment intent and charge succeed, the session is complete. An order
 * of 0 is completed without a payment (`no_payment_required`).
 *
 * Events: `payment_intent.created` (at the first attempt), `charge.succeeded`, `payment_intent.succeeded`,
 * `checkout.session.completed`; for a subscription see {@link subscribe}.
 */
export const pay = Effect.fnUntraced(function* (context: RequestContext, checkout: OpenCheckout, payer: Payer) {
  const chosen = yield* withChoices(context, checkout, payer)
  const email = emailOf(chosen.session, payer)
  return chosen.session.mode === "subscription" ? subscribe(context, chosen, email) : payOnce(context, chosen, email)
})

/**
 * Declines the card: the session stays open, and the same payment intent can succeed later.
 *
 * Events: `payment_intent.created` (at the first attempt), `charge.failed`, `payment_intent.payment_failed`.
 */
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
