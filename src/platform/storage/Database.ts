import { SqlClient, SqlError } from "@effect/sql"
import { PgClient } from "@effect/sql-pg"
import {
  Cause,
  Context,
  Duration,
  Effect,
  Either,
  type Fiber,
  Layer,
  Option,
  Predicate,
  Redacted,
  Schedule,
  type Scope
} from "effect"
import pg from "pg"
import { ServiceUnavailable } from "../errors/Errors.ts"
import { type DatabaseTarget, hostsOf, readDatabaseUrl } from "../settings/DatabaseUrl.ts"
import { observePool } from "../telemetry/ProcessMetrics.ts"
import { sqlState } from "../telemetry/ServerErrors.ts"
import { cancelOnlyMeant } from "./Cancellations.ts"
import { countWaits, DiscreetClient, PreparingClient } from "./Clients.ts"
import { dropUnfit, Hosts } from "./Hosts.ts"
import { examine, type Line, noTimeLimit, refusalOf, refusesStartSettings, startSettingsRefused } from "./Pooler.ts"
import { schemaLayer, schemaOf } from "./Schema.ts"
import { setSession } from "./SessionSettings.ts"

export interface DatabaseOptions {
  /** May name several hosts, as in libpq: connections go to the one that accepts writes. */
  readonly url: Redacted.Redacted
  /**
   * The server's own address, if `url` leads to a pooler that may use another connection for each transaction. Used for
   * work that needs a session: see `SessionOptions`. Messages call it `DATABASE_DIRECT_URL`.
   */
  readonly directUrl?: Redacted.Redacted
  /** Maximum number of connections in the pool. Default 10. */
  readonly poolSize?: number
  /** Longest wait for a free or new connection. Default 5 s. */
  readonly connectTimeout?: Duration.DurationInput
  /**
   * Statement timeout on the server; the client waits two seconds longer, in case the server has stopped answering, and
   * counts the wait for the connection. Default 8 s, so that a request whose statement hangs is answered 503 within 10 s.
   */
  readonly statementTimeout?: Duration.DurationInput
  readonly applicationName?: string
  /** The schema of the service's tables. Default `payments`. If the service is embedded, `settings.databaseSchema` takes its place. */
  readonly schema?: string
  /** What your program calls the setting that holds the URL, for messages. Default `DATABASE_URL`. */
  readonly setting?: string
  /** Start even if the database can't be reached; statements fail until it can. Default false. */
  readonly mayBeAway?: boolean
}

const applicationNameOf = (options: DatabaseOptions): string => options.applicationName ?? "connected-payments"

// pg's type asks for the static side of its own class
const forPool = (Client: typeof pg.Client) => Client as unknown as NonNullable<pg.PoolConfig["Client"]>

const poolConfig = (options: DatabaseOptions, hosts: Hosts, url: string): pg.PoolConfig => {
  const statementTimeout = Duration.toMillis(options.statementTimeout ?? "8 seconds")
  return {
    connectionString: url,
    Client: forPool(hosts.clientsOf(PreparingClient)),
    max: options.poolSize ?? 10,
    connectionTimeoutMillis: Duration.toMillis(options.connectTimeout ?? "5 seconds"),
    idleTimeoutMillis: 30_000,
    statement_timeout: statementTimeout,
    query_timeout: statementTimeout + 2000,
    idle_in_transaction_session_timeout: statementTimeout * 2,
    keepAlive: true,
    application_name: applicationNameOf(options),
    onConnect: setSession
  }
}

/** Connections without timeouts among their start settings: a pooler refuses them. */
const withoutServerTimeouts = { statement_timeout: false, idle_in_transaction_session_timeout: 0 } as const

const withoutTimeouts = { ...withoutServerTimeouts, query_timeout: 0 } as const

/** The setting would stay on the server's connection, for its next user. */
const withoutSession: Partial<pg.PoolConfig> = { onConnect: () => {} }

/** Applies settings to each new connection; the pool uses a connection only after that. */
const beginningWith = (config: pg.PoolConfig, settings: ReadonlyArray<string>): pg.PoolConfig =>
  settings.length === 0
    ? config
    : {
        ...config,
        onConnect: async (client: pg.ClientBase): Promise<void> => {
          await config.onConnect?.(client)
          for (const setting of settings) await client.query(`SET ${setting}`)
        }
      }

/** Needed because the role may have timeouts of its own. */
const noTimeouts = ["statement_timeout = 0", "idle_in_transaction_session_timeout = 0"]

/** The settings for `planOnce`. */
const firstPlans = ["plan_cache_mode = force_generic_plan", "enable_seqscan = off", "enable_sort = off"]

