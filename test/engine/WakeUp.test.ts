import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Option, type Redacted } from "effect"
import { WakeUp } from "../../src/engine/queue/WakeUp.ts"
import { databaseLayer } from "../../src/platform/storage/Database.ts"
import { eventually, eventuallyTrue } from "../harness/Eventually.ts"
import { createTestDatabase } from "../harness/TestDatabase.ts"
import { expect, it } from "../harness/Tests.ts"

const startProcess = Effect.fnUntraced(function* (url: Redacted.Redacted) {
  const context = yield* Layer.build(Layer.provideMerge(WakeUp.layer, databaseLayer({ url, poolSize: 2 })))
  return { wakeUp: Context.get(context, WakeUp), sql: Context.get(context, SqlClient.SqlClient) }
})

/** Counts how often a process is woken, as its worker would be. */
const countWakes = Effect.fnUntraced(function* (wakeUp: WakeUp["Type"], hasRoom?: () => boolean) {
  const wakes = { count: 0 }
  yield* wakeUp.await(hasRoom).pipe(
    Effect.tap(() => Effect.sync(() => wakes.count++)),
    Effect.forever,
    Effect.forkScoped
  )
  return wakes
})

/** The backends that listen, once there are as many. */
const listening = (sql: SqlClient.SqlClient, count: number, others: ReadonlyArray<number> = []) =>
  eventually(
    `${count} listeners`,
    Effect.map(
      sql<{ pid: number }>`
        SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND state = 'idle' AND query LIKE 'LISTEN %'`,
      (rows) => {
        const found = rows.map(({ pid }) => pid).filter((pid) => !others.includes(pid))
        return found.length === count ? Option.some(found) : Option.none()
      }
    )
  )

/** Starts two processes on a new database, and waits until both listen. */
const twoListening = Effect.gen(function* () {
  const { url } = yield* createTestDatabase()
  const [announcer, other] = [yield* startProcess(url), yield* startProcess(url)]
  return { announcer, other, listeners: yield* listening(announcer.sql, 2) }
})

it.scopedLive("an announcement wakes the other processes if nothing in its own process is waiting", function* () {
  const { announcer, other } = yield* twoListening
  const wakes = yield* countWakes(other.wakeUp)
  // Beginning to listen counts as a wake-up: something may have been missed before
  yield* eventuallyTrue("its first", () => wakes.count === 1)
  yield* announcer.wakeUp.announce
  yield* eventuallyTrue("the announced one", () => wakes.count === 2)
})

it.scopedLive("an announcement is one's own worker's where it is waiting; nobody else is told", function* () {
  const { announcer, other } = yield* twoListening
  const own = yield* countWakes(announcer.wakeUp)
  const others = yield* countWakes(other.wakeUp)
  yield* eventuallyTrue("their first ones", () => own.count === 1 && others.count === 1)
  for (let round = 2; round <= 6; round += 1) {
    yield* announcer.wakeUp.announce
    yield* eventuallyTrue("one's own", () => own.count === round)
  }
  // What is sent now arrives after what was sent before
  yield* other.sql`SELECT pg_notify('connected_payments_payments', 'somebody else')`
  yield* eventuallyTrue("what a third one sent", () => own.count === 7 && others.count === 2)
})

it.scopedLive("an announcement wakes the others as well if one's own worker waits, but has no room", function* () {
  const { announcer, other } = yield* twoListening
  const own = yield* countWakes(announcer.wakeUp, () => false)
  const others = yield* countWakes(other.wakeUp)
  yield* eventuallyTrue("their first ones", () => own.count === 1 && others.count === 1)
  yield* announcer.wakeUp.announce
  yield* eventuallyTrue("both", () => own.count === 2 && others.count === 2)
})

it.scopedLive("what was announced while nobody waited is not lost", function* () {
  const { url } = yield* createTestDatabase()
  const { sql, wakeUp } = yield* startProcess(url)
  yield* listening(sql, 1)
  yield* wakeUp.await()
  yield* wakeUp.announce
  yield* wakeUp.announce
  yield* wakeUp.await()
})

it.scopedLive("a listener that lost its connection makes a new one, and takes the gap for a wake-up", function* () {
  const { announcer, listeners: before, other } = yield* twoListening
  const wakes = yield* countWakes(other.wakeUp)
  yield* eventuallyTrue("its first", () => wakes.count === 1)
  for (let loss = 1; loss <= 2; loss += 1) {
    const lost = yield* listening(announcer.sql, 2)
    yield* announcer.sql`SELECT pg_terminate_backend(pid) FROM unnest(${lost}::int[]) AS pid`
    yield* listening(announcer.sql, 2, [...before, ...lost])
    yield* eventuallyTrue("a wake-up for what may have been missed", () => wakes.count >= 1 + loss)
  }
  const known = wakes.count
  yield* announcer.wakeUp.announce
  yield* eventuallyTrue("the announced one", () => wakes.count > known)
})

it.scopedLive("all processes' listeners end with them", function* () {
  const { url } = yield* createTestDatabase()
  const { sql } = yield* startProcess(url)
  yield* Effect.scoped(
    Effect.gen(function* () {
      yield* startProcess(url)
      expect(yield* listening(sql, 2)).toHaveLength(2)
    })
  )
  yield* listening(sql, 1)
})
