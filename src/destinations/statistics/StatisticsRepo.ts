import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import type { EndpointId } from "../../platform/kit/Ids.ts"
import { existingOf, ofTenant, type Tenant } from "../../platform/kit/Tenant.ts"
import { removeOld } from "../../platform/storage/Batches.ts"
import type { DeliveryDay } from "./Api.ts"
import { lookAgain, makeCountStatements, type Pass } from "./CountStatements.ts"
import { keptDays, type Position, type TimeRange } from "./Slots.ts"

const rememberedRefunds = "400 days"

export interface PaymentRow {
  readonly date: string
  readonly currency: string
  readonly kind: "succeeded" | "failed" | "refunded" | "refundFailed"
  readonly count: number
  readonly amount: string
}

export interface Progress {
  readonly first: Position
  readonly second: Position
  /** The database's time, in Unix milliseconds. */
  readonly now: number
}

interface PassRow {
  readonly pass: Pass
  readonly since: Date
  readonly until: Date
  readonly now: Date
}

const unknown: Position = { since: 0, until: 0 }

const toProgress = (rows: ReadonlyArray<PassRow>): Progress => {
  const positionOf = (pass: Pass): Position => {
    const row = rows.find((one) => one.pass === pass)
    return row === undefined ? unknown : { since: row.since.getTime(), until: row.until.getTime() }
  }
  return { first: positionOf(1), second: positionOf(2), now: rows[0]?.now.getTime() ?? 0 }
}

const passStatements = (sql: SqlClient.SqlClient) => {
  const progress = (lock: "" | "FOR UPDATE") =>
    Effect.map(
      sql<PassRow>`
        SELECT pass, since, until, now() AS now FROM payments.count_passes ORDER BY pass ${sql.literal(lock)}`,
      toProgress
    )

  return {
    progress: progress(""),

    /** Reads the progress and locks it until the end of the transaction, so that only one process counts. */
    lockedProgress: progress("FOR UPDATE"),

    moveTo: (pass: Pass, { since, until }: TimeRange & Position) => sql`
      UPDATE payments.count_passes
      SET since = ${new Date(since).toISOString()}::timestamptz, until = ${new Date(until).toISOString()}::timestamptz
      WHERE pass = ${pass}::smallint`
  }
}

const dayStatements = (sql: SqlClient.SqlClient) => {
  /** The tenant's counts `k` since a day. For a slot that is not settled, the first count is shown. */
  const shown = (tenant: Tenant, from: string) =>
    sql`${ofTenant(sql, tenant, "k")} AND k.day >= ${from}::date AND k.pass < 2`

  const outcomes = sql.literal(`
    to_char(k.day, 'YYYY-MM-DD') AS date, GREATEST(0, sum(k.delivered))::float8 AS delivered,
    GREATEST(0, sum(k.failed))::float8 AS failed, GREATEST(0, sum(k.queued))::float8 AS queued`)

  return {
    paymentDays: (tenant: Tenant, from: string) => sql<PaymentRow>`
      SELECT to_char(k.day, 'YYYY-MM-DD') AS date, k.currency, k.kind, sum(k.count)::float8 AS count,
        sum(k.amount)::text AS amount
      FROM payments.payment_counts k WHERE ${shown(tenant, from)}
      GROUP BY k.day, k.currency, k.kind
      UNION ALL
      SELECT to_char(f.recorded_at AT TIME ZONE 'UTC', 'YYYY-MM-DD'), f.currency, 'refundFailed', count(*)::float8,
        sum(f.amount)::text
      FROM payments.failed_refunds f
      WHERE ${ofTenant(sql, tenant, "f")} AND f.recorded_at >= ${from}::timestamp AT TIME ZONE 'UTC'
      GROUP BY 1, f.currency ORDER BY date, currency, kind`,

    deliveryDays: (tenant: Tenant, from: string) => sql<DeliveryDay>`
      SELECT ${outcomes} FROM payments.delivery_counts k WHERE ${shown(tenant, from)}
      GROUP BY k.day HAVING sum(k.delivered + k.failed + k.queued) > 0 ORDER BY k.day`,

    endpointIds: (tenant: Tenant) => sql<{ readonly id: EndpointId }>`
      SELECT id FROM payments.endpoints e WHERE ${existingOf(sql, tenant, "e")} ORDER BY id`,

    endpointDays: (tenant: Tenant, from: string, ids: ReadonlyArray<EndpointId>) =>
      sql<DeliveryDay & { readonly id: EndpointId }>`
        SELECT k.endpoint_id AS id, ${outcomes} FROM payments.delivery_counts k
        WHERE ${shown(tenant, from)} AND k.endpoint_id = ANY (${ids}::uuid[])
        GROUP BY k.endpoint_id, k.day HAVING sum(k.delivered + k.failed + k.queued) > 0 ORDER BY k.day`
  }
}

const makeRemoval = (sql: SqlClient.SqlClient) => {
  const removeOldDays = (table: "payment_counts" | "delivery_counts", ...key: ReadonlyArray<string>) =>
    removeOld(sql, {
      table,
      key: ["organization_id", "environment", "day", "pass", "slot", ...key],
      old: sql`r.day < (now() AT TIME ZONE 'UTC')::date - ${keptDays}::int`,
      by: "day"
    })

  return Effect.all([
    removeOldDays("payment_counts", "currency", "kind"),
    removeOldDays("delivery_counts", "endpoint_id"),
    // The provider allows refunds of a charge for months: far less than this
    removeOld(sql, {
      table: "refunded_in_part",
      key: ["organization_id", "environment", "charge_key"],
      old: sql`r.counted_at < now() - ${rememberedRefunds}::interval`,
      by: "counted_at"
    })
  ])
}

export const makeStatisticsRepo = Effect.map(SqlClient.SqlClient, (sql) => ({
  ...makeCountStatements(sql),
  ...passStatements(sql),
  ...dayStatements(sql),

  /** Recounts groups that may have changed. Returns how many. */
  lookAgain: Effect.map(lookAgain(sql), ([row]) => row?.looked ?? 0),

  removeOld: makeRemoval(sql)
}))
