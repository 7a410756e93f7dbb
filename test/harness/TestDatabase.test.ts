import { expect, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber, Redacted, Schedule, Scope } from "effect"
import { Client } from "pg"
import { inject } from "vitest"
import { createTestDatabase, type TestDatabase } from "./TestDatabase.ts"

const connected = (url: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new Client({ connectionString: url })
      client.on("error", () => {})
      await client.connect()
      return client
    }),
    (client) => Effect.promise(() => client.end())
  )

const query = (url: string, statement: string) =>
  connected(url).pipe(
    Effect.flatMap((client) => Effect.promise(() => client.query<Record<string, unknown>>(statement))),
    Effect.map(({ rows }) => rows),
    Effect.scoped
  )

const ask = ({ url }: TestDatabase, statement: string) => query(Redacted.value(url), statement)

const databasesNamed = (name: string) =>
  query(inject("databaseAdminUrl"), `SELECT datname FROM pg_database WHERE datname = '${name}'`)

const copyIsUnderWay = Effect.map(
  query(
    inject("databaseAdminUrl"),
    "SELECT pid FROM pg_stat_activity WHERE query LIKE 'CREATE DATABASE %' AND state = 'active'"
  ),
  (rows) => rows.length > 0
)

const eventually = (condition: Effect.Effect<boolean>) =>
  Effect.repeat(condition, { until: (holds) => holds, schedule: Schedule.spaced("10 millis") }).pipe(
    Effect.withClock(Clock.make())
  )

it.scoped("gives each test an empty database of its own", () =>
  Effect.gen(function* () {
    const databases = yield* Effect.all(
      Array.from({ length: 4 }, () => createTestDatabase()),
      { concurrency: 4 }
    )
    expect(new Set(databases.map(({ name }) => name)).size).toBe(4)
    yield* Effect.forEach(databases, (database) => ask(database, "CREATE TABLE own (id int)"))
  })
)

it.scoped("drops it when the scope closes, whoever is still connected", () =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const database = yield* Scope.extend(createTestDatabase(), scope)
    yield* connected(Redacted.value(database.url))
    expect(yield* databasesNamed(database.name)).toHaveLength(1)
    yield* Scope.close(scope, Exit.void)
    expect(yield* databasesNamed(database.name)).toEqual([])
  })
)

it.scoped("copies a template, and waits for one that is still in use", () =>
  Effect.gen(function* () {
    const template = yield* createTestDatabase()
    yield* ask(template, "CREATE TABLE seeded AS SELECT 7 AS value")
    const busy = yield* Scope.make()
    yield* Scope.extend(connected(Redacted.value(template.url)), busy)
    const copying = yield* Effect.fork(createTestDatabase({ template: template.name }))
    yield* eventually(copyIsUnderWay)
    yield* Scope.close(busy, Exit.void)
    const copy = yield* Fiber.join(copying)
    expect(yield* ask(copy, "SELECT value FROM seeded")).toEqual([{ value: 7 }])
  })
)

it.scoped("says which template is unknown", () =>
  Effect.gen(function* () {
    const refused = yield* Effect.flip(createTestDatabase({ template: 'no "such"' }))
    expect(String(refused.cause)).toContain('template database "no "such"" does not exist')
  })
)
