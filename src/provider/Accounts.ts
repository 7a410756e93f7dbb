import { SqlClient } from "@effect/sql"
import { Context, Data, Effect, Layer } from "effect"
import { ProviderAccountNotConnected, type ServiceUnavailable } from "../Errors.ts"
import type { Tenant } from "../identity/Principal.ts"
import { orUnavailable, violates } from "../storage/Database.ts"
import { type ConnectedAccount, Provider } from "./Provider.ts"
import type { AccountAccessRevoked, ProviderFailure } from "./ProviderErrors.ts"

/** The account is another organization's already. For operators: linking is theirs. */
export class AccountTaken extends Data.TaggedError("AccountTaken")<{ readonly message: string }> {}

/** Connected provider accounts: one per organization and environment (contract, What the service does). */
export class Accounts extends Context.Tag("connected-payments/provider/Accounts")<
  Accounts,
  {
    /**
     * Runs a call on the tenant's connected account. Where the provider says that access was revoked, that is confirmed
     * by one more read of the account; then the account is marked disconnected, until it is linked again.
     */
    readonly use: <A>(
      tenant: Tenant,
      call: (account: ConnectedAccount) => Effect.Effect<A, ProviderFailure | AccountAccessRevoked>
    ) => Effect.Effect<A, ProviderFailure | ProviderAccountNotConnected | ServiceUnavailable>
    /**
     * Links an account after reading it at the provider, and records whether it had payments before. The only way to
     * connect a disconnected one again.
     */
    readonly link: (
      tenant: Tenant,
      accountId: string
    ) => Effect.Effect<void, ProviderFailure | AccountAccessRevoked | AccountTaken | ServiceUnavailable>
  }
>() {
  static readonly layer: Layer.Layer<Accounts, never, SqlClient.SqlClient | Provider> = Layer.effect(
    Accounts,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const provider = yield* Provider

      const find = Effect.fnUntraced(function* (tenant: Tenant) {
        const rows = yield* sql<{ accountId: string }>`
          SELECT account_id AS "accountId" FROM payments.provider_accounts
          WHERE organization_id = ${tenant.organizationId} AND environment = ${tenant.environment}
            AND status = 'connected'`
        const [row] = rows
        return row === undefined
          ? yield* new ProviderAccountNotConnected()
          : { environment: tenant.environment, accountId: row.accountId }
      }, orUnavailable)

      const markDisconnected = (tenant: Tenant, account: ConnectedAccount) =>
        sql`
          UPDATE payments.provider_accounts SET status = 'disconnected', disconnected_at = now()
          WHERE organization_id = ${tenant.organizationId} AND environment = ${tenant.environment}
            AND account_id = ${account.accountId} AND status = 'connected'`.pipe(
          Effect.zipRight(Effect.logWarning("The provider account was disconnected: its access was revoked")),
          Effect.annotateLogs({ organizationId: tenant.organizationId, environment: tenant.environment }),
          orUnavailable
        )

      const confirmRevoked = Effect.fnUntraced(function* (tenant: Tenant, account: ConnectedAccount) {
        yield* provider
          .retrieveAccount(account)
          .pipe(Effect.catchTag("AccountAccessRevoked", () => markDisconnected(tenant, account)))
        return yield* new ProviderAccountNotConnected()
      })

      const use: Accounts["Type"]["use"] = (tenant, call) =>
        Effect.flatMap(find(tenant), (account) =>
          Effect.catchTag(call(account), "AccountAccessRevoked", () => confirmRevoked(tenant, account))
        )

      const link = Effect.fn("Accounts.link")(function* (tenant: Tenant, accountId: string) {
        const account = { environment: tenant.environment, accountId }
        yield* provider.retrieveAccount(account)
        const hadPayments = yield* provider.hasCharges(account)
        yield* sql`
          INSERT INTO payments.provider_accounts
            (organization_id, environment, account_id, status, had_payments_before)
          VALUES (${tenant.organizationId}, ${tenant.environment}, ${accountId}, 'connected', ${hadPayments})
          ON CONFLICT (organization_id, environment) DO UPDATE SET
            account_id = excluded.account_id, status = 'connected', disconnected_at = NULL, linked_at = now(),
            had_payments_before = excluded.had_payments_before`.pipe(
          Effect.catchIf(
            (error) => violates(error, "provider_accounts_account"),
            () => new AccountTaken({ message: "This account is linked to another organization already" })
          ),
          orUnavailable
        )
      })

      return { use, link }
    })
  )
}
