import { Effect } from "effect"
import type { BalanceTransaction } from "../Records.ts"
import { noParams, type RequestContext, type Route, route } from "../Route.ts"
import { currentTransactions } from "./BalanceTransactions.ts"

/** Net amounts by currency; 0 for a currency without transactions. */
const sums = (currencies: ReadonlyArray<string>, transactions: ReadonlyArray<BalanceTransaction>) =>
  currencies.map((currency) => {
    const amount = transactions
      .filter((transaction) => transaction.currency === currency)
      .reduce((sum, { net }) => sum + net, 0)
    return { amount, currency, source_types: { card: amount } }
  })

const balanceOf = (context: RequestContext) => {
  const transactions = currentTransactions(context)
  const own = context.platform.objects.get("account", context.account)?.default_currency ?? "usd"
  const currencies = Array.from(new Set([own, ...transactions.map(({ currency }) => currency)]))
  return {
    object: "balance",
    available: sums(
      currencies,
      transactions.filter(({ status }) => status === "available")
    ),
    livemode: false,
    pending: sums(
      currencies,
      transactions.filter(({ status }) => status === "pending")
    )
  }
}

/** `/v1/balance`: the sums of the account's balance transactions. */
export const balanceRoutes: ReadonlyArray<Route> = [
  route({
    method: "GET",
    path: "/v1/balance",
    answers: { object: "balance" },
    params: noParams,
    run: (context) => Effect.sync(() => balanceOf(context))
  })
]
