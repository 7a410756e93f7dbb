import { Effect } from "effect"
import type Stripe from "stripe"
import type { ListPayouts } from "../account/PayoutsApi.ts"
import type { ListBalanceTransactions } from "../account/TransactionsApi.ts"
import type { Provider } from "../Provider.ts"
import { type FieldNames, inOurNames } from "../RefusedFields.ts"
import { named, one, page, type StripeCall } from "../stripe/StripeCall.ts"
import type { ListPayments } from "./Api.ts"
import type { CreateRefund } from "./RefundsApi.ts"

/** Charges, payment intents, refunds, payouts and what they do to the balance, at Stripe. */

interface CreatedWithin {
  readonly created_gte?: number
  readonly created_lte?: number
}

/** A range of times as the provider takes it. */
const within = <A extends CreatedWithin>({ created_gte: gte, created_lte: lte, ...rest }: A) => ({
  ...rest,
  ...(gte === undefined && lte === undefined
    ? {}
    : { created: { ...(gte === undefined ? {} : { gte }), ...(lte === undefined ? {} : { lte }) } })
})

const rangeNames: FieldNames = { "created.gte": "created_gte", "created.lte": "created_lte" }

/** The parameters of a list of charges or of payment intents. */
export const paymentsParams = (params: ListPayments): Stripe.ChargeListParams & Stripe.PaymentIntentListParams =>
  within(params)

/** The parameters of a list of payouts. */
export const payoutsParams = (params: ListPayouts): Stripe.PayoutListParams => within(params)

/** The parameters of a list of balance transactions. */
export const transactionsParams = (params: ListBalanceTransactions): Stripe.BalanceTransactionListParams =>
  within(params)

/** The parameters of a new refund. */
export const refundParams = ({ metadata, ...rest }: CreateRefund): Stripe.RefundCreateParams => ({
  ...rest,
  ...(metadata === undefined ? {} : { metadata: { ...metadata } })
})

/** The operations of `Provider` on money. */
export const stripeMoney = (call: StripeCall) =>
  ({
    listBalanceTransactions: (account, params) =>
      page(
        call("balance_transactions.list", account, (client, scope) =>
          client.balanceTransactions.list(transactionsParams(params), scope)
        )
      ).pipe(Effect.mapError(inOurNames(rangeNames))),

    listCharges: (account, params) =>
      page(call("charges.list", account, (client, scope) => client.charges.list(paymentsParams(params), scope))).pipe(
        Effect.mapError(inOurNames(rangeNames))
      ),
    retrieveCharge: (account, id) =>
      named(call("charges.retrieve", account, (client, scope) => client.charges.retrieve(id, {}, scope))),

    listPaymentIntents: (account, params) =>
      page(
        call("payment_intents.list", account, (client, scope) =>
          client.paymentIntents.list(paymentsParams(params), scope)
        )
      ).pipe(Effect.mapError(inOurNames(rangeNames))),
    retrievePaymentIntent: (account, id) =>
      named(
        call("payment_intents.retrieve", account, (client, scope) => client.paymentIntents.retrieve(id, {}, scope))
      ),

    createRefund: (account, params, { idempotencyKey }) =>
      one(
        call("refunds.create", account, (client, scope) =>
          client.refunds.create(refundParams(params), { ...scope, idempotencyKey })
        )
      ),

    listPayouts: (account, params) =>
      page(call("payouts.list", account, (client, scope) => client.payouts.list(payoutsParams(params), scope))).pipe(
        Effect.mapError(inOurNames(rangeNames))
      ),
    retrievePayout: (account, id) =>
      named(call("payouts.retrieve", account, (client, scope) => client.payouts.retrieve(id, {}, scope)))
  }) satisfies Partial<Provider["Type"]>
