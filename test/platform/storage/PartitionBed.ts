import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Context, Deferred, type Duration, Effect, Fiber, Layer, Redacted } from "effect"
import { Cipher } from "../../../src/platform/kit/crypto/Cipher.ts"
import { KeyedHash } from "../../../src/platform/kit/crypto/KeyedHash.ts"
import { EndpointId, OrganizationId } from "../../../src/platform/kit/Ids.ts"
import { databaseLayer } from "../../../src/platform/storage/Database.ts"
import { eventuallyIs } from "../../harness/Eventually.ts"
import type { TestDatabase } from "../../harness/TestDatabase.ts"

/** What the tests of tables by day and by month share: a tenant, and who holds them up. */

export const millisPerDay = 24 * 3600 * 1000

export const daysAgo = (days: number) => new Date(Date.now() - days * millisPerDay)

export const connect = ({ url }: TestDatabase, statementTimeout: Duration.DurationInput = "15 seconds", poolSize = 4) =>
  Effect.map(Layer.build(databaseLayer({ url, poolSize, statementTimeout })), Context.get(SqlClient.SqlClient))

/** The keyed hash of a process whose master key is the tests'. */
export const keyedHash = Layer.provide(
  KeyedHash.layer,
  Cipher.layer([{ id: "test", key: Redacted.make(new Uint8Array(32).fill(7)) }])
)

export const on = <A, E, R>(sql: SqlClient.SqlClient, effect: Effect.Effect<A, E, R>) =>
  Effect.provideService(effect, SqlClient.SqlClient, sql)

export const tenant = { organizationId: OrganizationId.make(randomUUID()), environment: "sandbox" } as const
export const endpointId = EndpointId.make(randomUUID())
export const secretId = randomUUID()

export const makeTenant = (sql: SqlClient.SqlClient) =>
  Effect.all([
    sql`INSERT INTO payments.organizations (id, name) VALUES (${tenant.organizationId}, 'Bakery')`,
    sql`INSERT INTO payments.workspaces (organization_id, environment) VALUES (${tenant.organizationId}, 'sandbox')`,
    sql`
      INSERT INTO payments.endpoints (organization_id, environment, id, name, url)
      VALUES (${tenant.organizationId}, 'sandbox', ${endpointId}, 'Shop', 'https://shop.example.com/hook')`,
    sql`
      INSERT INTO payments.endpoint_secrets (organization_id, environment, id, endpoint_id, master_key_id, ciphertext)
      VALUES (${tenant.organizationId}, 'sandbox', ${secretId}, ${endpointId}, 'k', '\\x00')`
  ])

/** Begins a transaction that reads a table, like a `pg_dump`, and goes on until `end`. */
export const readOn = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, tables: string) {
  const [begun, ended] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const reader = yield* sql
    .withTransaction(
      Effect.zipRight(
        sql`SELECT count(*) FROM ${sql.literal(tables)}`,
        Effect.zipRight(Deferred.succeed(begun, undefined), Deferred.await(ended))
      )
    )
    .pipe(Effect.fork)
  yield* Deferred.await(begun)
  return { end: Effect.zipRight(Deferred.succeed(ended, undefined), Fiber.join(reader)) }
})

/** Waits until a statement whose text is like this waits for a lock. */
export const waitsForLock = (sql: SqlClient.SqlClient, what: string, text: string) =>
  eventuallyIs(
    what,
    sql`
      SELECT 1 FROM pg_stat_activity
      WHERE datname = current_database() AND query LIKE ${text} AND wait_event_type = 'Lock' AND pid <> pg_backend_pid()`,
    (rows) => rows.length > 0
  )