const openPool = (config: pg.PoolConfig): pg.Pool => {
  const pool = new pg.Pool(config)
  // The pool drops a broken idle connection; without a listener its error would end the process
  pool.on("error", () => {})
  dropUnfit(pool)
  cancelOnlyMeant(pool)
  countWaits(pool)
  return pool
}

const closePool = (pool: pg.Pool) =>
  Effect.promise(() => pool.end()).pipe(Effect.interruptible, Effect.timeoutOption("2 seconds"))

/** The connection pool of this process; absent if an embedding team brings its own `PgClient`. */
export class DatabasePool extends Context.Tag("connected-payments/storage/DatabasePool")<DatabasePool, pg.Pool>() {}

const notReached = (name: string, url: Redacted.Redacted, cause: unknown): string => {
  if (refusesStartSettings(cause)) return startSettingsRefused(name)
  const first = cause instanceof AggregateError && cause.message === "" ? cause.errors[0] : cause
  const reason = first instanceof Error ? first.message : String(first)
  return `The database cannot be reached. ${name} points to ${hostsOf(Redacted.value(url))}: ${reason}`
}

export const openedOnDemand = (
  target: DatabaseTarget,
  options: DatabaseOptions
): Effect.Effect<pg.Pool, never, Scope.Scope> => {
  const hosts = new Hosts(target, applicationNameOf(options))
  return opened(poolConfig(options, hosts, target.url))
}

const opened = (config: pg.PoolConfig): Effect.Effect<pg.Pool, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => openPool(config)),
    closePool
  )

/**
 * Connection options for work that needs a session for longer than a transaction: LISTEN, session locks, cached plans.
 * They lead straight to the server, bypassing any pooler. Absent if an embedding team brings its own `PgClient`.
 */
export class SessionOptions extends Context.Tag("connected-payments/storage/SessionOptions")<
  SessionOptions,
  pg.PoolConfig
>() {}

const clientsOf = ({ Client }: pg.PoolConfig): typeof pg.Client =>
  // Set by `poolConfig`
  Client === undefined ? pg.Client : (Client as unknown as typeof pg.Client)

/** Examines the connections of a pool: whether they keep sessions, and their database. */
const examined = async (pool: pg.Pool): Promise<Line> => {
  const client = await pool.connect()
  // If the connection breaks, the running statement fails
  const ignore = () => {}
  client.on("error", ignore)
  try {
    return await examine(client, async () => {
      const another = new (clientsOf(pool.options))(pool.options)
      another.on("error", ignore)
      await another.connect()
      return another
    })
  } finally {
    client.off("error", ignore)
    client.release()
  }
}

const refused = (message: string) => new SqlError.SqlError({ cause: new Error(message), message })

interface Address {
  readonly name: string
  readonly url: Redacted.Redacted
  /** Whether a direct address is configured as well. */
  readonly hasDirect: boolean
}

/** Connection options for an address; also watches its server if that may move. */
const configOf = ({ name, url }: Address, options: DatabaseOptions) =>
  Effect.gen(function* () {
    const target = yield* Effect.mapError(readDatabaseUrl(Redacted.value(url), "write"), (reason) =>
      refused(`${name} ${reason}`)
    )
    const hosts = new Hosts(target, applicationNameOf(options))
    if (hosts.mayMove) yield* Effect.forkScoped(hosts.watch(PreparingClient))
    const config = poolConfig(options, hosts, target.url)
    return { config, plain: { ...config, Client: forPool(hosts.clientsOf(DiscreetClient)) } }
  })

/** Assumed for a database that is unreachable at the start: no pooler in between. */
const assumed: Line = {
  keepsSessions: true,
  keepsTransactions: true,
  prepares: true,
  database: "",
  hasTimeLimit: true
}

/** Opens a pool and checks its connections; fails if the service can't work with them. */
const usable = ({ hasDirect, name, url }: Address, config: pg.PoolConfig, mayBeAway = false) =>
  Effect.gen(function* () {
    const pool = yield* opened(config)
    const line = yield* Effect.tryPromise({
      try: () => examined(pool),
      catch: (cause) => new SqlError.SqlError({ cause, message: notReached(name, url, cause) })
    }).pipe(
      Effect.catchIf(
        ({ cause }) => mayBeAway && !refusesStartSettings(cause),
        () => Effect.succeed(assumed)
      )
    )
    const refusal = refusalOf(name, line, hasDirect)
    return refusal === undefined ? { line, pool } : yield* refused(refusal)
  })

