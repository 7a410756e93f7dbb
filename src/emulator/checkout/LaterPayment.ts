import { Effect } from "effect"
import type { RequestContext } from "../api/Route.ts"
import { newId } from "../Ids.ts"
import { invalid, type ProviderError } from "../ProviderError.ts"
import type { PaymentIntent, Session } from "../Records.ts"
import { createCustomer } from "../resources/billing/Customers.ts"
import type { PaymentMethod } from "../resources/payments/Charges.ts"
import { type OpenCheckout, withChoices } from "./Choices.ts"
import type { Payer } from "./Payment.ts"
import { complete, intentOf, succeed } from "./PaymentSteps.ts"

/** Payment methods with which a payer completes an order and pays later: bank slip and instant transfer. */
const laterMethods = ["boleto", "pix"] as const

type LaterMethod = (typeof laterMethods)[number]

/** Whether an order can be paid later: it is in Brazilian reais and not for a subscription. */
export const canPayLater = ({ amount_total, currency, mode }: Session): boolean =>
  mode === "payment" && currency === "brl" && amount_total > 0

/** How long a slip or a code is valid, in seconds. */
const validity: { readonly [M in LaterMethod]: number } = { boleto: 3 * 24 * 60 * 60, pix: 24 * 60 * 60 }

const number = "01010101010101010101010101010101010101010101010"

const nextActionOf = (method: LaterMethod, expiresAt: number): PaymentIntent["next_action"] =>
  method === "boleto"
    ? {
        boleto_display_details: {
          expires_at: expiresAt,
          hosted_voucher_url: `https://voucher.example/${number}`,
          number,
          pdf: `https://voucher.example/${number}/pdf`
        },
        type: "boleto_display_details"
      }
    : { pix_display_qr_code: { data: "emulated-pix-code", expires_at: expiresAt }, type: "pix_display_qr_code" }

const optionsOf = (method: LaterMethod): NonNullable<PaymentIntent["payment_method_options"]> =>
  method === "boleto"
    ? { boleto: { expires_after_days: 3 } }
    : { pix: { expires_after_seconds: validity.pix, expires_at: null } }

const waiting = (context: RequestContext, intent: PaymentIntent, method: LaterMethod): PaymentIntent => ({
  ...intent,
  next_action: nextActionOf(method, context.now + validity[method]),
  payment_method: newId("pm_"),
  payment_method_options: { ...intent.payment_method_options, ...optionsOf(method) },
  payment_method_types: ["card", method],
  status: "requires_action"
})

/** Complete but unpaid until {@link settle}. Error (400): an order that cannot be paid later. */
export const payLater = Effect.fnUntraced(function* (
  context: RequestContext,
  checkout: OpenCheckout,
  payer: Payer,
  method: LaterMethod
) {
  const chosen = yield* withChoices(context, checkout, payer)
  const { session } = chosen
  if (!canPayLater(session)) {
    return yield* invalid("method", `By ${method} only one-time orders in brl are paid.`)
  }
  const email = payer.email ?? session.customer_email
  const customer = session.customer_creation === "always" ? createCustomer(context, email).id : null
  const intent = waiting(context, { ...intentOf(context, chosen, session.payment_intent), customer }, method)
  context.save("payment_intent", "payment_intent.requires_action", intent)
  return complete(context, { ...session, payment_method_types: ["card", method] }, email, {
    customer,
    payment_intent: intent.id,
    payment_status: "unpaid"
  })
})

const methodOf = ({ payment_method_types }: PaymentIntent): PaymentMethod =>
  laterMethods.find((method) => payment_method_types.includes(method)) ?? "card"

/** Expires the slip or the code: no charge is created. Event: `payment_intent.payment_failed`. */
const runOut = (context: RequestContext, before: PaymentIntent): void => {
  context.save("payment_intent", "payment_intent.payment_failed", {
    ...before,
    last_payment_error: {
      code: "payment_intent_payment_attempt_expired",
      doc_url: "https://stripe.com/docs/error-codes/payment-intent-payment-attempt-expired",
      message: "The latest payment attempt of the PaymentIntent has expired.",
      type: "invalid_request_error"
    },
    next_action: null,
    payment_method: null,
    status: "requires_payment_method"
  })
}

const unpaidIntent = (context: RequestContext, session: Session): Effect.Effect<PaymentIntent, ProviderError> => {
  const intent =
    session.payment_intent === null ? undefined : context.objects.get("payment_intent", session.payment_intent)
  return session.status === "complete" && intent?.status === "requires_action"
    ? Effect.succeed(intent)
    : invalid("session", `Session ${session.id} does not wait for a payment.`)
}

/** Its payment arrives, or its slip or code expires. Error (400): a session that does not wait for a payment. */
export const settle = Effect.fnUntraced(function* (
  context: RequestContext,
  before: Session,
  outcome: "succeeded" | "failed"
) {
  const intent = yield* unpaidIntent(context, before)
  const isPaid = outcome === "succeeded"
  if (isPaid) succeed(context, intent, before.customer_details?.email ?? null, methodOf(intent))
  else runOut(context, intent)
  return context.save("checkout.session", `checkout.session.async_payment_${outcome}`, {
    ...before,
    payment_status: isPaid ? "paid" : "unpaid"
  })
})
