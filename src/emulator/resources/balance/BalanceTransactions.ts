import { Effect } from "effect"
import * as Params from "../../api/Params.ts"
import { named, type RequestContext, type Route } from "../../api/Route.ts"
import { newId } from "../../Ids.ts"
import type { BalanceTransaction, Charge, Dispute, Payout, Refund } from "../../Records.ts"
import { resource } from "../Resource.ts"

/** How long a payment's money is pending, in seconds: the accounts' settlement takes two days. */
const settlementDelay = 2 * 24 * 60 * 60

/** The provider's fee for a payment, in the smallest currency unit: 2.9 % and 30. */
const processingFee = (amount: number): number => Math.round((amount * 29) / 1_000) + 30

interface Movement {
  readonly amount: number
  readonly fee?: number
  readonly currency: string
  readonly source: string
  readonly type:
    | "adjustment"
    | "charge"
    | "payment"
    | "refund"
    | "refund_failure"
    | "payout"
    | "payout_failure"
    | "payout_cancel"
  /** Default: the type. */
  readonly category?: string
  readonly description: string | null
  /** Default: the provider's description of its processing fee. */
  readonly feeDescription?: string
  /** Seconds until the money is available. */
  readonly delay?: number
}

const record = (context: RequestContext, movement: Movement): BalanceTransaction => {
  const { amount, category, currency, delay = 0, description, fee = 0, source, type } = movement
  const feeDescription = movement.feeDescription ?? "Stripe processing fees"
  const transaction: BalanceTransaction = {
    id: newId("txn_"),
    object: "balance_transaction",
    amount,
    available_on: context.now + delay,
    balance_type: "payments",
    created: context.now,
    currency,
    description,
    exchange_rate: null,
    fee,
    fee_details:
      fee === 0 ? [] : [{ amount: fee, application: null, currency, description: feeDescription, type: "stripe_fee" }],
    net: amount - fee,
    reporting_category: category ?? type,
    source,
    status: delay === 0 ? "available" : "pending",
    type
  }
  context.objects.put("balance_transaction", transaction.id, transaction)
  return transaction
}

/** Less the provider's fee, pending for two days; other than by card, of the type `payment`. */
export const recordCharge = (context: RequestContext, charge: Charge) =>
  record(context, {
    amount: charge.amount,
    fee: processingFee(charge.amount),
    currency: charge.currency,
    source: charge.id,
    type: charge.payment_method_details?.type === "card" ? "charge" : "payment",
    category: "charge",
    description: charge.description,
    delay: settlementDelay
  })

/** Records a refund, which leaves the balance at once; the fee of its payment is not returned. */
export const recordRefund = (context: RequestContext, { amount, currency, id }: Refund) =>
  record(context, { amount: -amount, currency, source: id, type: "refund", description: "REFUND FOR CHARGE" })

export const recordFailedRefund = (context: RequestContext, { amount, currency, id }: Refund) =>
  record(context, { amount, currency, source: id, type: "refund_failure", description: "REFUND FAILURE" })

export const recordPayout = (context: RequestContext, { amount, currency, id }: Payout) =>
  record(context, { amount: -amount, currency, source: id, type: "payout", description: "STRIPE PAYOUT" })

export const recordReturnedPayout = (
  context: RequestContext,
  { amount, currency, id }: Payout,
  type: "payout_failure" | "payout_cancel"
) =>
  record(context, {
    amount,
    category: "payout_reversal",
    currency,
    source: id,
    type,
    description: "STRIPE PAYOUT RETURNED"
  })

/** The provider's fee for a dispute, in the smallest currency unit; it is never returned. */
const disputeFee = 1_500

export const recordDispute = (context: RequestContext, { amount, charge, currency, id }: Dispute) =>
  record(context, {
    amount: -amount,
    category: "dispute",
    currency,
    description: `Chargeback withdrawal for ${charge}`,
    fee: disputeFee,
    feeDescription: "Dispute fee",
    source: id,
    type: "adjustment"
  })

export const recordWonDispute = (context: RequestContext, { amount, charge, currency, id }: Dispute) =>
  record(context, {
    amount,
    category: "dispute_reversal",
    currency,
    description: `Chargeback reversal for ${charge}`,
    source: id,
    type: "adjustment"
  })

/** The transaction with its current status: pending until its money is available. */
const currentTransaction = ({ now }: RequestContext, transaction: BalanceTransaction): BalanceTransaction => ({
  ...transaction,
  status: transaction.available_on <= now ? "available" : "pending"
})

export const currentTransactions = (context: RequestContext): ReadonlyArray<BalanceTransaction> =>
  context.objects.all("balance_transaction").map((transaction) => currentTransaction(context, transaction))

const filters = Params.optionals({
  created: Params.range,
  currency: Params.currency,
  payout: Params.text(),
  source: Params.text(),
  type: Params.text()
})

const checkPayout = (context: RequestContext, { payout }: typeof filters.Type) =>
  payout === undefined ? Effect.void : named(context, "payout", payout)

const transactions = resource("/v1/balance_transactions", "balance_transaction", currentTransaction)

export const balanceTransactionRoutes: ReadonlyArray<Route> = [
  transactions.list(filters, {
    check: checkPayout,
    matches: {
      payout: ({ id }, payout, { objects }) =>
        payout === undefined || objects.get("payout_contents", payout)?.transactions.includes(id) === true
    }
  }),
  transactions.get
]
