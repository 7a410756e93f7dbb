import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"
import { alongIndex } from "../../platform/storage/BoundedReads.ts"
import { transaction } from "../../platform/storage/Database.ts"
import type { Pass } from "./CountStatements.ts"
import { makeDailyCountsRepo } from "./DailyCountsRepo.ts"
import { firstStretch, type Position, type Stretch, secondStretch, slotMillis } from "./Slots.ts"

/** The target time of a statement, in milliseconds: if one takes longer, further stretches are shorter. */
const longStatement = 1000

/** The shortest stretch into which a slot is divided, in milliseconds. */
const shortestStretch = 5000

/** The pause after steps that counted something: the queue's own work has priority. */
const pause = "50 millis"

/**
 * Counts everything that is due, in small steps. Each is a transaction that also advances the position, so a step is atomic; a
 * concurrent process waits for it and continues after it.
 */
export const makeCount = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const repo = yield* makeDailyCountsRepo
  let longest = slotMillis

  const count = Effect.fnUntraced(function* (pass: Pass, stretch: Stretch & Position) {
    const counted = [...(yield* repo.payments(pass, stretch)), ...(yield* repo.deliveries(pass, stretch))]
    yield* repo.moveTo(pass, stretch)
    return counted.reduce((sum, row) => sum + row.counted, 0)
  })

  /** Counts the next stretch of a pass. Returns how many rows; undefined if it is not time yet. */
  const step = (pass: Pass): Effect.Effect<number | undefined, SqlError.SqlError> =>
    transaction(sql)(
      Effect.gen(function* () {
        const { first, now, second } = yield* repo.lockedProgress
        const stretch = pass === 1 ? firstStretch(first, second, now, longest) : secondStretch(second, now, longest)
        if (stretch === undefined) return undefined
        yield* alongIndex(sql)
        const counted = yield* count(pass, stretch)
        if (pass === 2 && stretch.until === stretch.slot + slotMillis) {
          yield* repo.settlePayments(stretch.slot)
          yield* repo.settleDeliveries(stretch.slot)
        }
        return counted
      })
    )

  /** Recounts groups that may have changed. Returns how many; undefined if none is due. */
  const look: Effect.Effect<number | undefined, SqlError.SqlError> = transaction(sql)(
    Effect.zipRight(
      Effect.zipRight(repo.lockedProgress, alongIndex(sql)),
      Effect.map(repo.lookAgain, (looked) => (looked === 0 ? undefined : looked))
    )
  )

  /** Adapts the length of stretches to how long their counts take, failed ones included: they may have timed out. */
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

  /** Takes one step of each kind. Returns whether there may be more to do. */
  const round = Effect.gen(function* () {
    const steps = [yield* inTime(step(1)), yield* inTime(step(2)), yield* look]
    if (steps.some((counted) => counted !== undefined && counted > 0)) yield* Effect.sleep(pause)
    return steps.some((counted) => counted !== undefined)
  })

  return Effect.asVoid(Effect.repeat(round, { while: (hasMore) => hasMore }))
})
