import { SqlClient } from "@effect/sql"
import { Effect, Option } from "effect"
import type { Environment } from "../platform/kit/Environment.ts"
import { ofTenant, type Tenant } from "../platform/kit/Tenant.ts"
import { anyRow, firstRow, oneRow } from "../platform/storage/Database.ts"
import type { AccountStatus } from "./account/AccountStatus.ts"
import type { ConnectedAccount } from "./ProviderCall.ts"

/** How an account was linked: by the operator, created for its owner, or by its owner's consent at the provider. */
export type LinkedBy = "operator" | "onboarding" | "oauth"

export interface LinkedAccount {
  readonly accountId: string
  /** Ended by the provider's report or the organization's owner; only linking it again reconnects it. */
  readonly status: "connected" | "disconnected"
  readonly linkedBy: LinkedBy
  /** Whether it had payments before it was linked. If so, its first payment here is not a milestone (contract 6.6). */
  readonly hadPaymentsBefore: boolean
  readonly linkedAt: Date
  readonly disconnectedAt: Date | null
}

/** A linked account with the columns that only `Accounts` needs. */
export interface AccountRow extends LinkedAccount {
  readonly endsAtProvider: boolean
  /** When it was last linked, including links made while it was connected. PostgreSQL text: finer than a `Date`. */
  readonly linkedLast: string
}

/** One reading of an account's status; the status is null if the account lacked a field that every account has. */
export interface Reported {
  readonly status: AccountStatus | null
  readonly reading: string
  /** The database's time before the provider was called. */
  readonly begunAt: Date
}

export interface NewLink {
  readonly tenant: Tenant
  readonly accountId: string
  readonly hadPayments: boolean
  readonly reported: Reported
  readonly linkedBy: LinkedBy
}

const columns = `
  account_id AS "accountId", status, COALESCE(linked_by, 'operator') AS "linkedBy",
  had_payments_before AS "hadPaymentsBefore", linked_at AS "linkedAt", disconnected_at AS "disconnectedAt"`

const linkedLast = "GREATEST(linked_at, access_confirmed_at)"

type Sql = SqlClient.SqlClient

const linkStatements = (sql: Sql) => ({
  find: (tenant: Tenant, lock: "" | "for update" = "") =>
    firstRow(sql<AccountRow>`
      SELECT ${sql.literal(columns)}, ends_at_provider AS "endsAtProvider", ${sql.literal(linkedLast)}::text AS "linkedLast"
      FROM payments.provider_accounts WHERE ${ofTenant(sql, tenant)} ${sql.literal(lock)}`),

  show: (tenant: Tenant) =>
    firstRow(
      sql<LinkedAccount>`SELECT ${sql.literal(columns)} FROM payments.provider_accounts WHERE ${ofTenant(sql, tenant)}`
    ),

  /** Locks the organization's row: the account's own row can't be locked before it exists. */
  lockOrganization: ({ organizationId }: Tenant) =>
    sql`SELECT 1 FROM payments.organizations WHERE id = ${organizationId} FOR NO KEY UPDATE`,

  /** Numbers a reading of an account's status, before the provider is called. */
  nextReading: oneRow(sql<Pick<Reported, "reading" | "begunAt">>`
    SELECT nextval('payments.account_readings')::text AS reading, clock_timestamp() AS "begunAt"`),

  /** Stores a link; none if another account is connected. A connected account's record is kept. */
  link: ({ accountId, hadPayments, linkedBy, reported, tenant }: NewLink) =>
    firstRow(sql<LinkedAccount>`
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
      RETURNING ${sql.literal(columns)}`)
})

const endStatements = (sql: Sql) => ({
  /** Disconnects the account unless it was linked again since it was read; returns whether it did. */
  disconnect: (tenant: Tenant, known: Pick<AccountRow, "accountId" | "linkedLast">, endsAtProvider: boolean) =>
    anyRow(sql`
      UPDATE payments.provider_accounts
      SET status = 'disconnected', disconnected_at = now(), ends_at_provider = ${endsAtProvider}
      WHERE ${ofTenant(sql, tenant)} AND account_id = ${known.accountId} AND status = 'connected'
        AND ${sql.literal(linkedLast)} = ${known.linkedLast}::timestamptz
      RETURNING 1`),

  accessEnded: (tenant: Tenant, accountId: string) =>
    sql`
      UPDATE payments.provider_accounts SET ends_at_provider = false
      WHERE ${ofTenant(sql, tenant)} AND account_id = ${accountId} AND status = 'disconnected'`.pipe(Effect.asVoid),

  unlink: (tenant: Tenant) =>
    firstRow(sql<LinkedAccount>`
      DELETE FROM payments.provider_accounts WHERE ${ofTenant(sql, tenant)} RETURNING ${sql.literal(columns)}`)
})

const platformStatements = (sql: Sql) => ({
  anyConnected: (environment: Environment, except: string | null) =>
    firstRow(sql<ConnectedAccount>`
      SELECT environment, account_id AS "accountId" FROM payments.provider_accounts
      WHERE environment = ${environment} AND status = 'connected' AND account_id IS DISTINCT FROM ${except}
      ORDER BY ${sql.literal(linkedLast)} DESC LIMIT 1`),

  platform: (environment: Environment) =>
    firstRow(sql<{ id: string }>`
      SELECT platform_id AS id FROM payments.provider_platforms WHERE environment = ${environment}`).pipe(
      Effect.map(Option.map(({ id }) => id))
    ),

  /** Records the accounts' platform; returns false, changing nothing, if accounts are connected under another one. */
  recordPlatform: (environment: Environment, platformId: string) =>
    anyRow(sql`
      INSERT INTO payments.provider_platforms AS known (environment, platform_id)
      VALUES (${environment}, ${platformId})
      ON CONFLICT (environment) DO UPDATE SET platform_id = excluded.platform_id, recorded_at = now()
      WHERE known.platform_id = excluded.platform_id OR NOT EXISTS (
        SELECT 1 FROM payments.provider_accounts
        WHERE environment = excluded.environment AND status = 'connected')
      RETURNING 1`)
})

export const makeAccountsRepo = Effect.map(SqlClient.SqlClient, (sql) => ({
  ...linkStatements(sql),
  ...endStatements(sql),
  ...platformStatements(sql)
}))
