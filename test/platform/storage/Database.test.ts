import { inspect } from "node:util"
import { SqlClient, SqlError } from "@effect/sql"
import { Cause, Clock, Context, Data, Deferred, Effect, Exit, Fiber, Layer, Redacted } from "effect"
import { ServiceUnavailable } from "../../../src/platform/errors/Errors.ts"
import {
  type DatabaseOptions,
  DatabasePool,
  databaseLayer,
  isUnavailable,
  orUnavailable,
  transaction,
  violates
} from "../../../src/platform/storage/Database.ts"
import { Metrics, makeMetrics } from "../../../src/platform/telemetry/Metrics.ts"
import { sqlState } from "../../../src/platform/telemetry/ServerErrors.ts"
import { eventuallyIs } from "../../harness/Eventually.ts"
import { createTestDatabase } from "../../harness/TestDatabase.ts"
import { describe, expect, it } from "../../harness/Tests.ts"

const connect = (options: DatabaseOptions) =>
  Effect.map(Layer.build(databaseLayer(options)), Context.get(SqlClient.SqlClient))

const ownDatabase = (options: Omit<DatabaseOptions, "url"> = {}) =>
  Effect.flatMap(createTestDatabase(), ({ url }) => connect({ ...options, url }))

/** The failure itself: a defect or an interruption is none. */
const failureOf = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.flip(effect)

const raise = (sql: SqlClient.SqlClient, state: string) =>
  sql.unsafe(`DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '${state}'; END $$`)

describe("an error of the server's", () => {
  const secret = "4111-1111-a-secret"
  const cases: ReadonlyArray<
    readonly [string, string, (sql: SqlClient.SqlClient) => Effect.Effect<unknown, SqlError.SqlError>, object]
  > = [
    [
      "a unique violation",
      "23505",
      (sql) => sql`INSERT INTO cards VALUES (1, ${secret}, 'open')`,
      {
        constraint: "cards_number_key",
        table: "cards",
        schema: "public",
        message: expect.stringContaining("cards_number_key")
      }
    ],
    [
      "a check violation",
      "23514",
      (sql) => sql`INSERT INTO cards VALUES (2, ${secret}, 'odd')`,
      { constraint: "cards_state_check", table: "cards", message: expect.stringContaining("cards_state_check") }
    ],
    [
      "a null",
      "23502",
      (sql) => sql`INSERT INTO cards VALUES (3, ${secret}, NULL)`,
      { column: "state", table: "cards" }
    ],
    [
      "text that is no uuid",
      "22P02",
      (sql) => sql`SELECT ${secret}::uuid`,
      { message: "A value was refused (SQLSTATE 22P02)" }
    ],
    ["text that is no JSON", "22P02", (sql) => sql`SELECT ${secret}::jsonb`, { severity: "ERROR" }],
    ["a number that is none", "22P02", (sql) => sql.unsafe(`SELECT $1::int`, [secret]), { severity: "ERROR" }],
    ["an exception in a function", "P0001", (sql) => sql.unsafe(`SELECT refuse('${secret}')`), { message: "refused" }]
  ]

  it.scopedLive("keeps its code, constraint, table and severity, and no value of a row or a parameter", function* () {
    const sql = yield* ownDatabase()
    yield* sql`CREATE TABLE cards (id int, number text UNIQUE, state text NOT NULL CHECK (state IN ('open', 'closed')))`
    yield* sql`INSERT INTO cards VALUES (0, ${secret}, 'open')`
    yield* sql.unsafe(`CREATE FUNCTION refuse(value text) RETURNS void LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'refused' USING DETAIL = value, HINT = value; END $$`)
    for (const [what, state, run, kept] of cases) {
      for (const within of [run(sql), transaction(sql)(run(sql))]) {
        const error = yield* failureOf(within)
        expect([what, sqlState(error)]).toEqual([what, state])
        expect(error.cause, what).toMatchObject(kept)
        const written = [
          inspect(error, { depth: 10, showHidden: true }),
          JSON.stringify(error),
          JSON.stringify(error.cause),
          Cause.pretty(Cause.fail(error), { renderErrorCause: true })
        ].join("\n")
        expect([what, written.includes(secret)]).toEqual([what, false])
      }
    }
  })
})

