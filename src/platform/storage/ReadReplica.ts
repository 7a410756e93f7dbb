import { SqlClient, SqlError } from "@effect/sql"
import { PgClient } from "@effect/sql-pg"
import { Context, Data, Effect, Either, identity, Layer, Option, Redacted, Schedule } from "effect"
import { monotonicMillis } from "../kit/Concurrency.ts"
import { readDatabaseUrl } from "../settings/DatabaseUrl.ts"
import { sqlState } from "../telemetry/ServerErrors.ts"
import { isInTransaction, isUnavailable, openedOnDemand, withSqlErrors } from "./Database.ts"

/**
 * Lists and history may be read from a replica, with the same result as on the primary: everything that was committed
 * before the request. The primary is asked for its log position, which the replica must have reached. If it does not
 * reach it within 100 ms, is unreachable, or is no standby of that primary, the primary is read.
 */

/** How long a request waits for the replica to replay up to the primary's position. */
const waitAtMost = "100 millis"

const askEvery = "5 millis"

/** How long the replica is not used after it was behind, unreachable or unsuitable, in milliseconds. */
const rests = { behind: 1000, away: 5000, unsuitable: 60_000 } as const

/** The primary's position, which the replica must have replayed. */
interface Position {
  /** A position in the log (LSN), as PostgreSQL writes it. */
  readonly lsn: string
  /** The timeline of the position: each promotion starts a new one. */
  readonly timeline: number
}

class NotOnReplica extends Data.TaggedError("NotOnReplica")<{
  readonly why: keyof typeof rests
  readonly reason: unknown
}> {}

/** A failure of the read itself, as opposed to one of the replica. */
class ReadFailed<E> {
  readonly error: E
  constructor(error: E) {
    this.error = error
  }
}

export class ReadReplica extends Context.Tag("connected-payments/storage/ReadReplica")<
  ReadReplica,
  {
    readonly prefer: <A, E, R>(read: Effect.Effect<A, E, R>) => Effect.Effect<A, E | SqlError.SqlError, R>
  }
>() {}

/**
 * Runs a read on the replica if there is one and it has caught up with the primary, otherwise on the primary. The read
 * must be repeatable, change nothing, and decide nothing: neither whether somebody may do something, nor what is done
 * next. Its statements see everything that was committed before it began. Without `DATABASE_READ_URL` it runs
 * unchanged.
 */
export const preferReplica: Effect.Effect<
  <A, E, R>(read: Effect.Effect<A, E, R>) => Effect.Effect<A, E | SqlError.SqlError, R>
> = Effect.map(
  Effect.serviceOption(ReadReplica),
  Option.match({ onNone: () => identity, onSome: ({ prefer }) => prefer })
)

/**
 * The flush position, or with `synchronous_commit = off` the insert position: commits may then be confirmed before they
 * are flushed.
 */
const positionOf = (sql: SqlClient.SqlClient) =>
  sql<Position>`
    SELECT lsn::text, ('x' || left(pg_walfile_name(lsn), 8))::bit(32)::int AS timeline
    FROM (
      SELECT CASE current_setting('synchronous_commit') WHEN 'off' THEN pg_current_wal_insert_lsn()
        ELSE pg_current_wal_flush_lsn() END
    ) AS primary_log (lsn)`

/** The primary's position. If the primary does not answer at all, the read fails as it would without a replica. */
const askPosition = (primary: SqlClient.SqlClient) =>
  Effect.mapError(positionOf(primary), (error) =>
    isUnavailable(error) ? error : new NotOnReplica({ why: "unsuitable", reason: error })
  )

interface Progress {
  readonly isStandby: boolean
  /** Whether it follows the primary's timeline, as far as its control file says: minutes late at worst. */
  readonly isSameTimeline: boolean
  readonly isFarEnough: boolean | null
}

/** In the read's transaction, so that it queries the server that is read, and makes it read-only. */
const progressOf = (replica: SqlClient.SqlClient, { lsn, timeline }: Position) =>
  replica<Progress>`
    SELECT pg_is_in_recovery() AS "isStandby", pg_last_wal_replay_lsn() >= ${lsn}::pg_lsn AS "isFarEnough",
      greatest(c.timeline_id, r.min_recovery_end_timeline) = ${timeline}::int AS "isSameTimeline",
      set_config('transaction_read_only', 'on', true)
    FROM pg_control_checkpoint() c, pg_control_recovery() r`

const requireProgress = ([progress]: ReadonlyArray<Progress>) => {
  if (progress === undefined || !progress.isStandby || progress.isFarEnough === null) {
    return new NotOnReplica({ why: "unsuitable", reason: "it is not a standby" })
  }
  if (!progress.isSameTimeline) return new NotOnReplica({ why: "away", reason: "it follows another primary" })
  return progress.isFarEnough ? Effect.void : new NotOnReplica({ why: "behind", reason: "it is behind" })
}

/** A statement that timed out here would do so on the primary, too. */
const isTooLong = (error: SqlError.SqlError): boolean => sqlState(error) === "57014"