const connectionsLayer = (options: DatabaseOptions): Layer.Layer<DatabasePool | SessionOptions, SqlError.SqlError> =>
  Layer.scopedContext(
    Effect.gen(function* () {
      const { directUrl, url } = options
      const hasDirect = directUrl !== undefined
      const address: Address = { name: options.setting ?? "DATABASE_URL", url, hasDirect }
      const { config, plain } = yield* configOf(address, options)
      const limits = hasDirect ? { ...withoutServerTimeouts, ...withoutSession } : {}
      const { line, pool: first } = yield* usable(address, { ...config, ...limits }, options.mayBeAway)
      const pool = line.prepares ? first : yield* opened({ ...plain, ...limits })
      yield* observePool(pool)
      let sessions: pg.PoolConfig = pool.options
      if (hasDirect) {
        const own: Address = { name: "DATABASE_DIRECT_URL", url: directUrl, hasDirect }
        sessions = (yield* configOf(own, options)).config
        const direct = yield* Effect.scoped(usable(own, { ...sessions, max: 1 }))
        if (direct.line.database !== line.database) {
          return yield* refused("DATABASE_DIRECT_URL leads to another database than DATABASE_URL.")
        }
      }
      if (!line.hasTimeLimit) yield* Effect.logWarning(noTimeLimit)
      return Context.make(DatabasePool, pool).pipe(Context.add(SessionOptions, sessions))
    })
  )

/** The class of the process's clients, for a session outside a pool: it connects to the same server. */
export const ownClients: Effect.Effect<typeof pg.Client> = Effect.map(
  Effect.serviceOption(SessionOptions),
  Option.match({ onNone: () => pg.Client, onSome: clientsOf })
)

export interface ReservedOptions {
  /** For statements that need a session: see `SessionOptions`. */
  readonly session?: boolean
  /** For statements without a timeout, in a session. */
  readonly unbounded?: boolean
  /**
   * For statements whose plan never depends on their values and always follows indexes, in a session: PostgreSQL then
   * keeps the first plan. Otherwise it might plan each time, because it can't estimate a parameterised limit. The plan
   * never scans a whole table, nor sorts what an index has in order: that is cheapest only while the table is as empty as
   * when it was planned.
   */
  readonly planOnce?: boolean
}

/** For work that must not queue behind requests; opened on demand, or the team's own `PgClient`. */
export const reservedConnections = (
  count: number,
  options?: ReservedOptions
): Effect.Effect<SqlClient.SqlClient, never, SqlClient.SqlClient | Scope.Scope> =>
  Effect.map(reservedPool(count, options), Context.get(SqlClient.SqlClient))

/** Like `reservedConnections`, with the pool that the connections are in, if it is ours. */
export const reservedPool = (
  count: number,
  { planOnce = false, unbounded = false, session = planOnce || unbounded }: ReservedOptions = {}
): Effect.Effect<Context.Context<SqlClient.SqlClient>, never, SqlClient.SqlClient | Scope.Scope> =>
  Effect.gen(function* () {
    const shared = yield* Effect.serviceOption(DatabasePool)
    if (Option.isNone(shared)) return Context.make(SqlClient.SqlClient, yield* SqlClient.SqlClient)
    const sessions = yield* Effect.serviceOption(SessionOptions)
    const config = session ? Option.getOrElse(sessions, () => shared.value.options) : shared.value.options
    const bounded = { ...config, max: count, ...(unbounded ? withoutTimeouts : {}) }
    const settings = [...(unbounded ? noTimeouts : []), ...(planOnce ? firstPlans : [])]
    const pool = yield* Effect.acquireRelease(
      Effect.sync(() => openPool(beginningWith(bounded, settings))),
      closePool
    )
    const schema = schemaOf(yield* SqlClient.SqlClient)
    // Building fails only if acquiring fails, or on a schema that the shared client would have refused
    const client = yield* Effect.orDie(Layer.build(clientsLayer(pool, schema)))
    return Context.add(client, DatabasePool, pool)
  })

/** Both clients of a pool; the statements of the `SqlClient` are for this schema. */
const clientsLayer = (pool: pg.Pool, schema = "payments") =>
  Layer.provideMerge(schemaLayer(schema), PgClient.layerFromPool({ acquire: Effect.succeed(pool) }))

/** The shared client, or a client with one connection of its own if the shared one keeps no session. */
export const sessionClient: Effect.Effect<SqlClient.SqlClient, never, SqlClient.SqlClient | Scope.Scope> = Effect.gen(
  function* () {
    const shared = yield* Effect.serviceOption(DatabasePool)
    const sessions = yield* Effect.serviceOption(SessionOptions)
    return Option.isSome(shared) && Option.isSome(sessions) && sessions.value !== shared.value.options
      ? yield* reservedConnections(1, { session: true })
      : yield* SqlClient.SqlClient
  }
)

/**
 * A pool with bounded waits and prepared statements, as `PgClient` and `SqlClient`, also for an embedding team's own
 * statements. The queue, the listener and the readiness check open up to five connections more.
 *
 * Fails with `SqlError` if the database can't be reached at the start, or a pooler in between can't be used. An embedding
 * team may provide its own `PgClient` layer instead, on which the queue is slower: each of its statements is planned anew.
 */
