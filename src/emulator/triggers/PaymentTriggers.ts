import { Effect, Schema } from "effect"
import type { RequestContext } from "../api/Route.ts"
import { fail, succeed } from "../checkout/PaymentSteps.ts"
import { amount, currency, maybe, metadata } from "../control/ControlInput.ts"
import { notFound } from "../ProviderError.ts"
import type { PaymentIntent } from "../Records.ts"
import { closeDispute, openDispute } from "../resources/Disputes.ts"
import { createPaymentIntent } from "../resources/PaymentIntents.ts"
import { createRefund, failRefund, settleRefund } from "../resources/Refunds.ts"
import { onlyForNew, trigger } from "./Trigger.ts"

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
