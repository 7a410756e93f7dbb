import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Redacted } from "effect"
import { escapeIdentifier } from "pg"
import { inject } from "vitest"
import { databaseLayer, reservedConnections } from "../../../src/platform/storage/Database.ts"
import { migrate } from "../../../src/platform/storage/Migrations.ts"
import { tell } from "../../harness/Connection.ts"
import { hasPgBouncer, pgBouncerNote, startPgBouncer } from "../../harness/PgBouncer.ts"
import { createMigratedDatabase, createTestDatabase } from "../../harness/TestDatabase.ts"
import { onService, TestService } from "../../harness/TestService.ts"
import { describe, expect, it } from "../../harness/Tests.ts"
import { accepted, makeSubscriber, notification, notify } from "../../inbound/Notifications.ts"

/** Defaults that statements would fail with, or answer something else; those that are of no concern come last. */
const odd = [
  "DateStyle = 'German'",
  "array_nulls = off",
  "extra_float_digits = -15",
  "standard_conforming_strings = off",
  "default_transaction_isolation = 'repeatable read'",
  "jit = on",
  "jit_above_cost = 0",
  "search_path = ''",
  "TimeZone = 'Pacific/Kiritimati'",
  "IntervalStyle = 'sql_standard'",
  "bytea_output = 'escape'"
]

const setDefaults = (name: string, url: string | Redacted.Redacted, settings: ReadonlyArray<string>) =>
  tell(url, ...settings.map((setting) => `ALTER DATABASE ${escapeIdentifier(name)} SET ${setting}`))

const refusal = (url: Redacted.Redacted, directUrl?: Redacted.Redacted) =>
  Effect.flip(Effect.provide(migrate, databaseLayer(directUrl === undefined ? { url } : { url, directUrl }))).pipe(
    Effect.map(({ message }) => message)
  )

onService({ roles: { api: true, worker: false } })("a database with other defaults", (it) => {
  it.effect("stores and shows notifications, and its transactions see what is committed meanwhile", function* () {
    const { options, request, sql } = yield* TestService
    const url = Redacted.value(options.databaseUrl)
    yield* setDefaults(new URL(url).pathname.slice(1), url, odd)
    // The service's connections from before are replaced
    yield* tell(
      url,
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    yield* Effect.retry(sql`SELECT 1`, { times: 100 })
    const { id, tenant } = yield* makeSubscriber()
    yield* accepted(notify(notification(tenant.accountId)))
    const path = `/v2/organizations/${tenant.id}/integrations`
    for (const read of [`/deliveries`, `/endpoints/${id}`, `/events`, `/endpoints`, `/statistics`]) {
      const answer = yield* request("GET", `${path}${read}`, { key: tenant.key })
      expect(answer.status, answer.text).toBe(200)
    }
    const { json } = yield* request("GET", `${path}/deliveries`, { key: tenant.key })
    expect(json["data"]).toMatchObject([{ state: "queued", createdAt: expect.stringMatching(/^20\d\d-/) }])
    expect(yield* sql`SHOW jit`).toEqual([{ jit: "off" }])
    expect(yield* sql.withTransaction(sql`SHOW transaction_isolation`)).toEqual([
      { transaction_isolation: "read committed" }
    ])
  })
})

describe("a database that the service can't work with", () => {
  it.scopedLive.each(["LATIN1", "SQL_ASCII"])("is refused at the start if its encoding is %s", function* (encoding) {
    const admin = inject("databaseAdminUrl")
    const name = `test_${randomUUID().replaceAll("-", "")}`
    yield* Effect.acquireRelease(
      tell(admin, `CREATE DATABASE ${name} ENCODING '${encoding}' LOCALE 'C' TEMPLATE template0`),
      () => tell(admin, `DROP DATABASE ${name} WITH (FORCE)`)
    )
    const url = new URL(admin)
    url.pathname = `/${name}`
    const message = yield* refusal(Redacted.make(url.href))
    expect(message).toContain(encoding)
    expect(message).toContain("UTF8")
  })

  it.scopedLive("is refused with a team's own connections that lack a setting", function* () {
    const { name, url } = yield* createMigratedDatabase
    yield* setDefaults(name, url, ["default_transaction_isolation = 'repeatable read'"])
    const refused = yield* Effect.flip(Effect.provide(migrate, PgClient.layer({ url })))
    expect(refused.message).toContain("default_transaction_isolation = 'repeatable read'")
    expect(refused.message).toContain("'read committed'")
  })
})

describe.skipIf(!hasPgBouncer)(`behind a pooler that assigns connections by transaction${pgBouncerNote}`, () => {
  it.scopedLive.each(["DateStyle = 'German'", "array_nulls = off", "default_transaction_isolation = 'serializable'"])(
    "a start is refused with %s, and the message says what to set",
    function* (setting) {
      const { name, url } = yield* createMigratedDatabase
      yield* setDefaults(name, url, [setting])
      const pooler = yield* startPgBouncer(url, { pool_mode: "transaction" })
      const message = yield* refusal(Redacted.make(pooler.url), url)
      expect(message).toContain(`ALTER ROLE … SET ${setting.split(" ")[0]} = `)
      // Sessions have their own
      const direct = yield* Layer.build(databaseLayer({ url: Redacted.make(pooler.url), directUrl: url }))
      const sessions = yield* Effect.provide(reservedConnections(1, { session: true }), direct)
      expect(yield* sessions`SHOW DateStyle`).toEqual([{ DateStyle: expect.stringMatching(/^ISO/) }])
    }
  )

  it.scopedLive("a start needs nothing but usual defaults", function* () {
    const { url } = yield* createTestDatabase()
    const pooler = yield* startPgBouncer(url, { pool_mode: "transaction" })
    const context = yield* Layer.build(databaseLayer({ url: Redacted.make(pooler.url), directUrl: url }))
    yield* Effect.provide(migrate, context)
    const sql = Context.get(context, SqlClient.SqlClient)
    expect(yield* sql`SELECT count(*)::int AS count FROM payments.organizations`).toEqual([{ count: 0 }])
  })
})
