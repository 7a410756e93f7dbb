import { expect } from "@effect/vitest"
import { Effect } from "effect"
import type { Client } from "pg"
import { connectionTo } from "../harness/Connection.ts"
import { makeConsumer } from "../harness/Consumer.ts"
import { eventuallyTrue } from "../harness/Eventually.ts"
import { onService, TestService } from "../harness/TestService.ts"
import { makeSubscriber, notification, notify } from "../inbound/Notifications.ts"

/** A connection beside the service's, so that it needs none of theirs. */
const beside = Effect.flatMap(TestService, ({ options }) => connectionTo(options.databaseUrl))

onService()("the queue", (it) => {
  it.scoped("has connections of its own: what is due goes out while requests hold all the others", function* () {
    const { options, sql } = yield* TestService
    const consumer = yield* makeConsumer
    const { tenant, ...endpoint } = yield* makeSubscriber(["payment.succeeded"], consumer.url)
    yield* notify(notification(tenant.accountId))
    yield* eventuallyTrue("the first", () => consumer.received.length === 1)
    const client = yield* beside
    const lock = 4_815_162_342
    yield* Effect.promise(() => client.query("SELECT pg_advisory_lock($1)", [lock]))
    // More than there are, so that whatever comes after them stands in line
    const held = 3 * options.settings.databasePoolSize
    yield* Effect.forkScoped(
      Effect.forEach(Array.from({ length: held }), () => sql`SELECT pg_advisory_xact_lock_shared(${lock})`, {
        concurrency: "unbounded"
      })
    )
    const waiting = () =>
      client.query<{ count: number }>(
        "SELECT count(*)::int AS count FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
      )
    yield* Effect.repeat(Effect.promise(waiting), {
      until: ({ rows }) => rows[0]?.count === options.settings.databasePoolSize
    })
    yield* Effect.promise(() =>
      client.query(
        `WITH delivery AS (
             INSERT INTO payments.deliveries (organization_id, environment, id, endpoint_id, event_id, secret_ids, attempts)
             SELECT organization_id, environment, uuidv7(), endpoint_id, event_id, secret_ids, '{}'
             FROM payments.deliveries WHERE endpoint_id = $1 RETURNING *
           )
           INSERT INTO payments.delivery_queue (organization_id, environment, id, endpoint_id, event_id, secret_ids, created_at)
           SELECT organization_id, environment, id, endpoint_id, event_id, secret_ids, created_at FROM delivery`,
        [endpoint.id]
      )
    )
    yield* Effect.promise(() => client.query("SELECT pg_notify('connected_payments_payments', 'test')"))
    yield* eventuallyTrue("the second", () => consumer.received.length === 2)
    yield* eventuallyRecorded(client, endpoint.id)
    expect((yield* Effect.promise(waiting)).rows).toEqual([{ count: options.settings.databasePoolSize }])
    yield* Effect.promise(() => client.query("SELECT pg_advisory_unlock($1)", [lock]))
  })
})

const eventuallyRecorded = (client: Client, endpointId: string) =>
  Effect.repeat(
    Effect.promise(() =>
      client.query("SELECT 1 FROM payments.delivery_queue WHERE endpoint_id = $1", [endpointId])
    ).pipe(Effect.delay("20 millis")),
    { until: ({ rows }) => rows.length === 0 }
  )
