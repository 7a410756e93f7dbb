import { randomBytes } from "node:crypto"
import { Effect, Fiber, Redacted } from "effect"
import { type Client, escapeIdentifier, escapeLiteral } from "pg"
import { connectionTo } from "../harness/Connection.ts"
import { hasOldestPostgres, oldestPostgresNote, startOldestPostgres } from "../harness/OldestPostgres.ts"
import { hasPgBouncer, pgBouncerNote, startPgBouncer } from "../harness/PgBouncer.ts"
import { createTestDatabase } from "../harness/TestDatabase.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { integrator, payWithOneFailure } from "../process/Integrator.ts"
import { emptyDataDirectory, type LocalFile, startService, stop } from "../process/ServiceProcess.ts"

// The whole way on databases that are not the developer's own: as a role with few rights, and through a pooler

/** An empty database and a role that may do nothing but create the service's schema in it, as the guide says. */
const ordinaryRole = Effect.gen(function* () {
  const { name, url } = yield* createTestDatabase()
  const role = `role_${randomBytes(8).toString("hex")}`
  const password = randomBytes(16).toString("hex")
  const admin = yield* connectionTo(Redacted.value(url))
  const run = (sql: string) => Effect.promise(() => admin.query(sql))
  const database = escapeIdentifier(name)
  yield* Effect.acquireRelease(
    run(
      `CREATE ROLE ${role} LOGIN PASSWORD ${escapeLiteral(password)}
       NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS NOINHERIT`
    ),
    () => Effect.promise(() => admin.query(`DROP OWNED BY ${role} CASCADE; DROP ROLE ${role}`))
  )
  yield* run(`REVOKE ALL ON DATABASE ${database} FROM PUBLIC`)
  yield* run("REVOKE ALL ON SCHEMA public FROM PUBLIC")
  yield* run(`GRANT CONNECT, CREATE ON DATABASE ${database} TO ${role}`)
  const own = new URL(Redacted.value(url))
  own.username = role
  own.password = password
  return { admin, database, role, run, url: own.href }
})

/** A payment whose event is refused once, and delivered by the second attempt. */
const payAndDeliver = (local: LocalFile, admin: Client) =>
  Effect.gen(function* () {
    const { backend, delivery } = yield* payWithOneFailure(local, admin)
    expect(delivery).toMatchObject({
      attemptCount: 2,
      attempts: [
        { number: 1, httpStatus: 500 },
        { number: 2, httpStatus: 204 }
      ]
    })
    const repeated = { key: local.apiKey, headers: { "idempotency-key": crypto.randomUUID() }, body: { name: "Tea" } }
    const [once, again] = [
      yield* backend.call("POST", "/provider/products", undefined, repeated),
      yield* backend.call("POST", "/provider/products", undefined, repeated)
    ]
    expect([once.status, again.status, again.headers.get("idempotent-replayed")]).toEqual([200, 200, "true"])
    expect(again.text).toBe(once.text)
  })

describe("the service as an ordinary role", () => {
  it.scopedLive("creates its schema, and then needs nothing but that", function* () {
    const { admin, database, role, run, url } = yield* ordinaryRole
    const directory = yield* emptyDataDirectory
    expect((yield* stop(yield* startService(directory, { DATABASE_URL: url }), "SIGTERM")).code).toBe(0)
    yield* run(`REVOKE CREATE ON DATABASE ${database} FROM ${role}`)
    const { local } = yield* startService(directory, { DATABASE_URL: url })
    yield* payAndDeliver(local, admin)
    // All of it belongs to the role, and no extension was needed
    const owners = yield* run(
      "SELECT DISTINCT pg_get_userbyid(relowner) AS owner FROM pg_class WHERE relnamespace = 'payments'::regnamespace"
    )
    expect(owners.rows).toEqual([{ owner: role }])
    const extensions = yield* run("SELECT extname FROM pg_extension ORDER BY extname")
    expect(extensions.rows).toEqual([{ extname: "plpgsql" }])
  })
})

describe.skipIf(!hasOldestPostgres)(`the service on PostgreSQL 15, the oldest it supports${oldestPostgresNote}`, () => {
  it.scopedLive(
    "migrates, takes notifications, delivers, retries, and keeps answers of repeated requests",
    function* () {
      const url = yield* startOldestPostgres
      const { local } = yield* startService(yield* emptyDataDirectory, { DATABASE_URL: url })
      yield* payAndDeliver(local, yield* connectionTo(url))
    }
  )
})

describe.skipIf(!hasPgBouncer)(
  `the service behind a pooler that assigns connections by transaction${pgBouncerNote}`,
  () => {
    it.scopedLive("migrates, takes notifications, delivers with two workers, retries, limits requests", function* () {
      const { admin, role, url } = yield* ordinaryRole
      // Fewer connections than two processes have, so that each meets what others leave behind
      const pooler = yield* startPgBouncer(Redacted.make(url), { pool_mode: "transaction", default_pool_size: 4 })
      const settings = {
        DATABASE_URL: pooler.url,
        DATABASE_DIRECT_URL: url,
        RATE_LIMIT_PER_MINUTE: "200",
        MASTER_KEYS: `shared:${randomBytes(32).toString("base64")}`
      }
      const homes = yield* Effect.all([emptyDataDirectory, emptyDataDirectory])
      const { local } = yield* startService(homes[0], settings)
      const second = yield* Effect.forkScoped(startService(homes[1], { ...settings, ROLES: "worker" }))
      yield* payAndDeliver(local, admin)
      yield* Fiber.join(second)
      yield* payAndDeliver(local, admin)

      const backend = integrator(local)
      const answers = yield* Effect.all(
        Array.from({ length: 300 }, () => backend.call("GET", "/integrations/endpoints")),
        { concurrency: 16 }
      )
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 429]))
      // Nothing but a few sessions goes past it
      const { rows } = yield* Effect.promise(() =>
        admin.query<{ direct: number }>(
          `SELECT count(*)::int AS direct FROM pg_stat_activity WHERE usename = '${role}'`
        )
      )
      expect(rows[0]?.direct).toBeLessThanOrEqual(4 + 2 * 5)
      expect(pooler.log()).not.toMatch(/ERROR|prepared statement/)
    })
  }
)
