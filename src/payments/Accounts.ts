import { SqlClient, type SqlError } from "@effect/sql"
import { Context, Data, Effect, Either, Layer, Option } from "effect"
import {
  type PermissionDenied,
  ProviderAccountNotConnected,
  ProviderPermissionDenied,
  ResourceNotFound,
  type ServiceUnavailable
} from "../platform/errors/Errors.ts"
import { makeAudit } from "../platform/kit/Audit.ts"
import { type Author, ofTenant, type Tenant } from "../platform/kit/Tenant.ts"
import { orUnavailable, transaction, violates } from "../platform/storage/Database.ts"
import { type AccountStatus, accountStatus } from "./account/AccountStatus.ts"
import { revokedAtProvider } from "./Disconnection.ts"
import { makePlatforms } from "./Platforms.ts"
import { Provider } from "./Provider.ts"
import type { ConnectedAccount, ProviderCall } from "./ProviderCall.ts"
import type { AccountAccessRevoked, AccountFailure, ProviderCallFailure } from "./ProviderErrors.ts"

/** The account can't be linked; nothing was changed. */
export class AccountTaken extends Data.TaggedError("AccountTaken")<{
  /** Another organization has the account, or the organization has another connected account. */
  readonly reason: "another_organization" | "another_account"
  readonly message: string
  readonly cause?: unknown
}> {}

/** How an account was linked: by the operator, created for its owner, or by its owner's consent at the provider. */
export type LinkedBy = "operator" | "onboarding" | "oauth"

/** A tenant's provider account, as recorded. */
export interface LinkedAccount {
  readonly accountId: string
  /**
   * Disconnected after the provider reported revoked access, or the organization's owner disconnected it. Only linking
   * it again reconnects it.
   */
  readonly status: "connected" | "disconnected"
  readonly linkedBy: LinkedBy
  /** Whether it had payments before it was linked. If so, its first payment here is not a milestone (contract 6.6). */
  readonly hadPaymentsBefore: boolean
  readonly linkedAt: Date
  readonly disconnectedAt: Date | null
}

/** The result of disconnecting an account here. */
export interface Disconnected {
  /** Whether the platform's access at the provider must still be ended. */
  readonly endsAtProvider: boolean
}

/** A connected account and the time it was last linked, as PostgreSQL text: more precise than a `Date`. */
interface Found {
  readonly account: ConnectedAccount
  readonly linkedLast: string
}

/** One reading of an account's status; the status is null if the account lacked a field that every account has. */
interface Reported {
  readonly status: AccountStatus | null
  /** The reading's sequence number among all readings. */
  readonly reading: string
  /** The database's time before the provider was called. */
  readonly begunAt: Date
}

/** A link to store. */
interface NewLink {
  readonly tenant: Tenant
  readonly accountId: string
  readonly hadPayments: boolean
  readonly reported: Reported
  readonly author: Author
  readonly linkedBy: LinkedBy
}

interface LinkOptions<Refused> {
  /** Default: the operator. */
  readonly linkedBy?: LinkedBy
  /**
   * Runs in the linking transaction, after the provider has answered, which can take minutes. If it fails, nothing is
   * changed. Default: no check.
   */
  readonly mayStill?: Effect.Effect<void, Refused | SqlError.SqlError>
}

