import { Effect } from "effect"

/**
 * How many rows one statement removes: few enough that nobody waits for its locks. Such statements name rows by primary
 * key, never by `ctid`, which in a partitioned table is unique only within a partition.
 */
export const batchSize = 1000

/**
 * Repeats a statement that removes at most `batchSize` rows and returns how many it removed, until a batch is not full.
 * Yields between batches. Returns how many were removed in all.
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