describe("a transaction", () => {
  it.scopedLive("makes a failure at COMMIT a SqlError, and stores nothing", function* () {
    const sql = yield* ownDatabase()
    yield* sql`CREATE TABLE parent (id int PRIMARY KEY)`
    yield* sql`CREATE TABLE child (parent_id int CONSTRAINT of_parent REFERENCES parent DEFERRABLE INITIALLY DEFERRED)`
    const error = yield* failureOf(transaction(sql)(sql`INSERT INTO child VALUES (7)`))
    expect(error).toBeInstanceOf(SqlError.SqlError)
    expect(sqlState(error)).toBe("23503")
    expect(violates(error, "of_parent")).toBe(true)
    expect(violates(error, "another")).toBe(false)
    expect(yield* sql`SELECT * FROM child`).toEqual([])
  })

  it.scopedLive("makes a connection that is lost in its middle a SqlError, and the pool goes on", function* () {
    const sql = yield* ownDatabase({ poolSize: 1 })
    const error = yield* failureOf(transaction(sql)(Effect.ignore(sql`SELECT pg_terminate_backend(pg_backend_pid())`)))
    expect(error).toBeInstanceOf(SqlError.SqlError)
    expect(isUnavailable(error)).toBe(true)
    expect(yield* sql`SELECT 1 AS one`).toEqual([{ one: 1 }])
  })

  it.scopedLive("is repeated on a serialization failure until it went through", function* () {
    const sql = yield* ownDatabase({ poolSize: 4 })
    yield* sql`CREATE TABLE counter AS SELECT 0 AS value`
    const bothHaveRead = yield* Deferred.make<void>()
    let readers = 0
    const increment = transaction(sql)(
      Effect.gen(function* () {
        yield* sql`SET TRANSACTION ISOLATION LEVEL SERIALIZABLE`
        const [row] = yield* sql<{ value: number }>`SELECT value FROM counter`
        readers += 1
        if (readers === 2) yield* Deferred.succeed(bothHaveRead, undefined)
        yield* Deferred.await(bothHaveRead)
        yield* sql`UPDATE counter SET value = ${(row?.value ?? 0) + 1}`
      })
    )
    yield* Effect.all([increment, increment], { concurrency: 2 })
    expect(yield* sql`SELECT value FROM counter`).toEqual([{ value: 2 }])
    expect(readers).toBeGreaterThan(2)
  })

  for (const state of ["40001", "40P01"]) {
    it.scopedLive(`is repeated on ${state}, but not for ever`, function* () {
      const sql = yield* ownDatabase()
      let runs = 0
      const failing = (times: number) => {
        runs = 0
        return transaction(sql)(
          Effect.suspend(() => {
            runs += 1
            return runs <= times ? raise(sql, state) : sql`SELECT 1`
          })
        )
      }
      yield* failing(2)
      expect(runs).toBe(3)
      expect(sqlState(yield* failureOf(failing(1000)))).toBe(state)
      expect(runs).toBeLessThan(20)
    })
  }

  it.scopedLive("is not repeated on other failures, the caller's own included", function* () {
    class OurOwn extends Data.TaggedError("OurOwn") {}
    const sql = yield* ownDatabase()
    yield* sql`CREATE TABLE written (id int PRIMARY KEY)`
    let runs = 0
    const counted = <E>(failure: Effect.Effect<never, E>) =>
      transaction(sql)(
        Effect.suspend(() => {
          runs += 1
          return sql`INSERT INTO written VALUES (${runs})`
        }).pipe(Effect.zipRight(failure))
      )
    expect(yield* failureOf(counted(new OurOwn()))).toBeInstanceOf(OurOwn)
    const died = yield* Effect.exit(counted(Effect.die(new Error("a bug"))))
    expect(Exit.isFailure(died) && Cause.isDie(died.cause) && Cause.pretty(died.cause)).toContain("a bug")
    expect(sqlState(yield* failureOf(counted(Effect.flatMap(raise(sql, "23505"), () => Effect.never))))).toBe("23505")
    expect(runs).toBe(3)
    expect(yield* sql`SELECT * FROM written`).toEqual([])
  })

  it.scopedLive("stays interrupted where it was interrupted, and rolls back", function* () {
    const sql = yield* ownDatabase()
    yield* sql`CREATE TABLE written (id int)`
    const inside = yield* Deferred.make<void>()
    const running = yield* Effect.fork(
      transaction(sql)(
        sql`INSERT INTO written VALUES (1)`.pipe(
          Effect.zipRight(Deferred.succeed(inside, undefined)),
          Effect.zipRight(Effect.never)
        )
      )
    )
    yield* Deferred.await(inside)
    expect(Exit.isInterrupted(yield* Fiber.interrupt(running))).toBe(true)
    expect(yield* sql`SELECT * FROM written`).toEqual([])
  })
})

