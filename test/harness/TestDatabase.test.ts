import { expect, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber, Schedule, Scope } from "effect"
import { inject } from "vitest"
import { ask, connectionTo } from "./Connection.ts"
import { createTestDatabase } from "./TestDatabase.ts"

const databasesNamed = (name: string) =>
  ask(inject("databaseAdminUrl"), `SELECT datname FROM pg_database WHERE datname = '${name}'`)

const copyIsUnderWay = Effect.map(
  ask(
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
    yield* Effect.forEach(databases, (database) => ask(database.url, "CREATE TABLE own (id int)"))
  })
)

it.scoped("drops it when the scope closes, whoever is still connected", () =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const database = yield* Scope.extend(createTestDatabase(), scope)
    yield* connectionTo(database.url)
    expect(yield* databasesNamed(database.name)).toHaveLength(1)
    yield* Scope.close(scope, Exit.void)
    expect(yield* databasesNamed(database.name)).toEqual([])
  })
)

it.scoped("copies a template, and waits for one that is still in use", () =>
  Effect.gen(function* () {
    const template = yield* createTestDatabase()
    yield* ask(template.url, "CREATE TABLE seeded AS SELECT 7 AS value")
    const busy = yield* Scope.make()
    yield* Scope.extend(connectionTo(template.url), busy)
    const copying = yield* Effect.fork(createTestDatabase({ template: template.name }))
    yield* eventually(copyIsUnderWay)
    yield* Scope.close(busy, Exit.void)
    const copy = yield* Fiber.join(copying)
    expect(yield* ask(copy.url, "SELECT value FROM seeded")).toEqual([{ value: 7 }])
  })
)

it.scoped("says which template is unknown", () =>
  Effect.gen(function* () {
    const refused = yield* Effect.flip(createTestDatabase({ template: 'no "such"' }))
    expect(String(refused.cause)).toContain('template database "no "such"" does not exist')
  })
)
