import { SqlClient } from "@effect/sql"
import { Duration, Effect } from "effect"
import { serviceWith } from "../../platform/kit/Service.ts"
import { orUnavailable, sessionClient } from "../../platform/storage/Database.ts"
import { addDays, noteWaitingDays, removeDays } from "../../platform/storage/partitions/DayPartitions.ts"
import { makeEventReplaysRepo } from "../event-replays/EventReplaysRepo.ts"
import { makeRecoveriesRepo } from "../recoveries/RecoveriesRepo.ts"
import { type MissingReferences, makeDeliveriesRepo } from "./DeliveriesRepo.ts"

export interface RetentionOptions {
  /** How long finished deliveries, and payloads that no delivery needs, are kept (contract 9.6). */
  readonly keepFor: Duration.Duration
}

const make = Effect.fnUntraced(function* ({ keepFor }: RetentionOptions) {
  const sql = yield* SqlClient.SqlClient
  const session = yield* sessionClient
  const deliveries = yield* makeDeliveriesRepo(keepFor)
  const recoveries = yield* makeRecoveriesRepo
  const replays = yield* makeEventReplaysRepo
  const keepForMillis = Duration.toMillis(keepFor)
  return {
    /**
     * Removes everything whose retention has ended. Deliveries with their attempts, and events, are removed a day at a
     * time, once the whole day has expired: a delivery that still waits, or is re-sent, keeps its day. Records of
     * skipped and published events, finished recoveries and replays are removed in small batches. Any number of
     * processes may run it at the same time. Queued deliveries and their events are never removed, however old they
     * are.
     *
     * Also creates the tables for the next days.
     */
    clean: Effect.all([
      addDays,
      noteWaitingDays,
      Effect.provideService(removeDays(keepFor), SqlClient.SqlClient, session),
      deliveries.removeOldRecords,
      recoveries.removeOlderThan(keepForMillis),
      replays.removeOlderThan(keepForMillis)
    ]).pipe(
      Effect.asVoid,
      Effect.provideService(SqlClient.SqlClient, sql),
      orUnavailable,
      Effect.withSpan("Retention.clean")
    ),
    /** Logs waiting deliveries with dangling references. */
    checkReferences: orUnavailable(Effect.flatMap(deliveries.dangling, reportDangling))
  }
})

const idsNamed = 5

/** The statements should prevent these, but no foreign keys enforce it. */
const reportDangling = Effect.fnUntraced(function* (dangling: ReadonlyArray<MissingReferences>) {
  if (dangling.length === 0) return
  const count = (part: keyof Omit<MissingReferences, "id">) => dangling.filter((one) => one[part]).length
  yield* Effect.logError(
    "Waiting deliveries lack what they refer to, and can't be sent: restore it from a backup"
  ).pipe(
    Effect.annotateLogs({
      deliveries: dangling.length,
      withoutHistory: count("delivery"),
      withoutEvent: count("event"),
      withoutEndpoint: count("endpoint"),
      ids: dangling.slice(0, idsNamed).map(({ id }) => id)
    })
  )
})

export class Retention extends serviceWith<Retention>()("connected-payments/deliveries/Retention", make) {}
