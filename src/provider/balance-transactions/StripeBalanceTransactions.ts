import { Effect } from "effect"
import type Stripe from "stripe"
import { inOurNames } from "../RefusedFields.ts"
import { page, type StripeCall } from "../stripe/StripeCall.ts"
import { timeRangeNames, withTimeRange } from "../stripe/StripeTimeRange.ts"
import type { ListBalanceTransactions } from "./Api.ts"
import type { BalanceTransactionsPort } from "./Port.ts"

export const balanceTransactionsParams = (params: ListBalanceTransactions): Stripe.BalanceTransactionListParams =>
  withTimeRange(params)

export const stripeBalanceTransactions = (call: StripeCall): BalanceTransactionsPort => ({
  listBalanceTransactions: (account, params) =>
    page(
      call("balance_transactions.list", account, (client, scope) =>
        client.balanceTransactions.list(balanceTransactionsParams(params), scope)
      )
    ).pipe(Effect.mapError(inOurNames(timeRangeNames)))
})
