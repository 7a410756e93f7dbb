import { createHash } from "node:crypto"
import { SqlClient, SqlError } from "@effect/sql"
import { PgClient } from "@effect/sql-pg"
import {
  Cause,
  Context,
  Duration,
  Effect,
  Either,
  Layer,
  Option,
  Predicate,
  Redacted,
  Schedule,
  type Scope
} from "effect"
import pg from "pg"
import { ServiceUnavailable } from "../errors/Errors.ts"
import { observePool } from "../telemetry/ProcessMetrics.ts"
import { removeValues, sqlState } from "../telemetry/ServerErrors.ts"

/** The options of the connection to PostgreSQL. */
export interface DatabaseOptions {
  readonly url: Redacted.Redacted
  /** Connections of this process. Default 10. */
  readonly poolSize?: number
  /** Longest wait for a free or new connection. Default 5 s. */
  readonly connectTimeout?: Duration.DurationInput
  /** Longest time for one statement, on the server and, slightly longer, on our side. Default 15 s. */
  readonly statementTimeout?: Duration.DurationInput
  readonly applicationName?: string
}

/** Statement texts are constants and few; the bound only guards against a text that is built by mistake. */
const maxStatementNames = 2000
const statementNames = new Map<string, string>()

const statementName = (text: string): string | undefined => {
  const known = statementNames.get(text)
  if (known !== undefined || statementNames.size >= maxStatementNames) {
    return known
  }
  const name = createHash("sha1").update(text).digest("base64url")
  statementNames.set(text, name)
  return name
}

/**
 * A client that names every parameterised statement, so that PostgreSQL parses and plans each text once per connection.
 * Its errors hold no values of rows, since they are logged and traced unchanged.
 */
class PreparingClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config)
    this.connection.prependListener("errorMessage", removeValues)
  }

  // `pg.Client#query` has a dozen overloads; only the one that `@effect/sql-pg` calls (text, values, callback) is changed
  override query: pg.Client["query"] = ((...args: ReadonlyArray<unknown>) => {
    const [text, values, callback] = args
    const name =
      typeof text === "string" && Array.isArray(values) && values.length > 0 ? statementName(text) : undefined
    const forwarded = name === undefined ? args : [{ name, text, values }, callback]
    return Reflect.apply(super.query, this, forwarded)
  }) as pg.Client["query"]
}

const makePool = (options: DatabaseOptions): pg.Pool => {
  const statementTimeout = Duration.toMillis(options.statementTimeout ?? "15 seconds")
  return openPool({
    connectionString: Redacted.value(options.url),
    // pg's type asks for the static side of its own class
    Client: PreparingClient as unknown as NonNullable<pg.PoolConfig["Client"]>,
    max: options.poolSize ?? 10,
    connectionTimeoutMillis: Duration.toMillis(options.connectTimeout ?? "5 seconds"),
    idleTimeoutMillis: 30_000,
    statement_timeout: statementTimeout,
    // Our own bound, for a server that has stopped answering altogether
    query_timeout: statementTimeout + 2000,
    idle_in_transaction_session_timeout: statementTimeout * 2,
    keepAlive: true,
    application_name: options.applicationName ?? "connected-payments"
  })
}

const withoutTimeouts = { statement_timeout: false, query_timeout: 0, idle_in_transaction_session_timeout: 0 } as const

/** Keeps the first plan of each statement; the pool waits for this before it uses a connection. */
const keepPlans = {
  onConnect: async (client: pg.ClientBase): Promise<void> => {
    await client.query("SET plan_cache_mode = force_generic_plan")
  }
}

const openPool = (config: pg.PoolConfig): pg.Pool => {
  const pool = new pg.Pool(config)
  // The pool drops an idle connection that breaks; without a listener its error would end the process
  pool.on("error", () => {})
  return pool
}

const closePool = (pool: pg.Pool) =>
  Effect.promise(() => pool.end()).pipe(Effect.interruptible, Effect.timeoutOption("2 seconds"))

/** The connections of this process; absent if an embedding team brings its own `PgClient`. */
export class DatabasePool extends Context.Tag("connected-payments/storage/DatabasePool")<DatabasePool, pg.Pool>() {}

/** The host of a URL; never what could be part of a password with an unescaped character. */
const hostOf = (text: string): string => {
  if (!URL.canParse(text)) return "its host"
  const { host, pathname, search, searchParams } = new URL(text)
  return `${pathname}${search}`.includes("@")
    ? "its host"
    : (searchParams.get("host") ?? (host === "" ? "localhost" : host))
}

const notReached = (url: Redacted.Redacted, cause: unknown): string => {
  const first = cause instanceof AggregateError && cause.message === "" ? cause.errors[0] : cause
  const reason = first instanceof Error ? first.message : String(first)
  return `The database cannot be reached. DATABASE_URL points to ${hostOf(Redacted.value(url))}: ${reason}`
}

