import { Effect, Option } from "effect"
import type Stripe from "stripe"
import type { ConnectedAccount, Provider } from "../Provider.ts"
import type { ProviderObject } from "../Schemas.ts"
import { one, type StripeCall } from "../stripe/StripeCall.ts"
import { someOnPages } from "../stripe/StripePages.ts"

/** The connected account itself at Stripe, its balance, and how it is paid out. */

/** What the provider knows of the account's owner, and where their money goes: nothing that a caller has to read here. */
const withoutPersonalData = ({
  company: _company,
  email: _email,
  external_accounts: _externalAccounts,
  individual: _individual,
  tos_acceptance: _tosAcceptance,
  ...rest
}: ProviderObject): ProviderObject => rest

type ExternalAccount = Stripe.BankAccount | Stripe.Card

/** A bank account or card, masked: enough for its owner to know it. */
const masked = (destination: ExternalAccount) => ({
  type: destination.object,
  bank_name: destination.object === "bank_account" ? destination.bank_name : null,
  last4: destination.last4,
  currency: destination.currency ?? null,
  country: destination.country,
  default: destination.default_for_currency === true
})

type Schedule = Pick<
  Stripe.BalanceSettings.Payments.Payouts.Schedule,
  "interval" | "weekly_payout_days" | "monthly_payout_days"
>

/** How the account is paid out. */
interface Payouts {
  readonly status: string
  readonly schedule: Schedule
  readonly delay_days: number | null
}

const fromBalanceSettings = ({ payments }: Stripe.BalanceSettings): Option.Option<Payouts> =>
  Option.map(Option.fromNullable(payments.payouts), ({ schedule, status }) => ({
    status,
    schedule: schedule ?? { interval: null },
    delay_days: payments.settlement_timing.delay_days
  }))

/** The same of the account itself, where the provider has no balance settings of it. */
const fromAccount = ({ payouts_enabled, settings }: Stripe.Account): Payouts => {
  const schedule = settings?.payouts?.schedule
  return {
    status: payouts_enabled ? "enabled" : "disabled",
    schedule: {
      interval: schedule?.interval ?? null,
      ...(schedule?.weekly_payout_days === undefined ? {} : { weekly_payout_days: schedule.weekly_payout_days }),
      ...(schedule?.monthly_payout_days === undefined ? {} : { monthly_payout_days: schedule.monthly_payout_days })
    },
    delay_days: schedule?.delay_days ?? null
  }
}

/** Whether money was received: not where it failed, is pending, or was authorized and not captured. */
const isPayment = ({ captured, status }: Stripe.Charge): boolean => status === "succeeded" && captured

/** The operations of `Provider` on the account. */
export const stripeAccounts = (call: StripeCall) => {
  const readAccount = (account: ConnectedAccount) =>
    call("accounts.retrieve", account, (client, scope) => client.accounts.retrieve(account.accountId, {}, scope))

  const balanceSettings = (account: ConnectedAccount) =>
    call("balance_settings.retrieve", account, (client, scope) => client.balanceSettings.retrieve({}, scope)).pipe(
      Effect.map(fromBalanceSettings),
      // Not every account has them: then the account's own settings say it
      Effect.catchTags({
        ProviderRequestRefused: () => Effect.succeedNone,
        ProviderObjectNotFound: () => Effect.succeedNone,
        ProviderPermissionDenied: () => Effect.succeedNone
      })
    )

  const destinations = (account: ConnectedAccount, { controller }: Stripe.Account) =>
    controller?.is_controller === true
      ? call("external_accounts.list", account, (client, scope) =>
          client.accounts.listExternalAccounts(account.accountId, { limit: 100 }, scope)
        ).pipe(
          Effect.map(({ data }) => data.map(masked)),
          // Controlled, but not in this respect
          Effect.catchTag("ProviderPermissionDenied", () => Effect.succeed(null))
        )
      : Effect.succeed(null)

  return {
    retrieveAccount: (account) => Effect.map(one(readAccount(account)), withoutPersonalData),
    hasCharges: (account) =>
      someOnPages(
        (params) => call("charges.list", account, (client, scope) => client.charges.list(params, scope)),
        isPayment,
        // So many payments that failed and not one that did not: whatever is further back, its first one is long past
        true
      ),
    retrieveBalance: (account) =>
      one(call("balance.retrieve", account, (client, scope) => client.balance.retrieve({}, scope))),
    retrievePayoutSettings: (account) =>
      Effect.gen(function* () {
        const [owner, settings] = yield* Effect.all([readAccount(account), balanceSettings(account)], {
          concurrency: "unbounded"
        })
        return {
          object: "payout_settings",
          ...Option.getOrElse(settings, () => fromAccount(owner)),
          destinations: yield* destinations(account, owner)
        }
      })
  } satisfies Partial<Provider["Type"]>
}
