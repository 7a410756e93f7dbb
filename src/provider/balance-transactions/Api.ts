import { HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { echoed } from "../../bounds/Rules.ts"
import { text } from "../../bounds/Text.ts"
import { Authentication } from "../../identity/Authentication.ts"
import { createdFields, optional, pageFields, strict } from "../../kit/Request.ts"
import { providerList } from "../Endpoints.ts"
import { providerErrors } from "../ProviderErrors.ts"
import { Reference } from "../Schemas.ts"

/** Query of `GET P/balance-transactions` (contract 4.4). */
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
    payout: optional(Reference, "Only those that this automatic payout paid out")
  })
)
export type ListBalanceTransactions = typeof ListBalanceTransactions.Type

/** Balance transactions of the organization's connected account. */
export class BalanceTransactionsApi extends HttpApiGroup.make("balanceTransactions")
  .add(
    providerList("/balance-transactions", "transactions:read", "List balance transactions")
      .setUrlParams(ListBalanceTransactions)
      .annotate(OpenApi.Description, "Everything that moved the account's balance, newest first, with fees and net.")
  )
  .addError(providerErrors)
  .middleware(Authentication)
  .prefix("/v2/organizations/:organizationId/provider")
  .annotate(OpenApi.Description, "Balance transactions of the organization's connected account") {}
