import { SqlError } from "@effect/sql"
import { Effect, Redacted, type Scope } from "effect"
import pg from "pg"
import { removeValues } from "../../telemetry/ServerErrors.ts"
import { MoveRefused } from "./MoveError.ts"

/** A process of a database server, with its start: another one may have the same number later, or at another server. */
interface Backend {
  readonly pid: number
  readonly startedAt: string
}

/**
 * A connection to a cell's database, for a move. A plain one: a move reads from one database and writes to another in
 * transactions that overlap, while the service's clients take any transaction under way for their own.
 */
export interface CellDatabase {
  /** The cell's name. */
  readonly name: string
  readonly url: Redacted.Redacted
  /** The server's process behind the connection. */
  readonly backend: Backend
  readonly query: <Row extends object = Record<string, unknown>>(
    text: string,
    values?: ReadonlyArray<unknown>
  ) => Effect.Effect<ReadonlyArray<Row>, SqlError.SqlError>
  /** Runs an effect in a transaction; `snapshot` for one that reads everything as of its beginning. */
  readonly transaction: <A, E, R>(
    effect: Effect.Effect<A, E, R>,
    kind?: "snapshot"
  ) => Effect.Effect<A, E | SqlError.SqlError, R>
}

/** How long a connection waits for the server to take back what an unfinished transaction did. */
const rollbackPatience = "10 seconds"

/** How long a server may take to end a process, in milliseconds. */
const endPatience = 10_000

const failed = (name: string) => (cause: unknown) =>
  new SqlError.SqlError({ cause, message: `The database of cell "${name}" refused or did not answer` })

/** Connects until the scope ends. What the connection writes is not held up by fences: it is the mover's. */
export const openCell = (
  name: string,
  url: Redacted.Redacted
): Effect.Effect<CellDatabase, SqlError.SqlError, Scope.Scope> =>
  Effect.gen(function* () {
    const { backend, client } = yield* Effect.acquireRelease(
      Effect.tryPromise({
        try: async () => {
          const client = new pg.Client({
            connectionString: Redacted.value(url),
            connectionTimeoutMillis: 10_000,
            keepAlive: true,
            // A server that is gone without a word fails the statement under way within half a minute
            keepAliveInitialDelayMillis: 10_000,
            application_name: "connected-payments move"
          })
          // A broken connection fails the statement under way
          client.on("error", () => {})
          await client.connect()
          // The same text of a row at both ends
          await client.query(
            `SELECT set_config('payments.mover', 'on', false), set_config('timezone', 'UTC', false),
              set_config('datestyle', 'ISO, YMD', false), set_config('intervalstyle', 'postgres', false),
              set_config('bytea_output', 'hex', false), set_config('extra_float_digits', '1', false),
              set_config('statement_timeout', '0', false), set_config('jit', 'off', false)`
          )
          const { rows } = await client.query<Backend>(
            `SELECT pid, backend_start::text AS "startedAt" FROM pg_stat_activity WHERE pid = pg_backend_pid()`
          )
          const [backend] = rows
          if (backend === undefined) throw new Error("A connection's own process is always listed")
          return { backend, client }
        },
        catch: (cause) =>
          new SqlError.SqlError({
            cause,
            message: `The database of cell "${name}" (CELL_DATABASE_URLS) can't be reached`
          })
      }),
      // Also ends a statement that was interrupted
      ({ client }) => Effect.ignore(Effect.tryPromise(() => client.end()))
    )
    const query: CellDatabase["query"] = <Row extends object>(text: string, values: ReadonlyArray<unknown> = []) =>
      Effect.tryPromise({
        try: async () => {
          const { rows } = await client.query<Row>(text, [...values])
          return rows as ReadonlyArray<Row>
        },
        catch: (cause) => {
          if (cause instanceof Error) removeValues(cause)
          return failed(name)(cause)
        }
      })
    const transaction: CellDatabase["transaction"] = (effect, kind) =>
      Effect.acquireUseRelease(
        query(kind === "snapshot" ? "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" : "BEGIN"),
        () => Effect.tap(effect, () => query("COMMIT")),
        (_, exit) =>
          exit._tag === "Success"
            ? Effect.void
            : query("ROLLBACK").pipe(Effect.interruptible, Effect.timeout(rollbackPatience), Effect.ignore)
      )
    return { name, url, backend, query, transaction }
  })

/**
 * Connects anew until the scope ends, in place of a connection that is lost or hangs. The server ends that one's process
 * first: what it had not committed by then is never committed.
 */
export const reopenCell = ({
  backend: { pid, startedAt },
  name,
  url
}: CellDatabase): Effect.Effect<CellDatabase, SqlError.SqlError | MoveRefused, Scope.Scope> =>
  Effect.gen(function* () {
    const cell = yield* openCell(name, url)
    const [lost] = yield* cell.query<{ ended: boolean }>(
      `SELECT pg_terminate_backend(pid, ${endPatience}) AS ended FROM pg_stat_activity
      WHERE pid = $1 AND backend_start::text = $2`,
      [pid, startedAt]
    )
    return lost?.ended === false
      ? yield* new MoveRefused({
          message: `The database of cell "${name}" does not end a lost connection of the move.`
        })
      : cell
  })
