import { Effect } from "effect"
import type { Stripe } from "stripe"
import { noParams, type RequestContext, type Route, route } from "../../api/Route.ts"
import type { Account, Wire } from "../../Records.ts"
import { currentTransactions } from "./BalanceTransactions.ts"

type BalanceSettings = Wire<Stripe.BalanceSettings>

const settingsOf = (account: Account | undefined): BalanceSettings => {
  const schedule = account?.settings?.payouts?.schedule
  return {
    object: "balance_settings",
    payments: {
      debit_negative_balances: account?.settings?.payouts?.debit_negative_balances ?? null,
      payouts: {
        automatic_transfer_rules_by_currency: null,
        minimum_balance_by_currency: null,
        schedule: { interval: schedule?.interval ?? "manual" },
        statement_descriptor: account?.settings?.payouts?.statement_descriptor ?? null,
        status: account?.payouts_enabled === true ? "enabled" : "disabled"
      },
      settlement_timing: { delay_days: schedule?.delay_days ?? 2, start_of_day: null }
    }
  }
}

const balanceOf = (context: RequestContext) => {
  const transactions = currentTransactions(context)
  const own = context.platform.objects.get("account", context.account)?.default_currency ?? "usd"
  const currencies = Array.from(new Set([own, ...transactions.map(({ currency }) => currency)]))
  /** Net amounts by currency; 0 for a currency without such transactions. */
  const sums = (status: "available" | "pending") =>
    currencies.map((currency) => {
      const amount = transactions
        .filter((transaction) => transaction.currency === currency && transaction.status === status)
        .reduce((sum, { net }) => sum + net, 0)
      return { amount, currency, source_types: { card: amount } }
    })
  return { object: "balance", available: sums("available"), livemode: false, pending: sums("pending") }
}

export const balanceRoutes: ReadonlyArray<Route> = [
  route({
    method: "GET",
    path: "/v1/balance",
    answers: { object: "balance" },
    params: noParams,
    run: (context) => Effect.sync(() => balanceOf(context))
  }),
  route({
    method: "GET",
    path: "/v1/balance_settings",
    answers: { object: "balance_settings" },
    params: noParams,
    run: ({ account, platform }) => Effect.sync(() => settingsOf(platform.objects.get("account", account)))
  })
]
