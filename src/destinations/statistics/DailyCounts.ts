import { SqlClient } from "@effect/sql"
import { Clock, Context, Effect, Layer } from "effect"
import type { RateLimitExceeded, ServiceUnavailable } from "../../platform/errors/Errors.ts"
import { housekeepingLayer } from "../../platform/kit/Housekeeping.ts"
import type { EndpointId } from "../../platform/kit/Ids.ts"
import { SlowReads } from "../../platform/kit/SlowReads.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import { removeOld } from "../../platform/storage/Batches.ts"
import { timedRead } from "../../platform/storage/BoundedReads.ts"
import { orUnavailable } from "../../platform/storage/Database.ts"
import { preferReplica } from "../../platform/storage/ReadReplica.ts"
import type { DeliveryDay, PaymentDay, Statistics } from "./Api.ts"
import { makeCounting } from "./Counting.ts"
import { countedUntil, keptDays } from "./Slots.ts"

const millisPerDay = 24 * 60 * 60 * 1000

const dayOf = (millis: number): string => new Date(millis).toISOString().slice(0, 10)

/** The interval between counts. Shown counts lag by this, plus a few seconds. */
const interval = "15 seconds"

/** How long the refunded amount of a partly refunded charge is kept. */
const rememberedRefunds = "400 days"

interface PaymentRow {
  readonly date: string
  readonly currency: string
  readonly kind: "succeeded" | "failed" | "refunded" | "refundFailed"
  readonly count: number
  readonly amount: string
}

const none = { count: 0, amount: "0" }

