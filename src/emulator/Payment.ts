import { Effect } from "effect"
import { newId } from "./Ids.ts"
import { type ProviderError, refuse } from "./ProviderError.ts"
import type { LineItem, Order, PaymentIntent, Session } from "./Records.ts"
import type { RequestContext } from "./Route.ts"
import { type CardOutcome, decline, makeCharge } from "./resources/Charges.ts"
import { makePaymentIntent } from "./resources/PaymentIntents.ts"

/** What the payer filled in on the page. */
export interface Payer {
  readonly email: string | null
  /** The amount, in the smallest currency unit, where the price leaves it to the payer. */
  readonly amount: number | undefined
}

/** An open session with what it sells. */
export interface OpenCheckout {
  readonly session: Session
  readonly order: Order
}

const chosenAmount = (item: LineItem, amount: number | undefined): Effect.Effect<number, ProviderError> => {
  const bounds = item.price.custom_unit_amount
  const chosen = amount ?? bounds?.preset ?? undefined
  if (chosen === undefined) {
    return Effect.fail(refuse({ code: "parameter_missing", param: "amount", message: "Say how much you want to pay." }))
  }
  const minimum = bounds?.minimum ?? 1
  const maximum = bounds?.maximum ?? 99_999_999
  return chosen >= minimum && chosen <= maximum
    ? Effect.succeed(chosen)
    : Effect.fail(
        refuse({ param: "amount", message: `The amount must be between ${minimum} and ${maximum} ${item.currency}.` })
      )
}

/** The session with the amount that the payer chose, where that is left to the payer. */
const withChosenAmount = Effect.fnUntraced(function* (
  context: RequestContext,
  { order, session }: OpenCheckout,
  payer: Payer
) {
  const [item] = order.items
  if (item === undefined || item.price.custom_unit_amount === null) {
    return payer.amount === undefined
      ? { order, session }
      : yield* refuse({ param: "amount", message: "The amount of this order is fixed." })
  }
  const amount = yield* chosenAmount(item, payer.amount)
  const items = [{ ...item, amount_subtotal: amount, amount_total: amount }]
  const chosen = {
    order: { ...order, items },
    session: { ...session, amount_subtotal: amount, amount_total: amount }
  }
  context.objects.put("order", session.id, chosen.order)
  return chosen
})

/** The session's payment intent: one for all attempts, made at the first of them. */
const intentOf = (context: RequestContext, { order, session }: OpenCheckout): PaymentIntent => {
  const known =
    session.payment_intent === null ? undefined : context.objects.get("payment_intent", session.payment_intent)
  if (known !== undefined) return { ...known, amount: session.amount_total }
  const intent = makePaymentIntent({
    amount: session.amount_total,
    currency: session.currency,
    created: context.now,
    data: order.paymentIntentData
  })
  context.objects.put("payment_intent", intent.id, intent)
  context.emit({ type: "payment_intent.created", shape: "payment_intent", object: intent })
  return intent
}

const charge = (context: RequestContext, intent: PaymentIntent, outcome: CardOutcome, payer: Payer) => {
  const made = makeCharge(intent, { created: context.now, outcome, paymentMethod: newId("pm_"), email: payer.email })
  context.objects.put("charge", made.id, made)
  context.emit({ type: outcome === "approved" ? "charge.succeeded" : "charge.failed", shape: "charge", object: made })
  return made
}

const succeed = (context: RequestContext, waiting: PaymentIntent, payer: Payer): PaymentIntent => {
  const paid = charge(context, waiting, "approved", payer)
  const intent: PaymentIntent = {
    ...waiting,
    amount_received: waiting.amount,
    last_payment_error: null,
    latest_charge: paid.id,
    payment_method: paid.payment_method,
    status: "succeeded"
  }
  context.objects.put("payment_intent", intent.id, intent)
  context.emit({ type: "payment_intent.succeeded", shape: "payment_intent", object: intent })
  return intent
}

const complete = (
  context: RequestContext,
  session: Session,
  payer: Payer,
  outcome: Pick<Session, "payment_intent" | "payment_status">
): Session => {
  const completed: Session = {
    ...session,
    ...outcome,
    customer_details: {
      address: null,
      business_name: null,
      email: payer.email ?? session.customer_email,
      individual_name: null,
      name: null,
      phone: null,
      tax_exempt: "none",
      tax_ids: null
    },
    status: "complete",
    url: null
  }
  context.objects.put("checkout.session", session.id, completed)
  context.emit({ type: "checkout.session.completed", shape: "checkout.session", object: completed })
  return completed
}

/**
 * Pays an open session: payment intent and charge succeed, the session is complete. An order of 0 is complete without
 * a payment (`no_payment_required`).
 *
 * Events: `payment_intent.created` (at the first attempt), `charge.succeeded`, `payment_intent.succeeded`,
 * `checkout.session.completed`.
 */
export const pay = Effect.fnUntraced(function* (context: RequestContext, checkout: OpenCheckout, payer: Payer) {
  const chosen = yield* withChosenAmount(context, checkout, payer)
  if (chosen.session.amount_total === 0) {
    return complete(context, chosen.session, payer, { payment_intent: null, payment_status: "no_payment_required" })
  }
  const intent = succeed(context, intentOf(context, chosen), payer)
  return complete(context, chosen.session, payer, { payment_intent: intent.id, payment_status: "paid" })
})

/**
 * Lets the card be declined: the session stays open, and the same payment intent can succeed later.
 *
 * Events: `payment_intent.created` (at the first attempt), `charge.failed`, `payment_intent.payment_failed`.
 */
export const declinePayment = Effect.fnUntraced(function* (
  context: RequestContext,
  checkout: OpenCheckout,
  payer: Payer
) {
  const chosen = yield* withChosenAmount(context, checkout, payer)
  if (chosen.session.amount_total === 0) {
    return yield* refuse({ message: "There is nothing to pay, so there is no card to decline." })
  }
  const waiting = intentOf(context, chosen)
  const failed = charge(context, waiting, "declined", payer)
  const intent: PaymentIntent = {
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
  }
  context.objects.put("payment_intent", intent.id, intent)
  context.emit({ type: "payment_intent.payment_failed", shape: "payment_intent", object: intent })
  const session: Session = { ...chosen.session, payment_intent: intent.id }
  context.objects.put("checkout.session", session.id, session)
  return session
})
