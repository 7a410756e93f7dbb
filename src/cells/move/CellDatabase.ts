import { SqlError } from "@effect/sql"
import { Effect, Redacted, type Scope } from "effect"
import pg from "pg"
import { removeValues } from "../../telemetry/ServerErrors.ts"

/**
 * A connection to a cell's database, for a move. A plain one: a move reads from one database and writes to another in
 * transactions that overlap, while the service's clients take any transaction under way for their own.
 */
export interface CellDatabase {
  /** The cell's name. */
  readonly name: string
  readonly url: Redacted.Redacted
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

const failed = (name: string) => (cause: unknown) =>
  new SqlError.SqlError({ cause, message: `The database of cell "${name}" refused or did not answer` })

/** Connects until the scope ends. What the connection writes is not held up by fences: it is the mover's. */
export const openCell = (
  name: string,
  url: Redacted.Redacted
): Effect.Effect<CellDatabase, SqlError.SqlError, Scope.Scope> =>
  Effect.gen(function* () {
    const client = yield* Effect.acquireRelease(
      Effect.tryPromise({
        try: async () => {
          const client = new pg.Client({
            connectionString: Redacted.value(url),
            connectionTimeoutMillis: 10_000,
            keepAlive: true,
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
          return client
        },
        catch: (cause) =>
          new SqlError.SqlError({
            cause,
            message: `The database of cell "${name}" (CELL_DATABASE_URLS) can't be reached`
          })
      }),
      // Also ends a statement that was interrupted
      (client) => Effect.ignore(Effect.tryPromise(() => client.end()))
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
        (_, exit) => (exit._tag === "Success" ? Effect.void : Effect.ignore(query("ROLLBACK")))
      )
    return { name, url, query, transaction }
  })