/** Merges the rows of a day and currency, which are adjacent, into one. */
const toPaymentDays = (rows: ReadonlyArray<PaymentRow>): ReadonlyArray<PaymentDay> => {
  const days = new Map<string, PaymentDay>()
  for (const { amount, count, currency, date, kind } of rows) {
    const key = `${date} ${currency}`
    const day = days.get(key) ?? { date, currency, succeeded: none, failed: none, refunded: none, refundFailed: none }
    days.set(key, { ...day, [kind]: { count, amount } })
  }
  return [...days.values()]
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const counting = yield* makeCounting
  const onReplica = yield* preferReplica
  const { inTurn } = yield* SlowReads

  const ofTenant = (tenant: Tenant, from: string) =>
    sql`k.organization_id = ${tenant.organizationId} AND k.environment = ${tenant.environment} AND k.day >= ${from}::date`

  /** For a slot that is not settled, the first count is shown. */
  const shown = sql.literal("k.pass < 2")

  const outcomes = sql.literal(`
    to_char(k.day, 'YYYY-MM-DD') AS date, GREATEST(0, sum(k.delivered))::float8 AS delivered,
    GREATEST(0, sum(k.failed))::float8 AS failed, GREATEST(0, sum(k.queued))::float8 AS queued`)

  const payments = (tenant: Tenant, from: string) =>
    Effect.map(
      sql<PaymentRow>`
        SELECT to_char(k.day, 'YYYY-MM-DD') AS date, k.currency, k.kind, sum(k.count)::float8 AS count,
          sum(k.amount)::text AS amount
        FROM payments.payment_counts k WHERE ${ofTenant(tenant, from)} AND ${shown}
        GROUP BY k.day, k.currency, k.kind
        UNION ALL
        SELECT to_char(f.recorded_at AT TIME ZONE 'UTC', 'YYYY-MM-DD'), f.currency, 'refundFailed', count(*)::float8,
          sum(f.amount)::text
        FROM payments.failed_refunds f
        WHERE f.organization_id = ${tenant.organizationId} AND f.environment = ${tenant.environment}
          AND f.recorded_at >= ${from}::timestamp AT TIME ZONE 'UTC'
        GROUP BY 1, f.currency ORDER BY date, currency, kind`,
      toPaymentDays
    )

  const deliveries = (tenant: Tenant, from: string) => sql<DeliveryDay>`
    SELECT ${outcomes} FROM payments.delivery_counts k WHERE ${ofTenant(tenant, from)} AND ${shown}
    GROUP BY k.day HAVING sum(k.delivered + k.failed + k.queued) > 0 ORDER BY k.day`

  const endpoints = (tenant: Tenant, from: string) =>
    Effect.gen(function* () {
      const existing = yield* sql<{ readonly id: EndpointId }>`
        SELECT id FROM payments.endpoints
        WHERE organization_id = ${tenant.organizationId} AND environment = ${tenant.environment} AND deleted_at IS NULL
        ORDER BY id`
      const ids = existing.map(({ id }) => id)
      const counted = yield* sql<DeliveryDay & { readonly id: EndpointId }>`
        SELECT k.endpoint_id AS id, ${outcomes} FROM payments.delivery_counts k
        WHERE ${ofTenant(tenant, from)} AND ${shown} AND k.endpoint_id = ANY (${ids}::uuid[])
        GROUP BY k.endpoint_id, k.day HAVING sum(k.delivered + k.failed + k.queued) > 0 ORDER BY k.day`
      return ids.map((id) => ({
        id,
        days: counted.filter((day) => day.id === id).map(({ id: _, ...day }) => day)
      }))
    })

  const read = Effect.fn("DailyCounts.read")(
    function* (tenant: Tenant, days: number) {
      const now = yield* Clock.currentTimeMillis
      const from = dayOf(now - (days - 1) * millisPerDay)
      return yield* timedRead(sql)(
        Effect.gen(function* () {
          const { first, second } = yield* counting.progress
          return {
            from,
            until: dayOf(now),
            countedUntil: new Date(countedUntil(first, second)),
            payments: yield* payments(tenant, from),
            deliveries: yield* deliveries(tenant, from),
            endpoints: yield* endpoints(tenant, from)
          }
        })
      )
    },
    onReplica,
    orUnavailable,
    (read, tenant) => inTurn(tenant)(read)
  )

  const removeOldDays = (table: "payment_counts" | "delivery_counts", ...key: ReadonlyArray<string>) =>
    removeOld(sql, {
      table,
      key: ["organization_id", "environment", "day", "pass", "slot", ...key],
      old: sql`r.day < (now() AT TIME ZONE 'UTC')::date - ${keptDays}::int`,
      by: "day"
    })

  return {
    read,
    count: counting.run.pipe(orUnavailable),
    clean: Effect.all([
      removeOldDays("payment_counts", "currency", "kind"),
      removeOldDays("delivery_counts", "endpoint_id"),
      // The provider allows refunds of a charge for months: far less than this
      removeOld(sql, {
        table: "refunded_in_part",
        key: ["organization_id", "environment", "charge_key"],
        old: sql`r.counted_at < now() - ${rememberedRefunds}::interval`,
        by: "counted_at"
      })
    ]).pipe(Effect.asVoid, orUnavailable)
  }
})

/**
 * Counts of payments and deliveries by day. They are computed in the background from stored rows, which adds nothing to
 * the statements that store and update deliveries.
 */
export class DailyCounts extends Context.Tag("connected-payments/destinations/DailyCounts")<
  DailyCounts,
  {
    /** The counts of the last days, 1 to 90, the current UTC day included. */
    readonly read: (tenant: Tenant, days: number) => Effect.Effect<Statistics, RateLimitExceeded | ServiceUnavailable>
    /**
     * Counts everything that is due, in small steps: see `Slots.ts`. Any number of processes may run it at the same
     * time.
     */
    readonly count: Effect.Effect<void, ServiceUnavailable>
    /** Removes the counts of days that can no longer be requested. */
    readonly clean: Effect.Effect<void, ServiceUnavailable>
  }
>() {
  static readonly layer: Layer.Layer<DailyCounts, never, SqlClient.SqlClient | SlowReads> = Layer.effect(
    DailyCounts,
    make
  )
}

/** Counts in every process. Where workers run, one of them counts for all. */
export const dailyCountsLayer: Layer.Layer<never, never, DailyCounts | SqlClient.SqlClient> = housekeepingLayer(
  "statistics",
  Effect.map(DailyCounts, ({ count }) => ({ statistics: count })),
  interval
)
