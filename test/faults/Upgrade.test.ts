import { randomUUID } from "node:crypto"
import { setTimeout as sleep } from "node:timers/promises"
import { Migrator, SqlClient } from "@effect/sql"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Redacted, Ref } from "effect"
import { v7 } from "uuid"
import { databaseLayer } from "../../src/storage/Database.ts"
import { migrate, migrations } from "../../src/storage/Migrations.ts"
import { dataDirectory } from "../process/ServiceProcess.ts"
import { startDatabaseServer } from "./DatabaseServer.ts"

const rows = 1_000_000
const batches = 10

/** The longest that a statement of the running version may take while the tables are changed, in milliseconds. */
const longest = 3000

const organizationId = randomUUID()
const endpointId = randomUUID()
const secretId = randomUUID()

describe("the step to tables by day and by month", () => {
  it.scopedLive(
    "with a million deliveries and receipts, and more coming, holds nobody up for long and loses nothing",
    () =>
      Effect.gen(function* () {
        const { url } = yield* startDatabaseServer(yield* dataDirectory)
        const connect = Effect.map(
          Layer.build(databaseLayer({ url: Redacted.make(url), poolSize: 2, statementTimeout: "3 minutes" })),
          Context.get(SqlClient.SqlClient)
        )
        const sql = yield* connect
        const running = yield* connect
        const before = Object.fromEntries(Object.entries(migrations).filter(([key]) => key < "0014"))
        // The copied cluster has today's
        yield* sql`DROP SCHEMA payments CASCADE`
        yield* sql`CREATE SCHEMA payments`
        yield* Migrator.make({})({ loader: Migrator.fromRecord(before), table: "payments.migrations" }).pipe(
          Effect.provideService(SqlClient.SqlClient, sql)
        )
        yield* sql`INSERT INTO payments.organizations (id, name) VALUES (${organizationId}, 'Bakery')`
        yield* sql`INSERT INTO payments.workspaces (organization_id, environment) VALUES (${organizationId}, 'sandbox')`
        yield* sql`
          INSERT INTO payments.endpoints (organization_id, environment, id, name, url)
          VALUES (${organizationId}, 'sandbox', ${endpointId}, 'Shop', 'https://shop.example.com/hook')`
        const fill = sql`
          WITH new AS MATERIALIZED (SELECT uuidv7() AS id FROM generate_series(1, ${rows / batches}::int)), event AS (
            INSERT INTO payments.events (organization_id, environment, id, type, payload)
            SELECT ${organizationId}::uuid, 'sandbox', 'svc_evt_' || id, 'payment.succeeded', '{}' FROM new
          ), receipt AS (
            INSERT INTO payments.receipts
              (environment, provider_event_id, organization_id, type, livemode, outcome, provider_created_at)
            SELECT 'sandbox', 'evt_' || id, ${organizationId}::uuid, 'payment_intent.succeeded', false, 'delivered', now()
            FROM new
          )
          INSERT INTO payments.deliveries
            (organization_id, environment, id, endpoint_id, event_id, secret_ids, state, finished_at, attempts)
          SELECT ${organizationId}::uuid, 'sandbox', id, ${endpointId}::uuid, 'svc_evt_' || id, ARRAY[${secretId}::uuid],
            'delivered', now(), '{}' FROM new`
        // Without looking up foreign keys, for speed: the rows hold to them
        yield* sql
          .withTransaction(Effect.zipRight(sql`SET LOCAL session_replication_role = replica`, fill))
          .pipe(Effect.repeatN(batches - 1))
        const took = yield* Ref.make<ReadonlyArray<number>>([])
        const storing = yield* Effect.gen(function* () {
          const id = v7()
          const begun = Date.now()
          yield* running`
            WITH receipt AS (
              INSERT INTO payments.receipts AS r
                (environment, provider_event_id, organization_id, type, livemode, outcome, provider_created_at)
              VALUES ('sandbox', ${`evt_${id}`}, ${organizationId}, 'payment_intent.succeeded', false, 'delivered', now())
              ON CONFLICT (environment, provider_event_id) DO UPDATE SET duplicates = r.duplicates + 1
            ), event AS (
              INSERT INTO payments.events (organization_id, environment, id, type, payload)
              VALUES (${organizationId}, 'sandbox', ${`svc_evt_${id}`}, 'payment.succeeded', '{}')
              ON CONFLICT (organization_id, environment, id) DO NOTHING
            ), delivery AS (
              INSERT INTO payments.deliveries (organization_id, environment, id, endpoint_id, event_id, secret_ids, attempts)
              VALUES (${organizationId}, 'sandbox', ${id}, ${endpointId}, ${`svc_evt_${id}`}, ARRAY[${secretId}::uuid], '{}')
              ON CONFLICT (organization_id, environment, id) DO NOTHING RETURNING *
            )
            INSERT INTO payments.delivery_queue (organization_id, environment, id, endpoint_id, event_id, secret_ids, created_at)
            SELECT organization_id, environment, id, endpoint_id, event_id, secret_ids, created_at FROM delivery`
          yield* Ref.update(took, (all) => [...all, Date.now() - begun])
          yield* Effect.promise(() => sleep(5))
        }).pipe(Effect.uninterruptible, Effect.forever, Effect.fork)
        yield* Effect.provideService(migrate, SqlClient.SqlClient, sql)
        const during = yield* Ref.get(took)
        yield* Fiber.interrupt(storing)
        const stored = (yield* Ref.get(took)).length
        expect(during.length).toBeGreaterThan(20)
        expect(Math.max(...during)).toBeLessThan(longest)
        const [count] = yield* sql`
          SELECT (SELECT count(*)::int FROM payments.deliveries) AS deliveries,
            (SELECT count(*)::int FROM payments.events) AS events,
            (SELECT count(*)::int FROM payments.delivery_queue) AS waiting,
            (SELECT count(*)::int FROM payments.all_receipts WHERE duplicates = 0) AS receipts`
        expect(count).toEqual({
          deliveries: rows + stored,
          events: rows + stored,
          waiting: stored,
          receipts: rows + stored
        })
      }),
    240_000
  )
})