export const databaseLayer = (
  options: DatabaseOptions
): Layer.Layer<PgClient.PgClient | SqlClient.SqlClient | DatabasePool | SessionOptions, SqlError.SqlError> =>
  Layer.unwrapEffect(Effect.map(DatabasePool, (pool) => clientsLayer(pool, options.schema))).pipe(
    Layer.provideMerge(connectionsLayer(options))
  )

export const violates = (error: SqlError.SqlError, constraint: string): boolean =>
  Predicate.hasProperty(error.cause, "constraint") && error.cause.constraint === constraint

/**
 * SQLSTATEs of a database that is temporarily unable to work: lost connections (08), a read-only standby (25006),
 * timeouts (25P03, 57014), a refused login (28), a missing database or one that accepts no connections (3D000, 55000),
 * conflicts between transactions (40), a lock (55P03), no connections, memory or disk (53), shutting down (57), I/O
 * (58).
 */
const unavailableStates = /^(08|25006|25P03|28|3D000|40|53|55000|55P03|57|58)/

/**
 * Whether the database is temporarily unable to work: unreachable, shutting down, out of connections, memory or disk,
 * or a statement that timed out. Everything else (a constraint, a type, a syntax error) is a bug of ours.
 */
export const isUnavailable = (error: SqlError.SqlError): boolean => {
  const state = sqlState(error)
  return state === undefined || unavailableStates.test(state)
}

/** Turns database failures into the API's errors: 503 while the database is unavailable, otherwise a defect. */
export const orUnavailable = <A, E, R>(
  effect: Effect.Effect<A, E | SqlError.SqlError, R>
): Effect.Effect<A, Exclude<E, SqlError.SqlError> | ServiceUnavailable, R> =>
  Effect.catchAll(effect, (error): Effect.Effect<never, Exclude<E, SqlError.SqlError> | ServiceUnavailable> => {
    if (!(error instanceof SqlError.SqlError)) {
      // The instance check above has removed SqlError from E; the compiler can't narrow a type parameter
      return Effect.fail(error as Exclude<E, SqlError.SqlError>)
    }
    return isUnavailable(error) ? Effect.fail(new ServiceUnavailable({ cause: error })) : Effect.die(error)
  })

/** Whether a statement failed to get a lock: it exceeded its `lock_timeout`, or was the victim of a deadlock. */
export const isWithoutLock = (error: unknown): boolean =>
  error instanceof SqlError.SqlError && ["55P03", "40P01"].includes(sqlState(error) ?? "")

const isRetryable = (error: unknown): boolean =>
  error instanceof SqlError.SqlError && ["40001", "40P01"].includes(sqlState(error) ?? "")

const retryBackoff = Schedule.exponential("10 millis").pipe(Schedule.jittered, Schedule.intersect(Schedule.recurs(5)))

/** Fails with `SqlError` at COMMIT and on a lost connection, too, which `withTransaction` alone turns into defects. */
export const withSqlErrors =
  (sql: SqlClient.SqlClient) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError.SqlError, R> =>
    sql.withTransaction(effect).pipe(
      Effect.catchAllCause((cause) =>
        Either.match(Cause.failureOrCause(cause), {
          onLeft: Effect.fail,
          onRight: (rest) => {
            const defect = Cause.squash(rest)
            return defect instanceof SqlError.SqlError && !Cause.isInterrupted(cause)
              ? Effect.fail(defect)
              : Effect.failCause(rest)
          }
        })
      )
    )

export const isInTransaction = ({ currentContext }: Fiber.RuntimeFiber<unknown, unknown>): boolean =>
  currentContext.unsafeMap.has(SqlClient.TransactionConnection.key)

/**
 * Like `withSqlErrors`, with retries on a serialization failure or a deadlock.
 *
 * The effect may run more than once: it must do nothing outside the database. Inside another transaction it is a
 * savepoint.
 */
export const transaction =
  (sql: SqlClient.SqlClient) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError.SqlError, R> =>
    Effect.retry(withSqlErrors(sql)(effect), { while: isRetryable, schedule: retryBackoff })

export const firstRow = <A, E, R>(rows: Effect.Effect<ReadonlyArray<A>, E, R>): Effect.Effect<Option.Option<A>, E, R> =>
  Effect.map(rows, ([row]) => Option.fromNullable(row))

export const anyRow = <E, R>(rows: Effect.Effect<ReadonlyArray<unknown>, E, R>): Effect.Effect<boolean, E, R> =>
  Effect.map(rows, ({ length }) => length > 0)

export const oneRow = <A, E, R>(rows: Effect.Effect<ReadonlyArray<A>, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(rows, ([row]) =>
    row === undefined ? Effect.dieMessage("A statement that answers a row answered none") : Effect.succeed(row)
  )
