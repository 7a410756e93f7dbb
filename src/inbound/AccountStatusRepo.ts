import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"
import type { AccountStatus } from "../payments/account/AccountStatus.ts"
import type { Environment } from "../platform/kit/Environment.ts"
import { ofTenant, type Tenant } from "../platform/kit/Tenant.ts"

/** A reading of an account that is about to begin, and whether the notification that triggers it is already known. */
export interface ReadingBegun {
  /** The highest one counts. Text, since it can exceed JavaScript's numbers. */
  readonly reading: string
  readonly known: boolean
}

export interface StatusComparison {
  /** Whether no later reading has been stored. */
  readonly isLatest: boolean
  readonly isChanged: boolean
  /** `created_at` of the last `account.updated`, in Unix seconds; null before the first. */
  readonly lastToldAt: number | null
}

/** Timeout of waiting for an account's row, while holding a connection that others need. */
const longestLock = "2s"

export const makeAccountStatusRepo = Effect.map(SqlClient.SqlClient, (sql) => ({
  /** Assigns the reading's number, before the call to the provider. */
  begin: (environment: Environment, providerEventId: string): Effect.Effect<ReadingBegun, SqlError.SqlError> =>
    Effect.flatMap(
      sql<ReadingBegun>`
        SELECT nextval('payments.account_readings')::text AS reading, EXISTS (
          SELECT 1 FROM payments.receipts
          WHERE environment = ${environment} AND provider_event_id = ${providerEventId}) AS known`,
      ([row]) => (row === undefined ? Effect.dieMessage("A SELECT without FROM answers one row") : Effect.succeed(row))
    ),

  /**
   * In a transaction: locks the account's row, so that readings of one account are compared one after the other, and
   * compares. Returns undefined if the account is no longer linked and connected. Fails if the row stays locked for
   * longer than `longestLock`; the provider then sends the notification again.
   */
  lockAndCompare: (
    tenant: Tenant,
    status: AccountStatus,
    reading: string
  ): Effect.Effect<StatusComparison | undefined, SqlError.SqlError> =>
    Effect.zipRight(
      sql`SET LOCAL lock_timeout = ${sql.literal(`'${longestLock}'`)}`,
      sql<StatusComparison>`
        SELECT reported_status_reading < ${reading}::bigint AS "isLatest",
          reported_status IS DISTINCT FROM ${JSON.stringify(status)}::jsonb AS "isChanged",
          extract(epoch FROM reported_status_at)::float8 AS "lastToldAt"
        FROM payments.provider_accounts
        WHERE ${ofTenant(sql, tenant)} AND account_id = ${status.account_id} AND status = 'connected'
        FOR UPDATE`
    ).pipe(Effect.map(([row]) => row)),

  /** In the same transaction: stores the reading. `toldAt` is its event's date, or null if it led to none. */
  store: (
    tenant: Tenant,
    status: AccountStatus,
    reading: string,
    toldAt: number | null
  ): Effect.Effect<void, SqlError.SqlError> =>
    sql`
      UPDATE payments.provider_accounts SET reported_status = ${JSON.stringify(status)}::jsonb,
        reported_status_reading = ${reading}::bigint,
        reported_status_at = COALESCE(to_timestamp(${toldAt}::float8), reported_status_at)
      WHERE ${ofTenant(sql, tenant)} AND account_id = ${status.account_id}`.pipe(Effect.asVoid)
}))