const poolLayer = (options: DatabaseOptions): Layer.Layer<DatabasePool, SqlError.SqlError> =>
  Layer.scoped(
    DatabasePool,
    Effect.acquireRelease(
      Effect.tryPromise({
        try: async () => {
          const pool = makePool(options)
          await pool.query("SELECT 1").catch(async (error: unknown) => {
            await pool.end()
            throw error
          })
          return pool
        },
        catch: (cause) => new SqlError.SqlError({ cause, message: notReached(options.url, cause) })
      }),
      closePool
    ).pipe(Effect.tap(observePool))
  )

/**
 * At most `count` separate connections, for work that must not queue behind requests; opened on demand. If an embedding
 * team brings its own `PgClient`, that is used instead.
 *
 * @param options.unbounded for statements that may take as long as they need
 * @param options.planOnce for statements whose plan never depends on their values: PostgreSQL then keeps the first
 *   plan, while it might otherwise plan each time because it can't estimate a limit
 */
export const reservedConnections = (
  count: number,
  { planOnce = false, unbounded = false }: { readonly unbounded?: boolean; readonly planOnce?: boolean } = {}
): Effect.Effect<SqlClient.SqlClient, never, SqlClient.SqlClient | Scope.Scope> =>
  Effect.gen(function* () {
    const shared = yield* Effect.serviceOption(DatabasePool)
    if (Option.isNone(shared)) return yield* SqlClient.SqlClient
    const acquire = Effect.acquireRelease(
      Effect.sync(() =>
        openPool({
          ...shared.value.options,
          max: count,
          ...(unbounded ? withoutTimeouts : {}),
          ...(planOnce ? keepPlans : {})
        })
      ),
      closePool
    )
    // It fails only if acquiring fails
    return Context.get(yield* Effect.orDie(Layer.build(PgClient.layerFromPool({ acquire }))), SqlClient.SqlClient)
  })

/**
 * A pool with bounded waits and prepared statements, as `PgClient` and `SqlClient`.
 *
 * Fails with `SqlError` if the database can't be reached at the start. An embedding team may provide its own `PgClient`
 * layer instead: nothing else of the service needs this one.
 */
export const databaseLayer = (
  options: DatabaseOptions
): Layer.Layer<PgClient.PgClient | SqlClient.SqlClient | DatabasePool, SqlError.SqlError> =>
  Layer.unwrapEffect(
    Effect.map(DatabasePool, (pool) => PgClient.layerFromPool({ acquire: Effect.succeed(pool) }))
  ).pipe(Layer.provideMerge(poolLayer(options)))

/** Whether PostgreSQL refused a row because of this unique or other constraint. */
export const violates = (error: SqlError.SqlError, constraint: string): boolean =>
  Predicate.hasProperty(error.cause, "constraint") && error.cause.constraint === constraint

/**
 * SQLSTATEs of a database that is temporarily unable to work: lost connections (08), a read-only standby (25006),
 * time-outs (25P03, 57014), a refused login (28), a database that is gone or accepts no connections (3D000, 55000),
 * conflicts between transactions (40), a lock (55P03), no connections, memory or disk (53), shutting down (57), I/O
 * (58).
 */
const unavailableStates = /^(08|25006|25P03|28|3D000|40|53|55000|55P03|57|58)/

/**
 * Whether the database is temporarily unable to work: unreachable, shutting down, out of connections, memory or disk,
 * or a statement that took too long. Everything else (a constraint, a type, a syntax error) is a bug of ours.
 */
export const isUnavailable = (error: SqlError.SqlError): boolean => {
  const state = sqlState(error)
  return state === undefined || unavailableStates.test(state)
}

/**
 * Turns database failures into the API's errors: 503 while the database is unavailable, a defect if the code is wrong.
 */
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

/** Whether a statement did not get a lock: it waited longer than its `lock_timeout`, or was part of a deadlock. */
export const isWithoutLock = (error: unknown): boolean =>
  error instanceof SqlError.SqlError && ["55P03", "40P01"].includes(sqlState(error) ?? "")

const isRetryable = (error: unknown): boolean =>
  error instanceof SqlError.SqlError && ["40001", "40P01"].includes(sqlState(error) ?? "")

const retryBackoff = Schedule.exponential("10 millis").pipe(Schedule.jittered, Schedule.intersect(Schedule.recurs(5)))

/**
 * Runs an effect in a transaction in which every database failure is a `SqlError`, also at COMMIT and on a lost
 * connection (`withTransaction` alone turns those into defects), and repeats it on a serialization failure or a
 * deadlock.
 *
 * The effect may run more than once: it must not do anything outside the database. Inside another transaction it is a
 * savepoint.
 */
export const transaction =
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
      ),
      Effect.retry({ while: isRetryable, schedule: retryBackoff })
    )
