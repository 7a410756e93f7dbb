import { OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { echoed } from "../../platform/bounds/Rules.ts"
import { text } from "../../platform/bounds/Text.ts"
import { createdFields, optional, pageFields, strict } from "../../platform/kit/Request.ts"
import { NeededCalls, providerGet, providerGroup, providerList, providerRead } from "../Endpoints.ts"
import { referenceTo } from "../Schemas.ts"

export class AccountApi extends providerGroup("account", "The organization's connected account")
  .add(
    providerRead("get", "/account", "payment-account:read", "Read the connected account")
      .annotate(NeededCalls, ["retrieveAccount"])
      .annotate(
        OpenApi.Description,
        "Its capabilities, requirements and settings. Personal data (the e-mail address, people, company details, the acceptance of terms) and bank accounts are left out."
      )
  )
  .add(
    providerRead("balance", "/balance", "payment-account:read", "Read the account's balance")
      .annotate(NeededCalls, ["retrieveBalance"])
      .annotate(OpenApi.Description, "Available and pending amounts by currency, in the smallest currency unit.")
  )
  .add(
    providerRead(
      "payoutSettings",
      "/payout-settings",
      "payment-account:read",
      "Read when and where the account is paid out"
    )
      .annotate(NeededCalls, ["retrievePayoutSettings"])
      .annotate(
        OpenApi.Description,
        "`status` (`enabled` or `disabled`), `schedule` (`interval` and its days), `delay_days` (how long funds are held) and `destinations`: bank accounts and cards, masked to type, bank name, last four digits, currency, country and whether it is the currency's default. `destinations` is null where the provider does not show them to the platform."
      )
  ) {}

export const ListBalanceTransactions = strict(
  Schema.Struct({
    ...pageFields,
    ...createdFields,
    type: optional(
      text({
        min: 1,
        max: 64,
        pattern: /^[a-z_]+$/,
        rule: "must be 1 to 64 lowercase letters and underscores, such as charge"
      }).annotations({
        ...echoed,
        description: "Only this type, e.g. `charge`, `refund` or `payout`"
      })
    ),
    payout: optional(referenceTo("payout"), "Only transactions of this automatic payout")
  })
)
export type ListBalanceTransactions = typeof ListBalanceTransactions.Type

export class BalanceTransactionsApi extends providerGroup(
  "balanceTransactions",
  "Balance transactions of the organization's connected account"
).add(
  providerList("/balance-transactions", "transactions:read", "List balance transactions")
    .setUrlParams(ListBalanceTransactions)
    .annotate(OpenApi.Description, "Everything that moved the account's balance, newest first, with fees and net.")
) {}

export const ListPayouts = strict(
  Schema.Struct({
    ...pageFields,
    ...createdFields,
    status: optional(Schema.Literal("pending", "paid", "failed", "canceled"), "Only payouts with this status")
  })
)
export type ListPayouts = typeof ListPayouts.Type

export class PayoutsApi extends providerGroup("payouts", "Payouts of the organization's connected account")
  .add(providerList("/payouts", "payment-account:read", "List payouts").setUrlParams(ListPayouts))
  .add(providerGet("/payouts/:id", "payment-account:read", "Read a payout")) {}
