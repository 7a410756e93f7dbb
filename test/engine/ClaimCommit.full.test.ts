import { SqlClient } from "@effect/sql"
import { describe, expect } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Queue } from "../../src/engine/queue/Queue.ts"
import { databaseLayer } from "../../src/platform/storage/Database.ts"
import { startEmbeddedPostgres } from "../../src/platform/storage/embedded/EmbeddedPostgres.ts"
import { migrate } from "../../src/platform/storage/Migrations.ts"
import { eventuallyIs } from "../harness/Eventually.ts"
import { it } from "../harness/Tests.ts"
import { temporaryDirectory } from "../platform/storage/fixtures/temporaryDirectory.ts"
import { idle } from "./QueueBench.ts"

describe("a claim and its confirmation", () => {
  it.scopedLive("do not wait for a replica, nor for the disk: an attempt begins sooner", function* () {
    const { url } = yield* startEmbeddedPostgres({ directory: yield* temporaryDirectory })
    const connected = yield* Layer.build(databaseLayer({ url }))
    yield* Effect.provide(migrate, connected)
    const sql = Context.get(connected, SqlClient.SqlClient)
    const queue = Context.get(yield* Effect.provide(Layer.build(Queue.layer), connected), Queue)
    yield* sql`SELECT payments.add_day((now() AT TIME ZONE 'UTC')::date)`
    yield* sql`INSERT INTO payments.organizations (id, name) VALUES (gen_random_uuid(), 'Test')`
    yield* sql`INSERT INTO payments.workspaces SELECT id, 'sandbox' FROM payments.organizations`
    yield* sql`
      INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload)
      SELECT id, 'sandbox', uuidv7()::text, 'svc_evt_1', 'payment.succeeded', '{}' FROM payments.organizations`
    yield* sql`
      INSERT INTO payments.delivery_queue
        (organization_id, environment, id, endpoint_id, event_id, secret_ids, next_attempt_at, created_at)
      SELECT organization_id, environment, uuidv7(), gen_random_uuid(), id, ARRAY[gen_random_uuid()], now(), now()
      FROM payments.events`
    // Every commit that waits for the disk waits for a replica as well, and none comes
    yield* sql`ALTER SYSTEM SET synchronous_standby_names = 'none_comes'`
    yield* sql`SELECT pg_reload_conf()`
    yield* eventuallyIs(
      "the setting",
      sql<{ readonly setting: string }>`SELECT current_setting('synchronous_standby_names') AS setting`,
      ([row]) => row?.setting === "none_comes"
    )
    const { deliveries } = yield* queue.claim(idle).pipe(Effect.timeout("20 seconds"))
    expect(deliveries).toHaveLength(1)
    const unconfirmed = yield* sql`SELECT lease FROM payments.unconfirmed_claims`
    expect(unconfirmed).toEqual([])
  })
})
