import { SqlClient } from "@effect/sql"
import { Context, Duration, Effect, Layer } from "effect"
import { Retention } from "../../../src/destinations/deliveries/Retention.ts"
import { makeEndpointsRepo } from "../../../src/destinations/endpoints/EndpointsRepo.ts"
import { makeAuditCleaning } from "../../../src/identity/audit/AuditRepo.ts"
import { QueueBench } from "../../engine/QueueBench.ts"
import { expect, layer } from "../../harness/Tests.ts"

/** In each table ten rows are old and thirty are not, spread over partitions in which they have the same places. */
const tables = {
  audit_log: {
    by: "id",
    insert: `
      INSERT INTO payments.audit_log
        (organization_id, id, author_kind, author_id, action, target_type, target_id, request_id, at)
      SELECT $1, gen_random_uuid(), 'operator', 'test', 'a', 't', 't', 'r', now() - age FROM rows`
  },
  skipped_events: {
    by: "event_id",
    insert: `
      INSERT INTO payments.skipped_events
        (organization_id, environment, endpoint_id, event_id, event_key, type, provider_event_id, created_at)
      SELECT $1, 'sandbox', gen_random_uuid(), 'svc_evt_x' || n, uuidv7(), 'payment.succeeded', 'evt', now() - age FROM rows`
  },
  endpoint_secrets: {
    by: "id",
    insert: `
      INSERT INTO payments.endpoint_secrets
        (organization_id, environment, id, endpoint_id, master_key_id, ciphertext, retired_at)
      SELECT $1, 'sandbox', gen_random_uuid(), gen_random_uuid(), 'test', '\\x00', CASE WHEN n <= 10 THEN now() - age END
      FROM rows`
  }
} as const

layer(QueueBench.layer)("on hash partitions", (it) => {
  it.scoped("what removes old rows removes those and no others", function* () {
    const { makeEndpoint, sql } = yield* QueueBench
    const { organizationId } = yield* makeEndpoint
    const names = Object.entries(tables)
    for (const [table, { by, insert }] of names) {
      yield* sql.unsafe(`ALTER TABLE payments.${table} RENAME TO ${table}_whole`)
      yield* sql.unsafe(`
          CREATE TABLE payments.${table} (LIKE payments.${table}_whole INCLUDING DEFAULTS) PARTITION BY HASH (${by})`)
      for (const part of [0, 1, 2, 3]) {
        yield* sql.unsafe(`
            CREATE TABLE payments.${table}_${part} PARTITION OF payments.${table}
            FOR VALUES WITH (MODULUS 4, REMAINDER ${part})`)
      }
      yield* sql.unsafe(
        `WITH rows AS (
            SELECT n, CASE WHEN n <= 10 THEN interval '1000 days' ELSE interval '1 minute' END AS age
            FROM generate_series(1, 40) AS n
          ) ${insert}`,
        insert.includes("$1") ? [organizationId] : []
      )
    }
    const provided = Layer.succeed(SqlClient.SqlClient, sql)
    const keepFor = Duration.days(30)
    const services = yield* Effect.provide(Layer.build(Retention.layer({ keepFor })), provided)
    yield* Context.get(services, Retention).clean
    yield* Effect.provide(Effect.flatten(makeAuditCleaning(keepFor)), provided)
    const erased = yield* Effect.flatMap(makeEndpointsRepo, (repo) => repo.eraseRetiredSecrets(100)).pipe(
      Effect.provide(provided)
    )
    expect(erased).toBe(10)
    for (const [table] of names) {
      expect([table, yield* sql.unsafe(`SELECT count(*)::int AS rows FROM payments.${table}`)]).toEqual([
        table,
        [{ rows: 30 }]
      ])
    }
  })
})
