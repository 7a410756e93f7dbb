import { SqlClient } from "@effect/sql"
import { Clock, Context, Effect, Layer } from "effect"
import type { RateLimitExceeded, ServiceUnavailable } from "../../platform/errors/Errors.ts"
import { housekeepingLayer } from "../../platform/kit/Housekeeping.ts"
import { SlowReads } from "../../platform/kit/SlowReads.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import { timedRead } from "../../platform/storage/BoundedReads.ts"
import { orUnavailable } from "../../platform/storage/Database.ts"
import { preferReplica } from "../../platform/storage/ReadReplica.ts"
import type { PaymentDay, Statistics } from "./Api.ts"
import { makeCount } from "./Counting.ts"
import { makeDailyCountsRepo, type PaymentRow } from "./DailyCountsRepo.ts"
import { countedUntil } from "./Slots.ts"

const millisPerDay = 24 * 60 * 60 * 1000

const dayOf = (millis: number): string => new Date(millis).toISOString().slice(0, 10)

/** The interval between counts. Shown counts lag by this, plus a few seconds. */
const interval = "15 seconds"

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
  const repo = yield* makeDailyCountsRepo
  const count = yield* makeCount
  const onReplica = yield* preferReplica
  const { inTurn } = yield* SlowReads

  const endpoints = (tenant: Tenant, from: string) =>
    Effect.gen(function* () {
      const ids = (yield* repo.endpointIds(tenant)).map(({ id }) => id)
      const counted = yield* repo.endpointDays(tenant, from, ids)
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
          const { first, second } = yield* repo.progress
          return {
            from,
            until: dayOf(now),
            countedUntil: new Date(countedUntil(first, second)),
            payments: toPaymentDays(yield* repo.paymentDays(tenant, from)),
            deliveries: yield* repo.deliveryDays(tenant, from),
            endpoints: yield* endpoints(tenant, from)
          }
        })
      )
    },
    onReplica,
    orUnavailable,
    (read, tenant) => inTurn(tenant)(read)
  )

  return {
    read,
    count: orUnavailable(count),
    clean: repo.removeOld.pipe(Effect.asVoid, orUnavailable)
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
