import { Effect, Option } from "effect"
import type Stripe from "stripe"
import type { ConnectedAccount, ListObjects, ProviderCall, RetrieveObject } from "../ProviderCall.ts"
import type { ProviderObject } from "../Schemas.ts"
import { one, type StripeCall } from "../stripe/StripeCall.ts"
import { stripeObjects, withTimeRange } from "../stripe/StripeObjects.ts"
import type { ListBalanceTransactions, ListPayouts } from "./Api.ts"

export interface AccountPort {
  /** Without the personal data of the account's owner. */
  readonly retrieveAccount: (account: ConnectedAccount) => ProviderCall<ProviderObject>
  readonly retrieveBalance: (account: ConnectedAccount) => ProviderCall<ProviderObject>
  /** Payout schedule and destinations. Destinations are masked, or null if the platform may not read them. */
  readonly retrievePayoutSettings: (account: ConnectedAccount) => ProviderCall<ProviderObject>
  readonly listBalanceTransactions: ListObjects<ListBalanceTransactions>
  readonly listPayouts: ListObjects<ListPayouts>
  readonly retrievePayout: RetrieveObject
}

/** The account without its owner's data and bank accounts, which no caller needs. */
const withoutPersonalData = ({
  company: _company,
  email: _email,
  external_accounts: _externalAccounts,
  individual: _individual,
  tos_acceptance: _tosAcceptance,
  ...rest
}: ProviderObject): ProviderObject => rest

type ExternalAccount = Stripe.BankAccount | Stripe.Card

/** A bank account or card, masked: enough for its owner to recognize it. */
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

/** The payout settings of the account itself, used if Stripe has no balance settings for it. */
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

export const stripeAccount = (call: StripeCall): AccountPort => {
  const readAccount = (account: ConnectedAccount) =>
    call("accounts.retrieve", account, (client, scope) => client.accounts.retrieve(account.accountId, {}, scope))

  const balanceSettings = (account: ConnectedAccount) =>
    call("balance_settings.retrieve", account, (client, scope) => client.balanceSettings.retrieve({}, scope)).pipe(
      Effect.map(fromBalanceSettings),
      // Not every account has balance settings; otherwise the account's own settings are used
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
          // Controlled, but without access to its destinations
          Effect.catchTag("ProviderPermissionDenied", () => Effect.succeed(null))
        )
      : Effect.succeed(null)

  const { list, retrieve } = stripeObjects(call)
  return {
    listBalanceTransactions: list("balance_transactions.list", (client) => client.balanceTransactions, withTimeRange),
    listPayouts: list("payouts.list", (client) => client.payouts, withTimeRange),
    retrievePayout: retrieve("payouts.retrieve", (client) => client.payouts, {}),
    retrieveAccount: (account) => Effect.map(one(readAccount(account)), withoutPersonalData),
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
  }
}
