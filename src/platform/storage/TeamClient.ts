import { SqlClient, SqlError } from "@effect/sql"
import { PgClient } from "@effect/sql-pg"
import { Context, Duration, Effect, Layer, Option } from "effect"
import { DatabasePool } from "./Database.ts"
import { databaseIdentity } from "./Pooler.ts"
import { inSchema } from "./Schema.ts"
import { makeRunning } from "./Statements.ts"

/**
 * An embedding team's own `PgClient`, checked when a layer is built: a client that the service's statements can't work
 * with would silently lose events later.
 */

/** How long the pool may take to open two connections. */
const openTimeout = Duration.seconds(10)

/** How often both connections are asked for their server process: a pooler may repeat an assignment by chance. */
const rounds = 6

const refused = (reason: string) => {
  const message = `The PgClient can't be used: ${reason}`
  return new SqlError.SqlError({ cause: new Error(message), message })
}

/** How a value of each type must be read in JavaScript: as `pg` does, unless a client has its own parsers. */
const forms: Readonly<Record<string, { readonly value: string; readonly is: (read: unknown) => boolean }>> = {
  timestamptz: { value: "2026-01-02 03:04:05.678+00", is: (read) => read instanceof Date },
  jsonb: { value: '{"a": [1]}', is: (read) => JSON.stringify(read) === '{"a":[1]}' },
  json: { value: '{"a": [1]}', is: (read) => JSON.stringify(read) === '{"a":[1]}' },
  "text[]": { value: "{a,b}", is: (read) => JSON.stringify(read) === '["a","b"]' },
  bytea: { value: "\\x00ff", is: (read) => Buffer.isBuffer(read) && read.toString("hex") === "00ff" },
  bool: { value: "t", is: (read) => read === true },
  int4: { value: "7", is: (read) => read === 7 },
  float8: { value: "1.5", is: (read) => read === 1.5 },
  uuid: { value: "0192d3a5-0000-7000-8000-000000000000", is: (read) => typeof read === "string" },
  text: { value: "a", is: (read) => read === "a" },
  int8: { value: "7", is: (read) => Number(read) === 7 },
  numeric: { value: "7", is: (read) => Number(read) === 7 }
}

/** Refuses a client with parsers of its own for types that the service reads. */
const requireForms = (sql: SqlClient.SqlClient): Effect.Effect<void, SqlError.SqlError> => {
  const types = Object.entries(forms)
  const columns = types.map(([type], index) => `$${index + 1}::${type} AS "${type}"`)
  const row = sql.unsafe<Record<string, unknown>>(
    `SELECT ${columns.join(", ")}`,
    types.map(([, { value }]) => value)
  )
  return Effect.flatMap(row, ([read = {}]) => {
    const others = types.filter(([type, { is }]) => !is(read[type])).map(([type]) => type)
    return others.length === 0
      ? Effect.void
      : refused(
          `its parsers read ${others.join(", ")} as something else than the service needs. Leave \`types\` out of its options, or give the service a PgClient of its own`
        )
  })
}

/** Refuses a client that changes names in statements and leaves them as they are in rows: only both can be undone. */
const requirePlainNames = (sql: SqlClient.SqlClient): Effect.Effect<void, SqlError.SqlError> =>
  sql`${sql("aName")}`.compile()[0] === `"aName"`
    ? Effect.void
    : refused(
        "it has transformQueryNames without transformResultNames. Set both, which the service undoes for its own statements, or neither"
      )

/** Refuses a pool of one connection, and a pooler that gives each transaction another connection. */
const requireSessions = (sql: SqlClient.SqlClient): Effect.Effect<void, SqlError.SqlError> =>
  Effect.gen(function* () {
    const tooFew = (cause: string) =>
      refused(
        `it could not open two connections (${cause}). The service holds one for wake-ups and works on the others: maxConnections must be 2 at least, and 5 or more for the whole service`
      )
    const both = yield* Effect.all([sql.reserve, sql.reserve], { concurrency: 2 }).pipe(
      Effect.timeoutFail({ duration: openTimeout, onTimeout: () => tooFew("the second one took too long") }),
      Effect.catchTag("SqlError", (error) => tooFew(error.cause instanceof Error ? error.cause.message : error.message))
    )
    const [first, second] = [new Set<unknown>(), new Set<unknown>()]
    for (let round = 0; round < rounds; round++) {
      for (const [pids, connection] of [
        [first, both[0]],
        [second, both[1]]
      ] as const) {
        const [row] = yield* connection.execute("SELECT pg_backend_pid() AS pid", [], undefined)
        pids.add(row.pid)
      }
    }
    if (first.size > 1 || second.size > 1 || [...first].some((pid) => second.has(pid))) {
      return yield* refused(
        "it leads to a connection pooler that gives each transaction another connection. Wake-ups (LISTEN), migrations and the queue need sessions: connect to the server itself, or let the pooler keep sessions (pool_mode = session)"
      )
    }
  }).pipe(Effect.scoped)

/** Refuses a client of another database than that of a `databaseLayer` in the same context, whose pool the queue uses. */
const requireDatabaseOfPool = (sql: SqlClient.SqlClient) =>
  Effect.gen(function* () {
    const runOnPool = yield* makeRunning
    const identity = sql.unsafe<{ readonly database: string }>(`SELECT ${databaseIdentity} AS database`)
    const [[queues], [clients]] = [yield* runOnPool(identity), yield* identity]
    if (queues?.database !== clients?.database) {
      return yield* refused(
        "it leads to another database than the databaseLayer around it, whose connections the queue would use. Give the service a databaseLayer of the same database instead"
      )
    }
  })

/**
 * The team's client as the service uses it: without transforms of names, and for this schema. Fails with a `SqlError`, whose message says what
 * to change, if its types, its pool or a pooler in between are unsuitable.
 */
export const teamClientLayer = (
  schema: string
): Layer.Layer<PgClient.PgClient | SqlClient.SqlClient, SqlError.SqlError, PgClient.PgClient | SqlClient.SqlClient> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const sql = (yield* SqlClient.SqlClient).withoutTransforms()
      yield* requirePlainNames(sql)
      yield* requireForms(sql)
      // That of a databaseLayer was examined when it was opened, and may be behind a pooler
      const hasPool = Option.isSome(yield* Effect.serviceOption(DatabasePool))
      yield* hasPool ? requireDatabaseOfPool(sql) : requireSessions(sql)
      const client = (yield* PgClient.PgClient).withoutTransforms()
      return Context.make(SqlClient.SqlClient, yield* inSchema(sql, schema)).pipe(
        Context.add(PgClient.PgClient, client)
      )
    })
  )