/**
 * Whether the replica could not answer a read but the primary might: it is unreachable, or replay canceled the
 * statement.
 */
const isReplicas = (error: unknown): error is SqlError.SqlError =>
  error instanceof SqlError.SqlError && isUnavailable(error) && !isTooLong(error) && sqlState(error) !== "25006"

const askProgress = (replica: SqlClient.SqlClient, position: Position) =>
  progressOf(replica, position).pipe(
    Effect.mapError((error) => new NotOnReplica({ why: isUnavailable(error) ? "away" : "unsuitable", reason: error })),
    Effect.flatMap(requireProgress),
    Effect.retry({
      while: ({ why }) => why === "behind",
      schedule: Schedule.spaced(askEvery).pipe(Schedule.upTo(waitAtMost))
    })
  )

/** Whether reads use the replica: all do while it works, otherwise one at a time tries it, after a pause. */
const makeUse = () => {
  const state = { works: true, isTried: false, restsUntil: Number.NEGATIVE_INFINITY }

  const rest = ({ reason, why }: NotOnReplica) =>
    Effect.flatMap(monotonicMillis, (now) => {
      const { works } = state
      state.works = false
      state.restsUntil = now + rests[why]
      return works
        ? Effect.logWarning("The read replica is not used: lists are read from the primary", { why, reason })
        : Effect.void
    })

  const back = Effect.suspend(() => {
    const { works } = state
    state.works = true
    return works ? Effect.void : Effect.logInfo("The read replica is used again")
  })

  const mayTry = Effect.map(monotonicMillis, (now) => {
    if (state.works) return true
    if (state.isTried || now < state.restsUntil) return false
    state.isTried = true
    return true
  })

  const endTry = Effect.sync(() => {
    state.isTried = false
  })
  return { rest, back, mayTry, endTry }
}

const makePreferring = (primary: SqlClient.SqlClient, replica: SqlClient.SqlClient): ReadReplica["Type"] => {
  const { back, endTry, mayTry, rest } = makeUse()

  const onReplica = <A, E, R>(read: Effect.Effect<A, E, R>) =>
    Effect.flatMap(askPosition(primary), ([position]) =>
      position === undefined
        ? new NotOnReplica({ why: "unsuitable", reason: "the primary did not report its position" })
        : askProgress(replica, position).pipe(
            Effect.zipRight(
              Effect.mapError(read, (error) =>
                isReplicas(error) ? new NotOnReplica({ why: "away", reason: error }) : new ReadFailed(error)
              )
            ),
            withSqlErrors(replica),
            Effect.mapError((error) =>
              error instanceof SqlError.SqlError ? new NotOnReplica({ why: "away", reason: error }) : error
            )
          )
    )

  const prefer = <A, E, R>(read: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError.SqlError, R> =>
    Effect.withFiberRuntime((fiber) => {
      // Part of a transaction, whose changes the read must see
      if (isInTransaction(fiber)) return read
      // An interruption after this read has begun its try would leave the replica marked as being tried for good
      return Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(mayTry, (may): Effect.Effect<A, E | SqlError.SqlError, R> => {
          if (!may) return restore(read)
          return restore(onReplica(read)).pipe(
            Effect.tap(() => back),
            Effect.catchAll((error): Effect.Effect<A, E | SqlError.SqlError, R> => {
              if (error instanceof ReadFailed) return Effect.zipRight(back, Effect.fail(error.error))
              return error instanceof NotOnReplica ? Effect.zipRight(rest(error), restore(read)) : Effect.fail(error)
            }),
            Effect.ensuring(endTry)
          )
        })
      )
    })
  return { prefer }
}

/** The first read connects: a start does not need the replica. */
export const replicaOf = (
  url: Redacted.Redacted | undefined,
  poolSize: number
): Layer.Layer<ReadReplica, SqlError.SqlError, SqlClient.SqlClient> =>
  url === undefined ? noReplica : replicaLayer({ url, poolSize })

const noReplica: Layer.Layer<ReadReplica> = Layer.succeed(ReadReplica, { prefer: identity })

const replicaLayer = (options: {
  readonly url: Redacted.Redacted
  readonly poolSize: number
}): Layer.Layer<ReadReplica, SqlError.SqlError, SqlClient.SqlClient> =>
  Layer.scoped(
    ReadReplica,
    Effect.gen(function* () {
      const target = Either.getOrThrowWith(
        readDatabaseUrl(Redacted.value(options.url), "read"),
        (reason) => new Error(`DATABASE_READ_URL ${reason}`)
      )
      const pool = openedOnDemand(target, {
        ...options,
        // Shorter than the primary's: on a timeout the primary is read
        connectTimeout: "1 second",
        statementTimeout: "3 seconds",
        applicationName: "connected-payments reads"
      })
      const replica = Context.get(yield* Layer.build(PgClient.layerFromPool({ acquire: pool })), SqlClient.SqlClient)
      return makePreferring(yield* SqlClient.SqlClient, replica)
    })
  )
