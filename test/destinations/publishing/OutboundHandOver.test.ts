import { SqlClient } from "@effect/sql"
import { Context, Effect, Exit, Fiber, Layer } from "effect"
import { type OutboundEvent, OutboundEvents } from "../../../src/destinations/publishing/OutboundEvents.ts"
import { LocalHandOff } from "../../../src/engine/queue/Enqueue.ts"
import { WakeUp } from "../../../src/engine/queue/WakeUp.ts"
import { EventCatalog } from "../../../src/events/EventCatalog.ts"
import { databaseLayer } from "../../../src/platform/storage/Database.ts"
import { eventuallyIs } from "../../harness/Eventually.ts"
import { createMigratedDatabase } from "../../harness/TestDatabase.ts"
import { expect, it } from "../../harness/Tests.ts"
import { endpointId, keyedHash, makeTenant, on, secretId, tenant } from "../../platform/storage/PartitionBed.ts"
import { recipientWith } from "./Recipients.ts"

/** A team's process whose worker has so many places. */
const processWith = Effect.fnUntraced(function* (places: number) {
  const { url } = yield* createMigratedDatabase
  const services = OutboundEvents.layer({ source: "shop" }).pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        WakeUp.layer,
        LocalHandOff.layer,
        keyedHash,
        EventCatalog.layer([{ type: "order.shipped", description: "Sent." }])
      )
    ),
    Layer.provideMerge(databaseLayer({ url, poolSize: 4 }))
  )
  const context = yield* Layer.build(services)
  const sql = Context.get(context, SqlClient.SqlClient)
  yield* on(sql, makeTenant(sql))
  yield* sql`UPDATE payments.endpoints SET events = ARRAY['order.shipped']`
  const { free, recipient, taken } = recipientWith(places)
  yield* Context.get(context, LocalHandOff).register(recipient)
  const queued = sql<{ id: string; ctid: string; leased: boolean; attempts: number }>`
    SELECT id, ctid, lease IS NOT NULL AND leased_until > now() + interval '5 seconds' AS leased, attempt_count AS attempts
    FROM payments.delivery_queue ORDER BY id`
  return { outbound: Context.get(context, OutboundEvents), queued, sql, taken, free }
})

const shipped = (id: string): OutboundEvent => ({ ...tenant, type: "order.shipped", id, data: { order_id: "o-1" } })

it.scopedLive("a team's event is handed to its process's worker once it is committed, under its lease", function* () {
  const { free, outbound, queued, taken } = yield* processWith(1)
  const { eventId } = yield* outbound.publish(shipped("s-1"))
  expect(taken).toEqual([
    {
      ...tenant,
      id: taken[0]?.id,
      ctid: taken[0]?.ctid,
      endpointId,
      eventId,
      secretIds: [secretId],
      payload: expect.stringContaining(`"id":"${eventId}"`),
      traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-/)
    }
  ])
  expect(yield* queued).toEqual([{ id: taken[0]?.id, ctid: taken[0]?.ctid, leased: true, attempts: 1 }])
  // A repeat stores nothing, and takes no place
  expect(yield* outbound.publish(shipped("s-1"))).toMatchObject({ duplicate: true, deliveries: 0 })
  expect([taken.length, free()]).toEqual([1, 1])
})

it.scopedLive("one that finds no place waits for a claim", function* () {
  const { outbound, queued, taken } = yield* processWith(0)
  expect(yield* outbound.publish(shipped("s-1"))).toMatchObject({ deliveries: 1 })
  expect(taken).toEqual([])
  expect(yield* queued).toMatchObject([{ leased: false, attempts: 0 }])
})

it.scopedLive("one in a transaction is never sent before the commit: it waits for a claim", function* () {
  const { free, outbound, queued, sql, taken } = yield* processWith(1)
  yield* outbound.transact(outbound.publish(shipped("s-1")))
  yield* sql.withTransaction(outbound.publish(shipped("s-2")))
  expect(
    yield* Effect.exit(outbound.transact(Effect.zipRight(outbound.publish(shipped("s-3")), Effect.fail("no"))))
  ).toEqual(Exit.fail("no"))
  expect([taken.length, free()]).toEqual([0, 1])
  expect((yield* queued).map(({ leased }) => leased)).toEqual([false, false])
})

it.scopedLive("one that is refused, or whose commit fails, frees its place", function* () {
  const { free, outbound, queued, sql, taken } = yield* processWith(1)
  expect(Exit.isFailure(yield* Effect.exit(outbound.publish({ ...shipped("s-1"), type: "order.lost" })))).toBe(true)
  yield* sql`
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$`
  yield* sql`
      CREATE CONSTRAINT TRIGGER refused AFTER INSERT ON payments.published_events DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION refuse()`
  expect(Exit.isFailure(yield* Effect.exit(outbound.publish(shipped("s-1"))))).toBe(true)
  expect([taken.length, free()]).toEqual([0, 1])
  expect(yield* queued).toEqual([])
  yield* sql`DROP TRIGGER refused ON payments.published_events`
  yield* outbound.publish(shipped("s-1"))
  expect([taken.length, free()]).toEqual([1, 1])
})

it.scopedLive("one whose caller is interrupted while it is committed is handed over all the same", function* () {
  const { free, outbound, queued, sql, taken } = yield* processWith(1)
  yield* sql`CREATE TABLE may_commit (at int)`
  yield* sql`
      CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        WHILE NOT EXISTS (SELECT FROM may_commit) LOOP PERFORM pg_sleep(0.01); END LOOP;
        RETURN NULL;
      END $$`
  yield* sql`
      CREATE CONSTRAINT TRIGGER waiting AFTER INSERT ON payments.published_events DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION wait()`
  const publishing = yield* Effect.fork(outbound.publish(shipped("s-1")))
  yield* eventuallyIs(
    "the commit",
    sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query = 'COMMIT' AND state = 'active'`,
    (rows) => rows.length > 0
  )
  const interrupted = yield* Effect.fork(Fiber.interrupt(publishing))
  yield* sql`INSERT INTO may_commit VALUES (1)`
  expect(Exit.isInterrupted(yield* Fiber.join(interrupted))).toBe(true)
  expect(yield* queued).toMatchObject([{ leased: true, attempts: 1 }])
  expect([taken.length, free()]).toEqual([1, 1])
})
