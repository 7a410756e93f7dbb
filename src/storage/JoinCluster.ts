import { layerNoop as noMessages } from "@effect/cluster/MessageStorage"
import * as RunnerAddress from "@effect/cluster/RunnerAddress"
import { layerNoop as heartbeatsAlone } from "@effect/cluster/RunnerHealth"
import { layerNoop as noCalls } from "@effect/cluster/Runners"
import * as ShardId from "@effect/cluster/ShardId"
import * as Sharding from "@effect/cluster/Sharding"
import * as ShardingConfig from "@effect/cluster/ShardingConfig"
import * as SqlRunnerStorage from "@effect/cluster/SqlRunnerStorage"
import { SqlClient, type SqlConnection, type SqlError } from "@effect/sql"
import {
  Cause,
  Context,
  Duration,
  Effect,
  FiberRef,
  FiberRefs,
  HashSet,
  Layer,
  Logger,
  LogLevel,
  Option,
  type Scope
} from "effect"
import { type Shards, shardCount } from "./Shards.ts"

/** The cluster's tables, of the migration `0021_cluster`. */
const tables = "payments.cluster"

const group = "default"

/**
 * The client, with "reserved" connections that are any of its pool's. The cluster reserves one for its locks, on which it
 * may begin a statement before the one before has ended; as its locks are rows, they belong to no session.
 */
const withoutReserving = (sql: SqlClient.SqlClient): SqlClient.SqlClient => {
  const connection: SqlConnection.Connection = {
    execute: (text, values) => sql.unsafe(text, values),
    executeRaw: (text, values) => sql.unsafe(text, values).raw,
    executeValues: (text, values) => sql.unsafe(text, values).values,
    executeUnprepared: (text, values) => sql.unsafe(text, values).unprepared,
    executeStream: (text, values) => sql.unsafe(text, values).stream
  }
  const client: SqlClient.SqlClient = new Proxy(sql, {
    get: (target, name, receiver) => {
      if (name === "reserve") return Effect.succeed(connection)
      if (name === "withoutTransforms") return () => client
      return Reflect.get(target, name, receiver)
    }
  })
  return client
}

/**
 * Writes the library's errors as warnings, without a trace: it says `error` when the database has not answered a heartbeat
 * in time, which costs nothing here, since a worker that does not know its shards looks after all.
 */
const asWarning = (logger: Logger.Logger<unknown, unknown>): Logger.Logger<unknown, unknown> =>
  Logger.make((line) => {
    if (LogLevel.lessThan(line.logLevel, LogLevel.Error)) return logger.log(line)
    // It was asked for as an error
    const least = FiberRefs.getOrDefault(line.context, FiberRef.currentMinimumLogLevel)
    if (LogLevel.lessThan(LogLevel.Warning, least)) return
    const why = Cause.isEmpty(line.cause) ? [] : [String(Cause.squash(line.cause))]
    return logger.log({
      ...line,
      logLevel: LogLevel.Warning,
      message: [line.message, ...why].flat(),
      cause: Cause.empty
    })
  })

interface JoinClusterOptions {
  /** Another one for each process. */
  readonly name: string
  /** How long a process may be silent before its shards are others', in whole seconds. */
  readonly silence: Duration.Duration
}

/**
 * Takes part in the cluster until the scope ends, and then gives its shards to the others. Processes send each other
 * nothing and listen on no port: heartbeats in the database say who lives. Answers how to ask which shards are held now.
 */
export const joinCluster = (
  sql: SqlClient.SqlClient,
  { name, silence }: JoinClusterOptions
): Effect.Effect<() => Shards, SqlError.SqlError, Scope.Scope> =>
  Effect.gen(function* () {
    const sharding = yield* Layer.build(
      Sharding.layer.pipe(
        Layer.provide([
          noCalls.pipe(Layer.provide(noMessages)),
          noMessages,
          heartbeatsAlone,
          SqlRunnerStorage.layerWith({ prefix: tables })
        ]),
        Layer.provide(
          ShardingConfig.layer({
            // Nobody connects to it
            runnerAddress: Option.some(RunnerAddress.make(name, 1)),
            shardsPerGroup: shardCount,
            availableShardGroups: [group],
            assignedShardGroups: [group],
            // PostgreSQL's own would stay with a process that is frozen: its session goes on
            shardLockDisableAdvisory: true,
            shardLockExpiration: silence,
            shardLockRefreshInterval: Duration.unsafeDivide(silence, 3),
            refreshAssignmentsInterval: "1 second",
            entityMessagePollInterval: "1 second"
          })
        ),
        Layer.provide(Layer.succeed(SqlClient.SqlClient, withoutReserving(sql)))
      )
    ).pipe(Effect.locallyWith(FiberRef.currentLoggers, HashSet.map(asWarning)))
    const { hasShardId } = Context.get(sharding, Sharding.Sharding)
    const ids = Array.from({ length: shardCount }, (_, index) => ShardId.make(group, index + 1))
    return () => ids.reduce((held, id, index) => (hasShardId(id) ? held | (1 << index) : held), 0)
  })
