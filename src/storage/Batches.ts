import { Effect } from "effect"

/**
 * Rows that one statement removes: few enough that nobody waits for its locks. It names them by their primary key, never
 * by their place (`ctid`), which in a partitioned table is unique within a partition only.
 */
export const batchSize = 1000

/**
 * Repeats a statement that removes at most `batchSize` rows and answers how many it removed, until it finds no full
 * batch any more. Between two of them others get their turn. Answers how many were removed in all.
 */
export const inBatches = <E, R>(remove: Effect.Effect<number, E, R>): Effect.Effect<number, E, R> =>
  Effect.gen(function* () {
    let removed = 0
    while (true) {
      const batch = yield* remove
      removed += batch
      if (batch < batchSize) {
        return removed
      }
      yield* Effect.yieldNow()
    }
  })
