import type { SqlError } from "@effect/sql"
import { Clock, Duration, Effect, Redacted, Schedule } from "effect"
import { isWithoutLock } from "../../storage/Database.ts"
import { sqlState } from "../../telemetry/ServerErrors.ts"
import type { CellDatabase } from "./CellDatabase.ts"
import { MoveRefused } from "./MoveError.ts"
import type { Move } from "./MoveState.ts"
import { copiedAhead, isOf } from "./MoveTables.ts"

/** PostgreSQL's logical replication of one organization's rows, from the database that it leaves to the other one. */

/** Both ends of a move. */
export interface Ends {
  readonly source: CellDatabase
  readonly target: CellDatabase
}

type OfMove = Pick<Move, "id" | "organizationId">

/** The name of publication, subscription and replication slot. */
export const replicationName = ({ id }: Pick<Move, "id">): string => `payments_move_${id.replaceAll("-", "")}`

const look = "200 millis"

/** How often the workers of the subscription may fail before the move gives up: a cut connection is one failure. */
const mostFailures = 10

/** Whether the source still has the log that a slot needs: see its `max_slot_wal_keep_size`. */
const isUsable = "wal_status IS DISTINCT FROM 'lost'"

/** What there is of a replication. */
interface Found {
  readonly publication: boolean
  /** Not if the source no longer has the log that the target needs: nothing comes through such a slot any more. */
  readonly slot: boolean
  readonly subscription: boolean
}

/** Looks for what there is, also of a move that was killed. */
export const findReplication = ({ source, target }: Ends, move: OfMove): Effect.Effect<Found, SqlError.SqlError> =>
  Effect.gen(function* () {
    const name = replicationName(move)
    const [at] = yield* source.query<Pick<Found, "publication" | "slot">>(
      `SELECT EXISTS (SELECT 1 FROM pg_publication WHERE pubname = $1) AS publication,
        EXISTS (SELECT 1 FROM pg_replication_slots WHERE slot_name = $1 AND ${isUsable}) AS slot`,
      [name]
    )
    const [other] = yield* target.query<Pick<Found, "subscription">>(
      `SELECT EXISTS (SELECT 1 FROM pg_subscription WHERE subname = $1
        AND subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())) AS subscription`,
      [name]
    )
    return {
      publication: at?.publication === true,
      slot: at?.slot === true,
      subscription: other?.subscription === true
    }
  })

/** Publishes the organization's rows, and begins to copy them. Whatever a killed attempt has left must be gone. */
export const beginReplication = ({ source, target }: Ends, move: OfMove): Effect.Effect<void, SqlError.SqlError> =>
  Effect.gen(function* () {
    const name = replicationName(move)
    const published = copiedAhead.map(
      (table) => `payments.${table.name} WHERE (${isOf(table, move.organizationId, table.name)})`
    )
    yield* source.query(
      `CREATE PUBLICATION ${name} FOR TABLE ${published.join(", ")} WITH (publish_via_partition_root = true)`
    )
    yield* source.query(`SELECT pg_create_logical_replication_slot($1, 'pgoutput')`, [name])
    const connection = Redacted.value(source.url).replaceAll("'", "''")
    yield* target.query(
      `CREATE SUBSCRIPTION ${name} CONNECTION '${connection}' PUBLICATION ${name}
      WITH (create_slot = false, slot_name = '${name}', copy_data = true)`
    )
  })

/** Ends the replication and removes what there is of it, also what a killed move has left. Repeating it does nothing. */
export const endReplication = ({ source, target }: Ends, move: OfMove): Effect.Effect<void, SqlError.SqlError> =>
  Effect.gen(function* () {
    const name = replicationName(move)
    const { subscription } = yield* findReplication({ source, target }, move)
    const [known] = yield* target.query<{ oid: string }>(`SELECT oid::text FROM pg_subscription WHERE subname = $1`, [
      name
    ])
    if (subscription) {
      // Also drops the slots at the source; if the target can't reach it any longer, the rest below does
      yield* target
        .query(`DROP SUBSCRIPTION ${name}`)
        .pipe(
          Effect.catchAll(() =>
            Effect.all([
              target.query(`ALTER SUBSCRIPTION ${name} DISABLE`),
              target.query(`ALTER SUBSCRIPTION ${name} SET (slot_name = NONE)`),
              target.query(`DROP SUBSCRIPTION ${name}`)
            ])
          )
        )
    }
    yield* dropSlots(source, name, known?.oid)
    yield* source
      .query(`DROP PUBLICATION IF EXISTS ${name}`)
      .pipe(Effect.retry({ while: isWithoutLock, schedule: Schedule.spaced("1 second"), times: 30 }))
  })

/** Drops the slot and those of tables that were being copied; a sender that is about to end still uses its own. */
const dropSlots = (source: CellDatabase, name: string, subscription: string | undefined) =>
  source
    .query(
      `SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots
      WHERE database = current_database() AND (slot_name = $1 OR slot_name LIKE $2)`,
      [name, subscription === undefined ? "" : `pg\\_${subscription}\\_sync\\_%`]
    )
    .pipe(
      Effect.retry({
        while: (error) => sqlState(error) === "55006",
        schedule: Schedule.spaced("500 millis").pipe(Schedule.upTo("2 minutes"))
      })
    )

