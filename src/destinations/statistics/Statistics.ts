import { SqlClient, type SqlError } from "@effect/sql"
import { Clock, Effect, type Layer } from "effect"
import { housekeepingLayer } from "../../platform/kit/Housekeeping.ts"
import { service } from "../../platform/kit/Service.ts"
import { SlowReads } from "../../platform/kit/SlowReads.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import { alongIndex, timedRead } from "../../platform/storage/BoundedReads.ts"
import { orUnavailable, transaction } from "../../platform/storage/Database.ts"
import { preferReplica } from "../../platform/storage/ReadReplica.ts"
import type { PaymentDay } from "./Api.ts"
import type { Pass } from "./CountStatements.ts"
import { countedUntil, firstRange, type Position, secondRange, slotMillis, type TimeRange } from "./Slots.ts"
import { makeStatisticsRepo, type PaymentRow } from "./StatisticsRepo.ts"

/** The target time of a statement, in milliseconds: if one takes longer, further ranges are shorter. */
const longStatement = 1000

const shortestStretch = 5000

/** The pause after steps that counted something: the queue's own work has priority. */
const pause = "50 millis"

/**
 * Counts everything that is due, in small steps. Each is a transaction that also advances the position, so a step is atomic; a
 * concurrent process waits for it and continues after it.
 */
const makeCount = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const repo = yield* makeStatisticsRepo
  let longest = slotMillis

  const count = Effect.fnUntraced(function* (pass: Pass, range: TimeRange & Position) {
    const counted = [...(yield* repo.payments(pass, range)), ...(yield* repo.deliveries(pass, range))]
    yield* repo.moveTo(pass, range)
    return counted.reduce((sum, row) => sum + row.counted, 0)
  })

  /** Counts the next range of a pass. Returns how many rows; undefined if it is not time yet. */
  const step = (pass: Pass): Effect.Effect<number | undefined, SqlError.SqlError> =>
    transaction(sql)(
      Effect.gen(function* () {
        const { first, now, second } = yield* repo.lockedProgress
        const range = pass === 1 ? firstRange(first, second, now, longest) : secondRange(second, now, longest)
        if (range === undefined) return undefined
        yield* alongIndex(sql)
        const counted = yield* count(pass, range)
        if (pass === 2 && range.until === range.slot + slotMillis) {
          yield* repo.settlePayments(range.slot)
          yield* repo.settleDeliveries(range.slot)
        }
        return counted
      })
    )

  const look: Effect.Effect<number | undefined, SqlError.SqlError> = transaction(sql)(
    Effect.zipRight(
      Effect.zipRight(repo.lockedProgress, alongIndex(sql)),
      Effect.map(repo.lookAgain, (looked) => (looked === 0 ? undefined : looked))
    )
  )

  /** Adapts the length of ranges to how long their counts take, failed ones included: they may have timed out. */
  const inTime = (work: Effect.Effect<number | undefined, SqlError.SqlError>) =>
    Effect.suspend(() => {
      const startedAt = performance.now()
      return Effect.ensuring(
        work,
        Effect.sync(() => {
          const millis = performance.now() - startedAt
          if (millis > longStatement) longest = Math.max(shortestStretch, longest / 2)
          else if (millis < longStatement / 4) longest = Math.min(slotMillis, longest * 2)
        })
      )
    })

  const round = Effect.gen(function* () {
    const steps = [yield* inTime(step(1)), yield* inTime(step(2)), yield* look]
    if (steps.some((counted) => counted !== undefined && counted > 0)) yield* Effect.sleep(pause)
    return steps.some((counted) => counted !== undefined)
  })

  return Effect.asVoid(Effect.repeat(round, { while: (hasMore) => hasMore }))
})

const millisPerDay = 24 * 60 * 60 * 1000

const dayOf = (millis: number): string => new Date(millis).toISOString().slice(0, 10)

/** The interval between counts. Shown counts lag by this, plus a few seconds. */
const interval = "15 seconds"

const none = { count: 0, amount: "0" }

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
  const repo = yield* makeStatisticsRepo
  /** Counts what is due, in small steps: see `Slots.ts`. Any number of processes may run it. */
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

  /** The counts of the last days, 1 to 90, the current UTC day included. */
  const read = Effect.fn("Statistics.read")(
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
export class Statistics extends service<Statistics>()("connected-payments/destinations/Statistics", make) {}

/** Counts in every process. Where workers run, one of them counts for all. */
export const statisticsLayer: Layer.Layer<never, never, Statistics | SqlClient.SqlClient> = housekeepingLayer(
  "statistics",
  Effect.map(Statistics, ({ count }) => ({ statistics: count })),
  interval
)
