import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"
import { alongIndex } from "../../platform/storage/BoundedReads.ts"
import { transaction } from "../../platform/storage/Database.ts"
import { makeCountStatements, type Pass } from "./CountStatements.ts"
import { firstStretch, type Position, type Stretch, secondStretch, slotMillis } from "./Slots.ts"
import { lookAgain } from "./Unsettled.ts"

/** The target time of a statement, in milliseconds: if one takes longer, further stretches are shorter. */
const longStatement = 1000

/** The shortest stretch into which a slot is divided, in milliseconds. */
const shortestStretch = 5000

/** The pause after steps that counted something: the queue's own work has priority. */
const pause = "50 millis"

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

/**
 * Counts stored rows in small steps. Each is a transaction that also advances the position, so a step is atomic; a
 * concurrent process waits for it and continues after it.
 */
export const makeCounting = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const statements = makeCountStatements(sql)
  let longest = slotMillis

  const progress = Effect.map(
    sql<PassRow>`SELECT pass, since, until, now() AS now FROM payments.count_passes ORDER BY pass`,
    toProgress
  )

  /** Reads the progress and locks it until the end of the transaction, so that only one process counts. */
  const locked = Effect.map(
    sql<PassRow>`SELECT pass, since, until, now() AS now FROM payments.count_passes ORDER BY pass FOR UPDATE`,
    toProgress
  )

  const moveTo = (pass: Pass, { since, until }: Stretch & Position) => sql`
    UPDATE payments.count_passes
    SET since = ${new Date(since).toISOString()}::timestamptz, until = ${new Date(until).toISOString()}::timestamptz
    WHERE pass = ${pass}::smallint`

  const count = Effect.fnUntraced(function* (pass: Pass, stretch: Stretch & Position) {
    const counted = [...(yield* statements.payments(pass, stretch)), ...(yield* statements.deliveries(pass, stretch))]
    yield* moveTo(pass, stretch)
    return counted.reduce((sum, row) => sum + row.counted, 0)
  })

  /** Counts the next stretch of a pass. Returns how many rows; undefined if it is not time yet. */
  const step = (pass: Pass): Effect.Effect<number | undefined, SqlError.SqlError> =>
    transaction(sql)(
      Effect.gen(function* () {
        const { first, now, second } = yield* locked
        const stretch = pass === 1 ? firstStretch(first, second, now, longest) : secondStretch(second, now, longest)
        if (stretch === undefined) return undefined
        yield* alongIndex(sql)
        const counted = yield* count(pass, stretch)
        if (pass === 2 && stretch.until === stretch.slot + slotMillis) {
          yield* statements.settlePayments(stretch.slot)
          yield* statements.settleDeliveries(stretch.slot)
        }
        return counted
      })
    )

  /** Recounts groups that may have changed. Returns how many; undefined if none is due. */
  const look: Effect.Effect<number | undefined, SqlError.SqlError> = transaction(sql)(
    Effect.zipRight(
      Effect.zipRight(locked, alongIndex(sql)),
      Effect.map(lookAgain(sql), ([row]) => (row === undefined || row.looked === 0 ? undefined : row.looked))
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

  return {
    progress,
    /** Counts everything that is due. */
    run: Effect.asVoid(Effect.repeat(round, { while: (hasMore) => hasMore }))
  }
})