/** The author of links that the service creates at a local start. */
const localOperator: Author = { kind: "operator", id: "local" }

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const provider = yield* Provider
  const audit = yield* makeAudit
  const platforms = yield* makePlatforms
  const columns = sql.literal(`
    account_id AS "accountId", status, COALESCE(linked_by, 'operator') AS "linkedBy",
    had_payments_before AS "hadPaymentsBefore", linked_at AS "linkedAt", disconnected_at AS "disconnectedAt"`)

  const record = (tenant: Tenant, author: Author, action: "linked" | "unlinked" | "disconnected", targetId: string) =>
    audit({ ...tenant, author, action: `account.${action}`, targetId })

  /** When the account was last linked, including links made while it was connected. */
  const linkedLast = sql.literal("GREATEST(linked_at, access_confirmed_at)")

  const find = Effect.fnUntraced(function* (tenant: Tenant) {
    const rows = yield* sql<{ accountId: string; linkedLast: string }>`
      SELECT account_id AS "accountId", ${linkedLast}::text AS "linkedLast" FROM payments.provider_accounts
      WHERE ${ofTenant(sql, tenant)}
        AND status = 'connected'`
    const [row] = rows
    return row === undefined
      ? yield* new ProviderAccountNotConnected()
      : { account: { environment: tenant.environment, accountId: row.accountId }, linkedLast: row.linkedLast }
  }, orUnavailable)

  /** Marks the account disconnected, unless it was linked again after `find` read it. */
  const markDisconnected = Effect.fnUntraced(function* (tenant: Tenant, { account: { accountId }, ...found }: Found) {
    const disconnected = yield* transaction(sql)(
      Effect.gen(function* () {
        const rows = yield* sql`
          UPDATE payments.provider_accounts SET status = 'disconnected', disconnected_at = now()
          WHERE ${ofTenant(sql, tenant)}
            AND account_id = ${accountId} AND status = 'connected'
            AND ${linkedLast} = ${found.linkedLast}::timestamptz
          RETURNING 1`
        if (rows.length > 0) {
          yield* record(tenant, revokedAtProvider, "disconnected", accountId)
        }
        return rows.length > 0
      })
    ).pipe(orUnavailable)
    if (disconnected) {
      yield* Effect.logWarning("The provider account was disconnected: its access was revoked").pipe(
        Effect.annotateLogs({ organizationId: tenant.organizationId, environment: tenant.environment })
      )
    }
  })

  const confirmRevoked = Effect.fnUntraced(function* (tenant: Tenant, found: Found, { cause }: AccountAccessRevoked) {
    yield* platforms.requireOwnKey(found.account, cause)
    const isRevoked = yield* provider.retrieveAccount(found.account).pipe(
      Effect.as(false),
      Effect.catchTag("AccountAccessRevoked", () => Effect.succeed(true))
    )
    if (!isRevoked) {
      // The account can be read, so access was not revoked; only this operation is not allowed on it
      return yield* new ProviderPermissionDenied({ cause })
    }
    yield* markDisconnected(tenant, found)
    // Earlier calls of the operation may have succeeded: a repeat after the account is linked again resumes from there
    return yield* new ProviderAccountNotConnected({ settles: "open", cause })
  })

  const use: Accounts["Type"]["use"] = (tenant, call) =>
    Effect.flatMap(find(tenant), (found) =>
      Effect.catchTag(call(found.account), "AccountAccessRevoked", (revoked) => confirmRevoked(tenant, found, revoked))
    )

  /**
   * Stores a link; run it in a transaction. An organization's links are serialized: of several at once, the first is
   * recorded and the others find it done.
   */
  const store = Effect.fnUntraced(function* ({ accountId, author, hadPayments, linkedBy, reported, tenant }: NewLink) {
    // The account's own row can't be locked before it exists, so lock the organization's
    yield* sql`SELECT 1 FROM payments.organizations WHERE id = ${tenant.organizationId} FOR NO KEY UPDATE`
    const [before] = yield* sql<{ accountId: string; connected: boolean }>`
      SELECT account_id AS "accountId", status = 'connected' AS connected FROM payments.provider_accounts
      WHERE ${ofTenant(sql, tenant)} FOR UPDATE`
    const [linked] = yield* sql<LinkedAccount>`
      INSERT INTO payments.provider_accounts AS known
        (organization_id, environment, account_id, status, had_payments_before, reported_status,
          reported_status_reading, linked_by)
      VALUES (${tenant.organizationId}, ${tenant.environment}, ${accountId}, 'connected', ${hadPayments},
        ${reported.status === null ? null : JSON.stringify(reported.status)}::jsonb, ${reported.reading}::bigint,
        ${linkedBy})
      ON CONFLICT (organization_id, environment) DO UPDATE SET
        account_id = excluded.account_id, status = 'connected', disconnected_at = NULL,
        linked_at = CASE WHEN known.status = 'connected' THEN known.linked_at ELSE now() END,
        linked_by = CASE WHEN known.status = 'connected' THEN known.linked_by ELSE excluded.linked_by END,
        ends_at_provider = false,
        access_confirmed_at = CASE WHEN known.status = 'connected'
          THEN GREATEST(known.access_confirmed_at, ${reported.begunAt.toISOString()}::timestamptz) END,
        had_payments_before =
          CASE WHEN known.status = 'connected' THEN known.had_payments_before ELSE excluded.had_payments_before END,
        reported_status = COALESCE(
          CASE WHEN known.status = 'connected' THEN known.reported_status END, excluded.reported_status),
        reported_status_reading = CASE WHEN known.status = 'connected' THEN known.reported_status_reading
          ELSE excluded.reported_status_reading END,
        reported_status_at = CASE WHEN known.account_id = excluded.account_id THEN known.reported_status_at END,
        first_payment_event_id =
          CASE WHEN known.account_id = excluded.account_id THEN known.first_payment_event_id END
      WHERE known.status = 'disconnected' OR known.account_id = excluded.account_id
      RETURNING ${columns}`
    if (linked === undefined) {
      return yield* new AccountTaken({
        reason: "another_account",
        message: "Another account is connected in this environment: unlink it first"
      })
    }
    const replaced = before === undefined || before.accountId === accountId ? null : before.accountId
    if (replaced !== null) {
      yield* record(tenant, author, "unlinked", replaced)
    }
    if (before?.connected !== true) {
      yield* record(tenant, author, "linked", accountId)
    }
    return linked
  })

  const takenByAnother = (cause: unknown) =>
    new AccountTaken({
      reason: "another_organization",
      message: "This account is linked to another organization already",
      cause
    })

  /** Reads the status. It is numbered before the read, so a read that started before the link never counts after it. */
  const readStatus = Effect.fnUntraced(function* (account: ConnectedAccount) {
    const [row] = yield* sql<Pick<Reported, "reading" | "begunAt">>`
      SELECT nextval('payments.account_readings')::text AS reading, clock_timestamp() AS "begunAt"`.pipe(orUnavailable)
    const { begunAt, reading } = row ?? (yield* Effect.dieMessage("A SELECT without FROM answers one row"))
    const status = accountStatus(account.environment, yield* provider.retrieveAccount(account))
    return { begunAt, reading, status: Either.getOrNull(status) } satisfies Reported
  })

  const link = Effect.fn("Accounts.link")(function* <Refused extends PermissionDenied = never>(
    tenant: Tenant,
    accountId: string,
    author: Author = localOperator,
    { linkedBy = "operator", mayStill = Effect.void }: LinkOptions<Refused> = {}
  ) {
    const account = { environment: tenant.environment, accountId }
    const reported = yield* Effect.tapErrorTag(readStatus(account), "AccountAccessRevoked", ({ cause }) =>
      platforms.requireOwnKey(account, cause, "passes")
    )
    const hadPayments = yield* provider.hasCharges(account)
    const platformId = yield* platforms.ofKey(tenant.environment)
    return yield* transaction(sql)(
      Effect.all([
        mayStill,
        Effect.transposeMapOption(platformId, (id) => platforms.record(tenant.environment, id))
      ]).pipe(Effect.zipRight(store({ tenant, accountId, hadPayments, reported, author, linkedBy })))
    ).pipe(
      Effect.catchIf(
        (error) => error._tag === "SqlError" && violates(error, "provider_accounts_account"),
        takenByAnother
      ),
      orUnavailable
    )
  })

  const disconnect = Effect.fn("Accounts.disconnect")(function* (tenant: Tenant, accountId: string, author: Author) {
    const [known] = yield* sql<Disconnected & { readonly connected: boolean }>`
      SELECT status = 'connected' AS connected,
        CASE WHEN status = 'connected' THEN linked_by IS NOT DISTINCT FROM 'oauth' ELSE ends_at_provider END
          AS "endsAtProvider"
      FROM payments.provider_accounts
      WHERE ${ofTenant(sql, tenant)}
        AND account_id = ${accountId} FOR UPDATE`
    if (known === undefined) {
      return yield* new ResourceNotFound({ message: "This account is not linked in this environment." })
    }
    const { connected, endsAtProvider } = known
    if (connected) {
      yield* sql`
        UPDATE payments.provider_accounts
        SET status = 'disconnected', disconnected_at = now(), ends_at_provider = ${endsAtProvider}
        WHERE ${ofTenant(sql, tenant)}
          AND account_id = ${accountId}`
      yield* record(tenant, author, "disconnected", accountId)
    }
    return { endsAtProvider }
  }, orUnavailable)

  const accessEnded = Effect.fn("Accounts.accessEnded")(function* (tenant: Tenant, accountId: string) {
    yield* sql`
      UPDATE payments.provider_accounts SET ends_at_provider = false
      WHERE ${ofTenant(sql, tenant)}
        AND account_id = ${accountId} AND status = 'disconnected'`
  }, orUnavailable)

  const unlink = Effect.fn("Accounts.unlink")(function* (tenant: Tenant, author: Author) {
    return yield* transaction(sql)(
      Effect.gen(function* () {
        const [unlinked] = yield* sql<LinkedAccount>`
          DELETE FROM payments.provider_accounts
          WHERE ${ofTenant(sql, tenant)}
          RETURNING ${columns}`
        if (unlinked !== undefined) {
          yield* record(tenant, author, "unlinked", unlinked.accountId)
        }
        return Option.fromNullable(unlinked)
      })
    )
  }, orUnavailable)

  const show = Effect.fn("Accounts.show")(function* (tenant: Tenant) {
    const [known] = yield* sql<LinkedAccount>`
      SELECT ${columns} FROM payments.provider_accounts
      WHERE ${ofTenant(sql, tenant)}`
    return Option.fromNullable(known)
  }, orUnavailable)

  return { use, link, disconnect, accessEnded, unlink, show }
})