/** How far the copy is. */
export interface CopyProgress {
  /** Tables that are copied, and how many there are. */
  readonly copied: number
  readonly tables: number
  /** Rows of the tables that are being copied just now. */
  readonly rows: number
  /** How far the target is behind, in bytes of the source's log. */
  readonly lag: number
}

/** The longest lag, in bytes of the source's log, with which the fence may begin. */
const smallLag = 1024 * 1024

/** Waits until all is copied and the target is about up to date. */
export const awaitCopy = (
  { source, target }: Ends,
  move: OfMove,
  onProgress: (progress: CopyProgress) => Effect.Effect<void>
): Effect.Effect<void, SqlError.SqlError | MoveRefused> =>
  Effect.gen(function* () {
    const name = replicationName(move)
    const began = yield* failuresOf(target, name)
    for (;;) {
      const [at] = yield* target.query<Pick<CopyProgress, "copied" | "tables" | "rows">>(
        `SELECT count(*) FILTER (WHERE r.srsubstate = 'r')::int AS copied, count(*)::int AS tables,
          COALESCE((SELECT sum(p.tuples_processed) FROM pg_stat_progress_copy p
            WHERE p.datname = current_database() AND p.relid IN (SELECT srrelid FROM pg_subscription_rel)), 0)::float8 AS rows
        FROM pg_subscription_rel r JOIN pg_subscription s ON s.oid = r.srsubid WHERE s.subname = $1`,
        [name]
      )
      const [behind] = yield* source.query<{ lag: number | null }>(
        `SELECT (pg_current_wal_lsn() - confirmed_flush_lsn)::float8 AS lag FROM pg_replication_slots
        WHERE slot_name = $1 AND ${isUsable}`,
        [name]
      )
      if (behind === undefined) return yield* logIsGone(source)
      const lag = behind.lag ?? Number.POSITIVE_INFINITY
      const progress = { copied: at?.copied ?? 0, tables: at?.tables ?? 0, rows: at?.rows ?? 0, lag }
      yield* onProgress(progress)
      if (progress.copied === progress.tables && progress.tables > 0 && lag < smallLag) return
      yield* refuseFailures(target, name, began)
      yield* Effect.sleep(look)
    }
  })

/** The target's server only fails to connect then, which it does not count. */
const logIsGone = (source: CellDatabase) =>
  new MoveRefused({
    message: `PostgreSQL of cell "${source.name}" no longer has the log that the copy needs (max_slot_wal_keep_size). Run the same command again: it copies anew.`
  })

const failuresOf = (target: CellDatabase, name: string) =>
  Effect.map(
    target.query<{ failures: number }>(
      `SELECT (apply_error_count + sync_error_count)::int AS failures FROM pg_stat_subscription_stats WHERE subname = $1`,
      [name]
    ),
    ([row]) => row?.failures ?? 0
  )

const refuseFailures = (target: CellDatabase, name: string, before: number) =>
  Effect.flatMap(failuresOf(target, name), (failures) =>
    failures - before < mostFailures
      ? Effect.void
      : new MoveRefused({
          message: `The replication to cell "${target.name}" fails again and again: its server's log says why. Remove the cause and run the same command again, or give the move up with --abort.`
        })
  )

/** How long the target may take nothing of what the source has committed. */
const longestStandstill = Duration.seconds(30)

/**
 * Waits until the target has all that was committed at the source until now. Refused if it takes nothing for
 * `longestStandstill`, since that may be behind the fence: the server does not count it as a failure if it can't connect.
 */
export const awaitCaughtUp = (
  { source, target }: Ends,
  move: OfMove
): Effect.Effect<void, SqlError.SqlError | MoveRefused> =>
  Effect.gen(function* () {
    const name = replicationName(move)
    const began = yield* failuresOf(target, name)
    // Its commit brings all that is before it to disk: only that is sent
    yield* source.query(`SELECT pg_logical_emit_message(true, 'payments', '')`)
    const [now] = yield* source.query<{ lsn: string }>(`SELECT pg_current_wal_flush_lsn()::text AS lsn`)
    let taken: string | null = null
    let takenAt = yield* Clock.currentTimeMillis
    for (;;) {
      const [at] = yield* source.query<{ position: string | null; there: boolean | null }>(
        `SELECT confirmed_flush_lsn::text AS position, confirmed_flush_lsn >= $2::pg_lsn AS there
        FROM pg_replication_slots WHERE slot_name = $1 AND ${isUsable}`,
        [name, now?.lsn ?? "0/0"]
      )
      if (at === undefined) return yield* logIsGone(source)
      if (at.there === true) return
      yield* refuseFailures(target, name, began)
      const time = yield* Clock.currentTimeMillis
      if (at.position !== taken) {
        taken = at.position
        takenAt = time
      } else if (time - takenAt >= Duration.toMillis(longestStandstill)) {
        return yield* new MoveRefused({
          message: `Cell "${target.name}" has taken nothing from "${source.name}" for ${Duration.format(longestStandstill)}: the log of its server says why, such as that it can't connect. Remove the cause and run the same command again, or give the move up with --abort.`
        })
      }
      yield* Effect.sleep(Duration.millis(50))
    }
  })
