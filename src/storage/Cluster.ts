import { SqlClient, type SqlError } from "@effect/sql"
import { Context, Duration, Effect, Fiber, Layer, Schedule, type Scope } from "effect"
import { reservedConnections } from "./Database.ts"
import { allShards, type Shards, shardCount, sizeOf } from "./Shards.ts"

/**
 * The workers on one database share its endpoints among themselves: `@effect/cluster` assigns each endpoint's shard to
 * one of them, by heartbeats and locks in two tables. Only a hint: all that depends on it is who looks at what first.
 * While a worker does not know its shards it holds all of them, and for a few seconds two may hold the same one.
 */

/** How long a worker works alone before it takes part: one that ends soon never does. */
const patience = "2 seconds"

/** How often a worker looks which shards it holds. */
const lookEvery = "250 millis"

/** The wait before the next try to take part. */
const tryAgain = Schedule.exponential("1 second").pipe(Schedule.jittered, Schedule.union(Schedule.spaced("10 seconds")))

/**
 * How long a worker may be silent before its shards are others', in whole seconds. Together with the second in which the
 * others notice, and the one in which they take the shards, that is less than a lease of 6 seconds or more.
 */
const silenceOf = (lease: Duration.Duration): Duration.Duration =>
  Duration.seconds(Math.max(2, Math.floor(Duration.toSeconds(lease) / 3)))

export interface JoinOptions {
  /** How long a delivery stays with a worker that has died: its shards are others' sooner. */
  readonly lease: Duration.Duration
  /** Called after each change of the shards. */
  readonly onChange: () => void
}

/** What a worker that takes part knows. */
export interface Membership {
  /** The shards that it holds; all, while it holds none or does not know. */
  readonly shards: () => Shards
  /** Gives all shards to the others, for good. */
  readonly leave: Effect.Effect<void>
}

/** This process's part of the cluster. */
export class Cluster extends Context.Tag("connected-payments/storage/Cluster")<
  Cluster,
  {
    /**
     * Takes part until the scope ends, in the background: a worker waits only until what that needs is loaded. Meanwhile
     * this process has up to two more connections, of which it uses one most of the time, for some two statements a second.
     */
    readonly join: (options: JoinOptions) => Effect.Effect<Membership, never, Scope.Scope>
    /**
     * Says that this process keeps house: that it has tasks, of this name, which one process does for all. Answers whether
     * another one does them now: of those that take part and keep the same house, the one that joined first.
     */
    readonly keepHouse: (name: string) => Effect.Effect<boolean, SqlError.SqlError>
  }
>() {
  static readonly layer: Layer.Layer<Cluster, never, SqlClient.SqlClient> = Layer.scoped(
    Cluster,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const own = yield* reservedConnections(2)
      const name = crypto.randomUUID()
      const houses = new Set<string>()
      return {
        join: (options) => takePart(own, () => [...houses, name].join("."), options),
        keepHouse: (house) =>
          Effect.suspend(() => {
            houses.add(house)
            return Effect.map(
              // A heartbeat comes every few seconds
              sql<{ isAnother: boolean }>`
                SELECT strpos(address, ${name}) = 0 AS "isAnother" FROM payments.cluster_runners
                WHERE ${house} = ANY (string_to_array(address, '.')) AND last_heartbeat > now() - interval '30 seconds'
                ORDER BY machine_id LIMIT 1`,
              ([first]) => first?.isAnother === true
            )
          })
      }
    })
  )
}

const takePart = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  nameNow: () => string,
  { lease, onChange }: JoinOptions
) {
  let shards: Shards = 0
  const note = (held: Shards) =>
    Effect.suspend(() => {
      if (held === shards) return Effect.void
      const wasAlone = shards === 0 && held === allShards
      shards = held
      onChange()
      return wasAlone ? Effect.void : Effect.logInfo(`The worker looks after ${sizeOf(held)} of ${shardCount} shards`)
    })
  const load = Effect.promise(() => import("./JoinCluster.ts"))
  // It holds the event loop up for up to a fifth of a second: better now than when attempts are under way
  yield* Effect.ignore(Effect.sandbox(load))
  const joined = yield* load.pipe(
    Effect.flatMap(({ joinCluster }) => joinCluster(sql, { name: nameNow(), silence: silenceOf(lease) })),
    Effect.flatMap((held) =>
      Effect.suspend(() => note(held())).pipe(Effect.zipRight(Effect.sleep(lookEvery)), Effect.forever)
    ),
    Effect.scoped,
    Effect.sandbox,
    Effect.tapError((cause) => Effect.logWarning("The worker can't share endpoints with others yet", cause)),
    Effect.retry(tryAgain),
    Effect.delay(patience),
    Effect.withTracerEnabled(false),
    Effect.interruptible,
    Effect.forkScoped
  )
  const membership: Membership = {
    shards: () => (shards === 0 ? allShards : shards),
    leave: Effect.asVoid(Fiber.interrupt(joined))
  }
  return membership
})
