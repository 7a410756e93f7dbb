import { Effect } from "effect"
import type { Stripe } from "stripe"
import type { Account, Wire } from "../Records.ts"
import { noParams, type Route, route } from "../Route.ts"

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

/** `/v1/balance_settings`: the payout settings of the account, taken from its account object. */
export const balanceSettingsRoutes: ReadonlyArray<Route> = [
  route({
    method: "GET",
    path: "/v1/balance_settings",
    answers: { object: "balance_settings" },
    params: noParams,
    run: ({ account, platform }) => Effect.sync(() => settingsOf(platform.objects.get("account", account)))
  })
]
