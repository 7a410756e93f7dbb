import { Effect, Schema } from "effect"
import { checkPayment, paymentFilters } from "../../api/Lists.ts"
import * as Params from "../../api/Params.ts"
import { named, type RequestContext, type Route } from "../../api/Route.ts"
import { newId } from "../../Ids.ts"
import { invalid, type ProviderError, refuse } from "../../ProviderError.ts"
import { type Charge, nulls, type Refund } from "../../Records.ts"
import { recordFailedRefund, recordRefund } from "../balance/BalanceTransactions.ts"
import { resource } from "../Resource.ts"

const createParams = Schema.Struct({
  amount: Params.optional(Params.integer(1)),
  charge: Params.optional(Params.text()),
  metadata: Params.optional(Params.metadata),
  payment_intent: Params.optional(Params.text()),
  reason: Params.optional(Params.oneOf("duplicate", "fraudulent", "requested_by_customer"))
})

type CreateParams = typeof createParams.Type

const updateParams = Schema.Struct({ metadata: Params.optional(Params.metadata) })

const chargeOfIntent = Effect.fnUntraced(function* (context: RequestContext, id: string) {
  const intent = yield* named(context, "payment_intent", id)
  const charge = context.objects.get("charge", intent.latest_charge ?? "")
  if (charge?.paid === true) return charge
  return yield* invalid("payment_intent", `This PaymentIntent (${id}) does not have a successful charge to refund.`)
})

const chargeOf = (
  context: RequestContext,
  { charge, payment_intent }: CreateParams
): Effect.Effect<Charge, ProviderError> => {
  if (charge !== undefined && payment_intent !== undefined) {
    return invalid(
      "payment_intent",
      "You may only specify one of these parameters: charge, payment_intent.",
      "parameters_exclusive"
    )
  }
  if (payment_intent !== undefined) return chargeOfIntent(context, payment_intent)
  return charge === undefined
    ? invalid(
        "payment_intent",
        "One of the following params should be provided for this request: payment_intent or charge.",
        "parameter_missing"
      )
    : named(context, "charge", charge)
}

const refundableAmount = (charge: Charge, asked: number | undefined): Effect.Effect<number, ProviderError> => {
  if (!charge.paid) {
    return invalid("charge", `Charge ${charge.id} was not successful.`, "charge_not_refundable")
  }
  if (charge.refunded) {
    return refuse({ code: "charge_already_refunded", message: `Charge ${charge.id} has already been refunded.` })
  }
  if (charge.disputed) {
    return invalid("charge", `Charge ${charge.id} has been charged back.`, "charge_disputed")
  }
  const left = charge.amount - charge.amount_refunded
  const amount = asked ?? left
  return amount <= left
    ? Effect.succeed(amount)
    : invalid("amount", `Refund amount (${amount}) is greater than unrefunded amount on charge (${left}).`)
}

/** A refund to a card begins as succeeded. One of a bank slip or an instant transfer waits until it is settled. */
const firstStatus = ({ payment_method_details }: Charge): Pick<Refund, "pending_reason" | "status"> =>
  payment_method_details?.type === "card"
    ? { status: "succeeded" }
    : { pending_reason: "processing", status: "pending" }

const makeRefund = (context: RequestContext, charge: Charge, amount: number, params: CreateParams): Refund => ({
  id: newId("re_"),
  object: "refund",
  amount,
  ...nulls("balance_transaction customer customer_account payment_method receipt_number source_transfer_reversal"),
  ...nulls("transfer_reversal"),
  charge: charge.id,
  created: context.now,
  currency: charge.currency,
  destination_details: {
    card: { reference_status: "pending", reference_type: "acquirer_reference_number", type: "refund" },
    type: "card"
  },
  metadata: Params.patchMetadata({}, params.metadata),
  payment_intent: charge.payment_intent,
  reason: params.reason ?? null,
  ...firstStatus(charge)
})

export const createRefund = Effect.fnUntraced(function* (context: RequestContext, params: CreateParams) {
  const charge = yield* chargeOf(context, params)
  const amount = yield* refundableAmount(charge, params.amount)
  const made = makeRefund(context, charge, amount, params)
  const refund: Refund = { ...made, balance_transaction: recordRefund(context, made).id }
  const amountRefunded = charge.amount_refunded + amount
  const refunded: Charge = {
    ...charge,
    amount_refunded: amountRefunded,
    refunded: amountRefunded === charge.amount
  }
  context.save("refund", "refund.created", refund)
  context.save("charge", "charge.refunded", refunded, charge)
  return refund
})

const refunds = resource("/v1/refunds", "refund")

const changed = (context: RequestContext, refund: Refund, before: Refund): Refund => {
  context.save("refund", "refund.updated", refund, before)
  context.emit({ type: "charge.refund.updated", shape: "refund", object: refund, previous: before })
  return refund
}

export const settleRefund = Effect.fnUntraced(function* (context: RequestContext, id: string) {
  const before = yield* refunds.existing(context, id)
  if (before.status !== "pending") {
    return yield* invalid("refund", `Refund ${id} is not pending: ${before.status}.`)
  }
  const { pending_reason: _, ...rest } = before
  return changed(context, { ...rest, status: "succeeded" }, before)
})

/** The money returns to the balance. Events: `refund.failed`, `refund.updated`, `charge.refund.updated`. */
export const failRefund = Effect.fnUntraced(function* (
  context: RequestContext,
  id: string,
  reason = "expired_or_canceled_card"
) {
  const before = yield* refunds.existing(context, id)
  if (before.status !== "pending" && before.status !== "succeeded") {
    return yield* invalid("refund", `Refund ${id} can't fail any more: ${before.status}.`)
  }
  const { pending_reason: _, ...rest } = before
  const refund: Refund = {
    ...rest,
    failure_balance_transaction: recordFailedRefund(context, before).id,
    failure_reason: reason,
    status: "failed"
  }
  const charge = context.objects.get("charge", before.charge)
  if (charge !== undefined) {
    context.objects.put("charge", charge.id, {
      ...charge,
      amount_refunded: charge.amount_refunded - before.amount,
      refunded: false
    })
  }
  context.emit({ type: "refund.failed", shape: "refund", object: refund, previous: before })
  return changed(context, refund, before)
})

const update = (context: RequestContext, params: typeof updateParams.Type, before: Refund) =>
  Effect.sync(() => {
    const metadata = Params.patchMetadata(before.metadata ?? {}, params.metadata)
    return context.save("refund", "refund.updated", { ...before, metadata }, before)
  })

export const refundRoutes: ReadonlyArray<Route> = [
  refunds.create(createParams, createRefund),
  refunds.list(paymentFilters, { check: checkPayment }),
  refunds.get,
  refunds.update(updateParams, update)
]
