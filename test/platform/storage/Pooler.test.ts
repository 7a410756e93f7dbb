import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Logger, Redacted } from "effect"
import {
  type DatabaseOptions,
  databaseLayer,
  reservedConnections,
  transaction
} from "../../../src/platform/storage/Database.ts"
import { tell } from "../../harness/Connection.ts"
import { hasPgBouncer, pgBouncerNote, startPgBouncer } from "../../harness/PgBouncer.ts"
import { createTestDatabase } from "../../harness/TestDatabase.ts"
import { describe, expect, it } from "../../harness/Tests.ts"

const connect = (options: DatabaseOptions) => Layer.build(databaseLayer(options))

const refusal = (options: DatabaseOptions) => Effect.map(Effect.flip(connect(options)), ({ message }) => message)

/** What begins a connection of the service besides its name. */
const startSettings = "statement_timeout, idle_in_transaction_session_timeout"

const logged = <A, E, R>(effect: Effect.Effect<A, E, R>) => {
  const lines: Array<string> = []
  const logger = Logger.make(({ message }) => void lines.push(String(message)))
  return Effect.as(Effect.provide(effect, Logger.replace(Logger.defaultLogger, logger)), lines)
}

describe("a database without a pooler", () => {
  it.scopedLive("is told from one behind a pooler, and needs no other address", function* () {
    const { url } = yield* createTestDatabase()
    expect(yield* logged(connect({ url }))).toEqual([])
    expect(yield* logged(connect({ url, directUrl: url }))).toEqual([expect.stringContaining("have no time limit")])
  })

  it.scopedLive("is the same as the one at the direct address, or the start is refused", function* () {
    const [one, other] = yield* Effect.all([createTestDatabase(), createTestDatabase()])
    expect(yield* refusal({ url: one.url, directUrl: other.url })).toContain("another database")
    const nobody = Redacted.make("postgresql://nobody:secretword@127.0.0.1:1/payments")
    const message = yield* refusal({ url: one.url, directUrl: nobody })
    expect(message).toContain("DATABASE_DIRECT_URL points to 127.0.0.1:1")
    expect(message).not.toContain("secretword")
  })
})

describe.skipIf(!hasPgBouncer)(`a pooler that assigns connections by transaction${pgBouncerNote}`, () => {
  it.scopedLive("is refused without a direct address, whatever it thinks of a connection's settings", function* () {
    const { url } = yield* createTestDatabase()
    const strict = yield* startPgBouncer(url, { pool_mode: "transaction" })
    const lenient = yield* startPgBouncer(url, {
      pool_mode: "transaction",
      ignore_startup_parameters: startSettings
    })
    // Used in turns, one after another, and one connection for all
    const inTurns = yield* startPgBouncer(url, {
      pool_mode: "transaction",
      ignore_startup_parameters: startSettings,
      server_round_robin: 1
    })
    const narrow = yield* startPgBouncer(url, {
      pool_mode: "transaction",
      ignore_startup_parameters: startSettings,
      default_pool_size: 1
    })
    for (const pooler of [strict, lenient, inTurns, narrow]) {
      const message = yield* refusal({ url: Redacted.make(pooler.url) })
      expect(message).toContain("connection pooler")
      expect(message).toMatch(/set DATABASE_DIRECT_URL/i)
      expect(message).not.toContain(new URL(pooler.url).password)
      const twice = yield* refusal({ url, directUrl: Redacted.make(pooler.url) })
      expect(twice).toMatch(/DATABASE_DIRECT_URL leads to a connection pooler|pooler that refuses the time limits/)
    }
  })

  it.scopedLive("is refused if it gives each statement another connection", function* () {
    const { url } = yield* createTestDatabase()
    const pooler = yield* startPgBouncer(url, { pool_mode: "statement" })
    expect(yield* refusal({ url: Redacted.make(pooler.url), directUrl: url })).toContain("pool_mode = transaction")
  })

  it.scopedLive("carries statements and transactions, while what needs a session goes past it", function* () {
    const { url } = yield* createTestDatabase()
    // Fewer connections to the server than the service has to the pooler
    const pooler = yield* startPgBouncer(url, { pool_mode: "transaction", default_pool_size: 2 })
    const context = yield* connect({ url: Redacted.make(pooler.url), directUrl: url, poolSize: 8 })
    const sql = Context.get(context, SqlClient.SqlClient)
    yield* sql`CREATE TABLE counter AS SELECT 0 AS value`
    const add = (by: number) =>
      transaction(sql)(Effect.zipRight(sql`SELECT 1`, sql`UPDATE counter SET value = value + ${by}`))
    yield* Effect.forEach(
      Array.from({ length: 60 }, () => 1),
      add,
      { concurrency: 16 }
    )
    expect(yield* sql`SELECT value FROM counter WHERE value = ${60}`).toEqual([{ value: 60 }])

    const queue = yield* Effect.provide(reservedConnections(1, { planOnce: true }), context)
    const unbounded = yield* Effect.provide(reservedConnections(1, { unbounded: true }), context)
    expect(yield* queue`SHOW plan_cache_mode`).toEqual([{ plan_cache_mode: "force_generic_plan" }])
    expect(yield* queue`SHOW statement_timeout`).toEqual([{ statement_timeout: "8s" }])
    expect(yield* unbounded`SHOW statement_timeout`).toEqual([{ statement_timeout: "0" }])
    // Nobody else has got any of that
    for (let round = 0; round < 10; round++) {
      expect(yield* sql`SHOW plan_cache_mode`).toEqual([{ plan_cache_mode: "auto" }])
    }
  })

  it.scopedLive("has its time limits from the role, and the start says if there are none", function* () {
    const { name, url } = yield* createTestDatabase()
    const pooler = yield* startPgBouncer(url, { pool_mode: "transaction" })
    const options = { url: Redacted.make(pooler.url), directUrl: url }
    expect(yield* logged(Effect.scoped(connect(options)))).toEqual([expect.stringContaining("ALTER ROLE")])
    yield* tell(url, `ALTER ROLE CURRENT_USER IN DATABASE ${name} SET statement_timeout = '8s'`)
    const again = yield* startPgBouncer(url, { pool_mode: "transaction" })
    expect(yield* logged(connect({ ...options, url: Redacted.make(again.url) }))).toEqual([])
  })
})

describe.skipIf(!hasPgBouncer)(`a pooler that keeps sessions${pgBouncerNote}`, () => {
  it.scopedLive("needs no direct address", function* () {
    const { url } = yield* createTestDatabase()
    const pooler = yield* startPgBouncer(url, { pool_mode: "session", ignore_startup_parameters: startSettings })
    const context = yield* connect({ url: Redacted.make(pooler.url) })
    const queue = yield* Effect.provide(reservedConnections(1, { planOnce: true }), context)
    expect(yield* queue`SHOW plan_cache_mode`).toEqual([{ plan_cache_mode: "force_generic_plan" }])
  })
})
