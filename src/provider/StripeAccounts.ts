import { Effect } from "effect"
import type { Provider } from "./Provider.ts"
import { one, type StripeCall } from "./StripeCall.ts"

/** The connected account itself at Stripe. */

/** The operations of `Provider` on the account. */
export const stripeAccounts = (call: StripeCall) =>
  ({
    retrieveAccount: (account) =>
      one(
        call("accounts.retrieve", account, (client, scope) => client.accounts.retrieve(account.accountId, {}, scope))
      ),
    hasCharges: (account) =>
      Effect.map(
        call("charges.list", account, (client, scope) => client.charges.list({ limit: 1 }, scope)),
        ({ data }) => data.length > 0
      )
  }) satisfies Partial<Provider["Type"]>