/** Connected provider accounts: one per organization and environment (contract 1.5). */
export class Accounts extends Context.Tag("connected-payments/payments/Accounts")<
  Accounts,
  {
    /**
     * Runs a call on the tenant's connected account. If the provider reports revoked access, a second read of the
     * account must confirm it; then the account is marked disconnected until it is linked again. It stays connected if
     * it was linked again in the meantime, or if this process's key belongs, or may belong, to another platform.
     */
    readonly use: <A>(
      tenant: Tenant,
      call: (account: ConnectedAccount) => ProviderCall<A>
    ) => Effect.Effect<A, AccountFailure>
    /**
     * Links an account after reading it at the provider, and records whether it had payments before. This is the only
     * way to reconnect a disconnected account. The account replaces a disconnected one, never a connected one.
     *
     * If the account is already connected, its record is kept: a payment whose notification is still in flight counts
     * as the first, and a change of status is still reported. Linking itself reports no status; later ones are compared
     * with the one read here. How and when the account was linked is kept as well, but revocations from before this
     * link no longer count, whenever they are reported. Audited if it connects the account, once if several requests do
     * so at once. The organization must exist. The platform is recorded as well; fails with
     * `provider_permission_denied` if the key belongs to another platform than the connected accounts.
     */
    readonly link: <Refused extends PermissionDenied = never>(
      tenant: Tenant,
      accountId: string,
      author?: Author,
      options?: LinkOptions<Refused>
    ) => Effect.Effect<LinkedAccount, ProviderCallFailure | AccountTaken | ServiceUnavailable | Refused>
    /**
     * Disconnects the tenant's account here. Returns whether the platform's access at the provider must still be ended,
     * which it must if the account's owner granted it. Run it in a transaction; idempotent. Audited.
     */
    readonly disconnect: (
      tenant: Tenant,
      accountId: string,
      author: Author
    ) => Effect.Effect<Disconnected, ResourceNotFound | ServiceUnavailable>
    /** Records that the platform's access to a disconnected account has ended at the provider, too. */
    readonly accessEnded: (tenant: Tenant, accountId: string) => Effect.Effect<void, ServiceUnavailable>
    /**
     * Removes the tenant's account, connected or not, so that the tenant can link another account and another
     * organization can link this one. Changes nothing at the provider. Audited. Returns the removed account.
     */
    readonly unlink: (tenant: Tenant, author: Author) => Effect.Effect<Option.Option<LinkedAccount>, ServiceUnavailable>
    /** Returns the tenant's account as recorded, without calling the provider. */
    readonly show: (tenant: Tenant) => Effect.Effect<Option.Option<LinkedAccount>, ServiceUnavailable>
  }
>() {
  static readonly layer: Layer.Layer<Accounts, never, SqlClient.SqlClient | Provider> = Layer.effect(Accounts, make)
}
