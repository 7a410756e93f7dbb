import { Effect } from "effect"
import { checkPayment, paymentFilters } from "../../api/Lists.ts"
import type { RequestContext, Route } from "../../api/Route.ts"
import { newId } from "../../Ids.ts"
import { type Check, firstOf, invalid } from "../../ProviderError.ts"
import { type Charge, type Dispute, nulls } from "../../Records.ts"
import { recordDispute, recordWonDispute } from "../balance/BalanceTransactions.ts"
import { resource } from "../Resource.ts"

export interface DisputeOrder {
  /** Such as `fraudulent` or `product_not_received`. */
  readonly reason: string
  readonly metadata: Readonly<Record<string, string>>
}

export type DisputeOutcome = "won" | "lost"

/** Seconds that the account has to respond to a dispute. */
const timeToAnswer = 9 * 24 * 60 * 60

const noEvidence: Dispute["evidence"] = {
  ...nulls("access_activity_log billing_address cancellation_policy cancellation_policy_disclosure"),
  ...nulls("cancellation_rebuttal customer_communication customer_email_address customer_name customer_purchase_ip"),
  ...nulls("customer_signature duplicate_charge_documentation duplicate_charge_explanation duplicate_charge_id"),
  ...nulls("product_description receipt refund_policy refund_policy_disclosure refund_refusal_explanation"),
  ...nulls("service_date service_documentation shipping_address shipping_carrier shipping_date"),
  ...nulls("shipping_documentation shipping_tracking_number uncategorized_file uncategorized_text"),
  enhanced_evidence: {}
}

const makeDispute = (context: RequestContext, charge: Charge, { metadata, reason }: DisputeOrder): Dispute => ({
  id: newId("du_"),
  object: "dispute",
  amount: charge.amount - charge.amount_refunded,
  balance_transactions: [],
  charge: charge.id,
  created: context.now,
  currency: charge.currency,
  enhanced_eligibility_types: [],
  evidence: noEvidence,
  evidence_details: {
    due_by: context.now + timeToAnswer,
    enhanced_eligibility: {},
    has_evidence: false,
    past_due: false,
    submission_count: 0,
    submission_method: "not_submitted"
  },
  intended_submission_method: null,
  is_charge_refundable: false,
  livemode: false,
  metadata,
  payment_intent: charge.payment_intent,
  payment_method_details: {
    card: { brand: "visa", case_type: "chargeback", network: "visa", network_reason_code: "10.4" },
    type: "card"
  },
  reason,
  status: "needs_response"
})

const checkDisputable = ({ disputed, id, paid, payment_method_details, refunded }: Charge): Check =>
  firstOf(
    (!paid || refunded) && invalid("charge", `There is nothing of charge ${id} to dispute.`),
    payment_method_details?.type !== "card" && invalid("charge", "Only payments by card can be disputed."),
    disputed && invalid("charge", `Charge ${id} has already been disputed.`)
  )

/** About the unrefunded part of a charge, once, paid by card; amount and fee leave the balance. */
export const openDispute = Effect.fnUntraced(function* (context: RequestContext, charge: Charge, order: DisputeOrder) {
  yield* checkDisputable(charge)
  const made = makeDispute(context, charge, order)
  const dispute: Dispute = { ...made, balance_transactions: [recordDispute(context, made)] }
  context.objects.put("charge", charge.id, { ...charge, disputed: true })
  context.save("dispute", "charge.dispute.created", dispute)
  context.emit({ type: "charge.dispute.funds_withdrawn", shape: "dispute", object: dispute })
  return dispute
})

/** Closes a dispute; a won dispute has the account's evidence. */
const closed = (context: RequestContext, before: Dispute, outcome: DisputeOutcome): Dispute => {
  if (outcome === "lost") return { ...before, status: "lost" }
  return {
    ...before,
    balance_transactions: [...before.balance_transactions, recordWonDispute(context, before)],
    evidence: { ...noEvidence, uncategorized_text: "The payer confirmed the order in writing." },
    evidence_details: {
      ...before.evidence_details,
      has_evidence: true,
      submission_count: 1,
      submission_method: "manual"
    },
    status: "won"
  }
}

/** If won, the amount returns to the balance. Errors: an unknown dispute (404), or one that has ended (400). */
export const closeDispute = Effect.fnUntraced(function* (context: RequestContext, id: string, outcome: DisputeOutcome) {
  const before = yield* disputes.existing(context, id)
  if (before.status !== "needs_response") {
    return yield* invalid("dispute", `Dispute ${id} has ended: ${before.status}.`)
  }
  const dispute = closed(context, before, outcome)
  if (outcome === "won") {
    context.emit({ type: "charge.dispute.funds_reinstated", shape: "dispute", object: dispute })
  }
  return context.save("dispute", "charge.dispute.closed", dispute)
})

const disputes = resource("/v1/disputes", "dispute")

export const disputeRoutes: ReadonlyArray<Route> = [
  disputes.list(paymentFilters, { check: checkPayment }),
  disputes.get
]
