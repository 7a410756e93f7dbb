import { createServer } from "node:net"
import { SqlClient } from "@effect/sql"
import { Context, Effect, Exit, Fiber, Layer, Redacted } from "effect"
import pg from "pg"
import { afterAll, beforeAll, vi } from "vitest"
import { readDatabaseUrl } from "../../../src/platform/settings/DatabaseUrl.ts"
import { databaseLayer } from "../../../src/platform/storage/Database.ts"
import { Hosts } from "../../../src/platform/storage/Hosts.ts"
import { cuttingProxy } from "../../harness/CuttingProxy.ts"
import { eventually } from "../../harness/Eventually.ts"
import { listening } from "../../harness/Listening.ts"
import { createTestDatabase } from "../../harness/TestDatabase.ts"
import { describe, expect, it } from "../../harness/Tests.ts"

// For this file alone: other files run in the same process
const { Client, Pool } = pg
beforeAll(() => import("../../faults/preload/Timeouts.ts"))
afterAll(() => {
  Object.assign(pg, { Client, Pool })
})

const pidOf = (sql: SqlClient.SqlClient) =>
  Effect.map(sql<{ pid: number }>`SELECT pg_backend_pid() AS pid`, ([row]) => row?.pid)

const silentHost = Effect.suspend(() => listening(createServer()))

describe("a pool of connections", () => {
  const connect = (url: string, poolSize = 1) =>
    Effect.map(Layer.build(databaseLayer({ url: Redacted.make(url), poolSize })), Context.get(SqlClient.SqlClient))

  it.scopedLive("does not wait for hosts that say nothing or are not there", function* () {
    const { url } = yield* createTestDatabase()
    const port = yield* silentHost
    const { host } = new URL(Redacted.value(url))
    const several = Redacted.value(url).replace(host, `127.0.0.1:${port},127.0.0.1:1,${host}`)
    // So that the time for which a host is waited for never passes
    yield* Effect.acquireUseRelease(
      Effect.sync(() => vi.useFakeTimers({ toFake: ["setInterval"] })),
      () => Effect.flatMap(connect(several), pidOf),
      () => Effect.sync(() => vi.useRealTimers())
    )
  })

  it.scopedLive("is cut from a server that falls silent as soon as another one has taken its place", function* () {
    const { url } = yield* createTestDatabase()
    const [line, other] = [yield* cuttingProxy(Redacted.value(url)), yield* cuttingProxy(Redacted.value(url))]
    other.cut()
    const both = `${new URL(line.url).host},${new URL(other.url).host}`
    const sql = yield* connect(Redacted.value(url).replace(new URL(Redacted.value(url)).host, both))
    yield* pidOf(sql)
    line.stall()
    other.mend()
    const unheard = yield* Effect.fork(pidOf(sql))
    const exit = yield* eventually("the end of a statement that has 90 seconds", Fiber.poll(unheard))
    expect(Exit.isFailure(exit)).toBe(true)
    expect(yield* pidOf(sql)).toBeGreaterThan(0)
  })

  it.scopedLive("is cut from a server that falls silent before the watch has reached it", function* () {
    const { url } = yield* createTestDatabase()
    const [line, other] = [yield* cuttingProxy(Redacted.value(url)), yield* cuttingProxy(Redacted.value(url))]
    other.cut()
    const both = `${new URL(line.url).host},${new URL(other.url).host}`
    const target = yield* readDatabaseUrl(Redacted.value(url).replace(new URL(Redacted.value(url)).host, both), "write")
    const hosts = new Hosts(target, "silent")
    const client = new (hosts.clientsOf(pg.Client))({ connectionString: target.url })
    yield* Effect.promise(() => client.connect())
    line.stall()
    other.mend()
    const unheard = yield* Effect.fork(Effect.tryPromise(() => client.query("SELECT 1")))
    yield* Effect.forkScoped(hosts.watch(pg.Client))
    const exit = yield* eventually("the end of a statement without a time limit", Fiber.poll(unheard))
    expect(Exit.isFailure(exit)).toBe(true)
  })

  it.scopedLive("does not use a connection again whose server became read-only, and says why no other", function* () {
    const { name, url } = yield* createTestDatabase()
    const sql = yield* connect(Redacted.value(url))
    const first = yield* pidOf(sql)
    expect(yield* pidOf(sql)).toBe(first)
    yield* sql`CREATE TABLE written (at int)`

    // Refused by the session alone, as behind a proxy that has moved on
    yield* sql
      .withTransaction(Effect.zipRight(sql`SET TRANSACTION READ ONLY`, sql`INSERT INTO written VALUES (1)`))
      .pipe(Effect.flip)
    const second = yield* pidOf(sql)
    expect(second).not.toBe(first)

    // Said by the server itself
    yield* sql`SET default_transaction_read_only = on`
    expect(yield* pidOf(sql)).not.toBe(second)

    // All sessions that begin from now on
    const alter = (value: string) => sql.unsafe(`ALTER DATABASE ${name} SET default_transaction_read_only = ${value}`)
    yield* alter("on")
    yield* sql`SET default_transaction_read_only = on`
    expect(String((yield* Effect.flip(pidOf(sql))).cause)).toContain("the server only allows reading")
    expect((yield* Effect.flip(connect(Redacted.value(url)))).message).toContain("the server only allows reading")
    // Who says so takes what is there
    const reader = yield* connect(`${Redacted.value(url)}?target_session_attrs=any`)
    expect(yield* pidOf(reader)).toBeGreaterThan(0)
    yield* reader`SET default_transaction_read_only = off`
    yield* reader.unsafe(`ALTER DATABASE ${name} SET default_transaction_read_only = off`)
    yield* sql`INSERT INTO written VALUES (2)`
    expect(yield* sql`SELECT at FROM written`).toEqual([{ at: 2 }])
  })
})