describe("the pool", () => {
  it.scopedLive(
    "bounds the wait for a connection, which the API says as 503 and the metrics count, and recovers",
    function* () {
      let longWaits = 0
      const count = (name: string, _: unknown, by = 1) => {
        if (name === "db.client.connection.long_wait.count") longWaits += by
      }
      const sql = yield* ownDatabase({ poolSize: 1, connectTimeout: "2 seconds" }).pipe(
        Effect.provideService(Metrics, { ...makeMetrics().writer, count })
      )
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* sql.reserve
          const error = yield* failureOf(orUnavailable(sql`SELECT 1`))
          expect(error).toBeInstanceOf(ServiceUnavailable)
          expect(error).toMatchObject({ status: 503, code: "service_unavailable" })
          expect(error.retryAfter).not.toBeNull()
          expect(longWaits).toBe(1)
        })
      )
      expect(yield* sql`SELECT 1 AS one`).toEqual([{ one: 1 }])
    }
  )

  it.scopedLive("bounds a statement's time", function* () {
    const sql = yield* ownDatabase({ statementTimeout: "200 millis" })
    expect(sqlState(yield* failureOf(sql`SELECT pg_sleep(60)`))).toBe("57014")
    expect(yield* failureOf(orUnavailable(sql`SELECT pg_sleep(60)`))).toBeInstanceOf(ServiceUnavailable)
  })

  it.scopedLive("ends the statement of a caller who leaves", function* () {
    const sql = yield* ownDatabase({ poolSize: 2, statementTimeout: "1 hour" })
    const left = yield* Effect.fork(sql`SELECT pg_sleep(3600)`)
    yield* eventuallyIs(
      "the statement",
      sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`,
      (rows) => rows.length > 0
    )
    yield* Fiber.interrupt(left)
    // Each on a connection of its own
    yield* Effect.all([sql`SELECT pg_sleep(0.1)`, sql`SELECT pg_sleep(0.1)`], { concurrency: 2 })
  })

  it.scopedLive("ends no other statement if the one of a caller who left has ended by then", function* () {
    const sql = yield* ownDatabase({ poolSize: 2 })
    const left = yield* Effect.fork(sql`SELECT pg_sleep(0.4)`)
    const other = yield* Effect.fork(sql`SELECT pg_sleep(0.7)`)
    yield* Effect.sleep("100 millis")
    // Gets the first connection; the cancellation, which is asked for later, the second
    const waits = yield* Effect.fork(sql`SELECT pg_sleep(1)`)
    yield* Effect.sleep("50 millis")
    const leaving = yield* Effect.fork(Fiber.interrupt(left))
    yield* Fiber.join(other)
    yield* Fiber.join(waits)
    yield* Fiber.join(leaving)
  })

  it.scopedLive.each(["payments", "other"])(
    "ends no other statement, however many callers leave, in schema %s",
    function* (schema) {
      const sql = yield* ownDatabase({ poolSize: 3, schema })
      const leave = Effect.fork(sql`SELECT pg_sleep(0.002)`).pipe(
        Effect.zipLeft(Effect.sleep("2 millis")),
        Effect.flatMap(Fiber.interrupt),
        Effect.repeatN(150)
      )
      const stay = (statement: Effect.Effect<unknown, SqlError.SqlError>) => Effect.repeatN(statement, 150)
      const inTransaction = transaction(sql)(Effect.zipRight(sql`SELECT 1`, sql`SELECT pg_sleep(0.002)`))
      yield* Effect.all([leave, leave, stay(sql`SELECT pg_sleep(0.002)`), stay(inTransaction)], {
        concurrency: "unbounded"
      })
    }
  )

  it.scopedLive("is there for others soon if all who leave are in the middle of transactions", function* () {
    const sql = yield* ownDatabase({ poolSize: 2 })
    // The client would wait five seconds for each cancellation: by this clock, for ever
    const clock: Clock.Clock = Object.assign(Clock.make(), { sleep: () => Effect.never })
    const leave = transaction(sql)(sql`SELECT pg_sleep(0.5)`).pipe(Effect.withClock(clock), Effect.fork)
    const leaving = yield* Effect.replicateEffect(leave, 2)
    yield* Effect.sleep("100 millis")
    yield* Fiber.interruptAll(leaving)
    yield* sql`SELECT 1`
  })

  it.scopedLive("keeps its only connection if a cancellation gets that one itself", function* () {
    const { url } = yield* createTestDatabase()
    const pool = Context.get(yield* Layer.build(databaseLayer({ url, poolSize: 1 })), DatabasePool)
    yield* Effect.promise(async () => {
      const client = await pool.connect()
      const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid")
      const asked = client.query("SELECT pg_sleep(0.3)")
      const canceled = new Promise((resolve) => {
        pool.query(`SELECT pg_cancel_backend(${rows[0]?.pid})`, resolve)
      })
      // As `PgClient` does when it has waited for the cancellation for too long
      client.release()
      await Promise.all([asked, canceled])
      expect((await pool.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }])
    })
  })

  it.scopedLive("prepares each parameterised statement once per connection", function* () {
    const sql = yield* ownDatabase({ poolSize: 1 })
    for (const value of [1, 2, 3]) {
      expect(yield* sql`SELECT ${value}::int AS value`).toEqual([{ value }])
      expect(yield* sql`SELECT ${value}::int * 2 AS doubled`).toEqual([{ doubled: value * 2 }])
    }
    const prepared = yield* sql<{ statement: string; uses: number }>`
        SELECT statement, (generic_plans + custom_plans)::int AS uses FROM pg_prepared_statements ORDER BY statement`
    expect(prepared).toEqual([
      { statement: "SELECT $1::int * 2 AS doubled", uses: 3 },
      { statement: "SELECT $1::int AS value", uses: 3 }
    ])
  })

  it.scopedLive("fails at the start where nobody listens, and where the password is wrong", function* () {
    const { url } = yield* createTestDatabase()
    const nobody = new URL(Redacted.value(url))
    nobody.port = "1"
    const guess = new URL(Redacted.value(url))
    guess.password = "guess"
    for (const { href } of [nobody, guess]) {
      const error = yield* failureOf(connect({ url: Redacted.make(href), connectTimeout: "2 seconds" }))
      expect(error).toBeInstanceOf(SqlError.SqlError)
      expect(JSON.stringify(error)).not.toContain(new URL(href).password)
    }
  })
})

describe("a database failure", () => {
  const unavailable = {
    "08006": "connection failure",
    "25006": "a standby in place of the primary",
    "25P03": "idle in a transaction for too long",
    "28000": "the account may not enter",
    "28P01": "the password was changed",
    "3D000": "the database is gone",
    "40001": "serialization failure, after all repeats",
    "40P01": "deadlock, after all repeats",
    "53100": "disk full",
    "53200": "out of memory",
    "53300": "too many connections",
    "55000": "the database takes no connections",
    "55P03": "lock not available",
    "57014": "statement timeout",
    "57P01": "shutting down",
    "57P03": "starting up",
    "58030": "I/O error"
  }
  const bugs = {
    "22001": "text too long",
    "22P02": "not a uuid",
    "23505": "unique violation",
    "23514": "check violation",
    "25P02": "in a failed transaction",
    "42601": "syntax error",
    "42P01": "unknown table",
    P0001: "raised by a trigger",
    XX000: "internal error"
  }

  it.scopedLive("is told from a bug by its SQLSTATE", function* () {
    const sql = yield* ownDatabase()
    for (const state of Object.keys(unavailable)) {
      const error = yield* failureOf(raise(sql, state))
      expect([sqlState(error), isUnavailable(error)]).toEqual([state, true])
    }
    for (const state of Object.keys(bugs)) {
      const error = yield* failureOf(raise(sql, state))
      expect([sqlState(error), isUnavailable(error)]).toEqual([state, false])
    }
  })

  it("without a SQLSTATE is one of the connection, also where its code looks like one", () => {
    for (const code of ["ECONNREFUSED", "ECONNRESET", "EPIPE", "EPERM", "ETIMEDOUT", undefined]) {
      const cause = Object.assign(new Error("write failed"), code === undefined ? {} : { code })
      const error = new SqlError.SqlError({ cause, message: "Failed to execute statement" })
      expect([code, isUnavailable(error), sqlState(error)]).toEqual([code, true, undefined])
    }
  })

  it.scopedLive("is 503 while the database is unavailable and a defect where the code is wrong", function* () {
    const sql = yield* ownDatabase()
    const busy = yield* failureOf(orUnavailable(raise(sql, "53300")))
    expect(busy).toBeInstanceOf(ServiceUnavailable)
    expect(busy.cause).toBeInstanceOf(SqlError.SqlError)
    const wrong = yield* Effect.exit(orUnavailable(sql`SELEKT 1`))
    expect(Exit.isFailure(wrong) && wrong.cause._tag === "Die" && wrong.cause.defect).toBeInstanceOf(SqlError.SqlError)
  })

  it.effect("leaves other failures as they are", function* () {
    class OurOwn extends Data.TaggedError("OurOwn") {}
    expect(yield* failureOf(orUnavailable(Effect.fail(new OurOwn())))).toBeInstanceOf(OurOwn)
  })
})
