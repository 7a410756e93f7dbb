import { randomBytes, randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { expect } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber, Layer, Option } from "effect"
import { EventReplays } from "../../../src/destinations/event-replays/EventReplays.ts"
import { eventKey } from "../../../src/destinations/publishing/Publication.ts"
import { databaseLayer } from "../../../src/platform/storage/Database.ts"
import { endQueued, statesOf } from "../../destinations/deliveries/StoredDeliveries.ts"
import { received, withWorker } from "../../destinations/endpoints/Delivering.ts"
import { paymentIntent } from "../../events/ProviderEvents.ts"
import { makeConsumer } from "../../harness/Consumer.ts"
import { eventually, eventuallyIs } from "../../harness/Eventually.ts"
import {
  type Answer,
  inAnotherProcess,
  inDatabase,
  onService,
  onSharedService,
  TestService
} from "../../harness/TestService.ts"
import {
  accepted,
  asTenant,
  atEndpoints,
  makeSubscriber,
  makeTenant,
  type NotificationOptions,
  notification,
  notify,
  subscribe,
  type Tenant
} from "../../inbound/Notifications.ts"
import { expectFailure } from "./Refusals.ts"

const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString()

const call = (
  tenant: Pick<Tenant, "id" | "key">,
  method: string,
  rest: string,
  body?: unknown,
  key: string = randomUUID()
) => asTenant(tenant, method, rest, body === undefined ? {} : { body, headers: { "idempotency-key": key } })

const replay = (tenant: Pick<Tenant, "id" | "key">, endpointId: string, body: object = {}, key?: string) =>
  call(tenant, "POST", `/endpoints/${endpointId}/replay`, { since: minutesAgo(10), ...body }, key)

const readReplay = (tenant: Tenant, { json }: Answer) =>
  Effect.map(call(tenant, "GET", `/endpoints/${json["endpointId"]}/replays/${json["id"]}`), (answer) => answer.json)

const rowsOf = (json: Record<string, unknown>) => json["data"] as ReadonlyArray<Record<string, unknown>> // asserted below

/** Reports a payment, and answers its event's id once it is stored. */
const pay = (tenant: Tenant, id: string, object: object = {}, options: NotificationOptions = {}) =>
  accepted(notify(notification(tenant.accountId, { object: { ...paymentIntent, id, ...object }, ...options })))

/** Stores events that were received within the last second, oldest first; their ids. */
const storeEvents = Effect.fnUntraced(function* (tenant: Tenant, count: number, client?: SqlClient.SqlClient) {
  const sql = client ?? (yield* TestService).sql
  const ids = Array.from({ length: count }, () => `svc_evt_${randomBytes(32).toString("hex")}`)
  const keys = ids.map((id, index) => eventKey(id, new Date(Date.now() - count + index)))
  yield* sql`
    INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload)
    SELECT ${tenant.id}, 'sandbox', key, id, 'payment.succeeded',
      json_build_object('id', id, 'type', 'payment.succeeded', 'data', json_build_object('amount', 1500))::text
    FROM unnest(${keys}::text[], ${ids}::text[]) AS e (key, id)`
  return ids
}, Effect.orDie)

/** The public ids of what was queued for an endpoint, in the order of its deliveries' ids. */
const queuedFor = (endpointId: string) =>
  Effect.map(
    inDatabase<{ id: string }>`
      SELECT e.public_id AS id FROM payments.deliveries d JOIN payments.events e
        ON e.organization_id = d.organization_id AND e.environment = d.environment AND e.id = d.event_id
      WHERE d.endpoint_id = ${endpointId} ORDER BY d.id`,
    (rows) => rows.map(({ id }) => id)
  )

/** The replays of another process: with nothing in common but the database. */
const otherProcess = inAnotherProcess(EventReplays, EventReplays.layer({ keepFor: Duration.days(30) }))

const untilEnded = (tenant: Tenant, started: Answer) =>
  eventually(
    "the replay's end",
    Effect.map(readReplay(tenant, started), (json) => (json["state"] === "running" ? Option.none() : Option.some(json)))
  )

onSharedService("events", (it) => {
  it.effect("are listed newest first in pages, by type, payment and time, with their deliveries", function* () {
    const tenant = yield* makeTenant
    const stranger = yield* makeTenant
    const { id: endpointId } = yield* subscribe(tenant)
    const since = Math.floor(Date.now() / 1000)
    yield* pay(tenant, "pi_first")
    yield* pay(tenant, "pi_second")
    yield* pay(tenant, "pi_third", { status: "requires_payment_method" }, { type: "payment_intent.payment_failed" })
    yield* pay(tenant, "pi_second", { amount_received: 100 })
    const list = (query: string) =>
      Effect.map(call(tenant, "GET", `/events${query}`), ({ json, status, text }) => {
        expect(status, text).toBe(200)
        const payments = rowsOf(json).map(({ event }) => Object(event).data.payment_id)
        return { payments, more: json["has_more"], ids: rowsOf(json).map(({ id }) => id) }
      })
    const all = yield* list("")
    expect(all).toMatchObject({ payments: ["pi_second", "pi_third", "pi_second", "pi_first"], more: false })
    expect(yield* list("?limit=2")).toEqual({
      payments: all.payments.slice(0, 2),
      more: true,
      ids: all.ids.slice(0, 2)
    })
    expect((yield* list(`?limit=2&starting_after=${all.ids[1]}`)).ids).toEqual(all.ids.slice(2))
    expect((yield* list("?type=payment.failed")).payments).toEqual(["pi_third"])
    expect((yield* list("?payment_id=pi_second")).ids).toEqual([all.ids[0], all.ids[2]])
    expect((yield* list("?payment_id=pi_secon")).ids).toEqual([])
    expect((yield* list(`?created_gte=${since}&created_lte=${since + 600}`)).ids).toEqual(all.ids)
    expect((yield* list(`?created_lte=${since - 1}`)).ids).toEqual([])
    expect((yield* list(`?created_gte=${since + 600}`)).ids).toEqual([])

    const { json: first } = yield* call(tenant, "GET", `/events/${all.ids[3]}`)
    expect(first).toMatchObject({
      id: all.ids[3],
      type: "payment.succeeded",
      test: false,
      receivedAt: expect.stringMatching(/Z$/),
      event: { id: all.ids[3], data: { payment_id: "pi_first" } },
      deliveries: [{ endpointId, eventId: all.ids[3], state: "queued" }]
    })
    // Nobody subscribes to it
    const { json: failed } = yield* call(tenant, "GET", `/events/${all.ids[1]}`)
    expect(failed).toMatchObject({ type: "payment.failed", deliveries: [] })
    const foreign = { id: tenant.id, key: stranger.key }
    expectFailure(yield* call(foreign, "GET", "/events"), { status: 403, code: "organization_access_denied" })
    for (const one of [yield* call(stranger, "GET", `/events/${all.ids[0]}`)]) {
      expectFailure(one, { status: 404, code: "resource_not_found" })
    }
    expect(rowsOf((yield* call(stranger, "GET", "/events")).json)).toEqual([])
  })
})

// Not a shared one: what is left over here goes on in the background
onService({ roles: { api: true, worker: false } })("a replay", (it) => {
  it.scoped("sends an endpoint the events from before it existed, once each, under their own ids", function* () {
    const { tenant, ...before } = yield* makeSubscriber()
    yield* pay(tenant, "pi_one")
    yield* pay(tenant, "pi_two")
    yield* pay(tenant, "pi_failed", { status: "requires_payment_method" }, { type: "payment_intent.payment_failed" })
    yield* atEndpoints(tenant, "POST", `/${before.id}/test`, { type: "payment.succeeded" })
    const consumer = yield* makeConsumer
    const { id: endpointId } = yield* subscribe(tenant, ["payment.succeeded", "payout.paid"], consumer.url)
    const since = minutesAgo(10)
    const started = yield* replay(tenant, endpointId, { since })
    expect(started.status, started.text).toBe(202)
    expect(started.json).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      endpointId,
      since,
      until: expect.any(String),
      types: null,
      state: "finished",
      queued: 2,
      skipped: 1,
      reachedAt: started.json["until"],
      createdAt: expect.any(String),
      finishedAt: expect.any(String)
    })
    yield* withWorker(received(consumer, 2))
    const bodies = consumer.received.map(({ body }) => JSON.parse(body.toString()))
    expect(bodies.map(({ data }) => data.payment_id).toSorted()).toEqual(["pi_one", "pi_two"])
    const events = rowsOf((yield* call(tenant, "GET", "/events?type=payment.succeeded&payment_id=pi_one")).json)
    const { json: detail } = yield* call(tenant, "GET", `/events/${events[0]?.["id"]}`)
    const deliveries = detail["deliveries"] as ReadonlyArray<Record<string, unknown>> // asserted below
    expect(deliveries.map((one) => one["endpointId"])).toEqual([endpointId, before.id])
    const sent = consumer.received.find(({ body }) => body.toString().includes("pi_one"))
    expect(sent?.headers["service-delivery-id"]).toBe(deliveries[0]?.["id"])
    expect(JSON.parse(String(sent?.body)).id).toBe(detail["id"])
    expect((yield* queuedFor(endpointId)).toSorted()).toEqual(bodies.map(({ id }) => id).toSorted())
    expect(
      yield* inDatabase`SELECT action, request_id FROM payments.audit_log WHERE target_id = ${String(started.json["id"])}`
    ).toEqual([{ action: "event_replay.started", request_id: started.headers.get("request-id") }])
  })

  it.effect("lets through what the endpoint's filters let through as it was received", function* () {
    const tenant = yield* makeTenant
    yield* pay(tenant, "pi_shop", { metadata: { shop: "north", note: "a" } })
    yield* pay(tenant, "pi_other", { metadata: { shop: "south" } })
    yield* pay(tenant, "pi_none")
    yield* pay(tenant, "pi_small", { amount: 5, amount_received: 5, metadata: { shop: "north" } })
    const filters = { metadata: { shop: "north" }, amountMin: 100 }
    const { id } = yield* subscribe(tenant, ["payment.succeeded"], "http://127.0.0.1:9/hook", filters)
    const { json } = yield* replay(tenant, id)
    expect(json).toMatchObject({ state: "finished", queued: 1, skipped: 3 })
    const [event] = rowsOf((yield* call(tenant, "GET", "/events?payment_id=pi_shop")).json)
    expect(yield* queuedFor(id)).toEqual([event?.["id"]])
    // Of metadata nothing is stored that can be read
    const stored = yield* inDatabase`
      SELECT e::text FROM payments.events e WHERE organization_id = ${tenant.id} AND e::text ~ 'north|south|note'`
    expect(stored).toEqual([])
  })

  it.scoped(
    "of many waits while the endpoint has deliveries due, so that new events go first, and says how far it is",
    function* () {
      const { sql } = yield* TestService
      const { id, tenant } = yield* makeSubscriber()
      const ids = yield* storeEvents(tenant, 250)
      const started = yield* replay(tenant, id)
      expect(started.json).toMatchObject({ state: "running", queued: 100, skipped: 0, finishedAt: null })
      yield* (yield* otherProcess).step
      expect(yield* statesOf(id)).toEqual({ queued: 100 })
      expect((yield* queuedFor(id)).toSorted()).toEqual(ids.slice(0, 100).toSorted())
      // A new event, for which the replay leaves room
      yield* pay(tenant, "pi_live")
      expect(yield* statesOf(id)).toEqual({ queued: 101 })
      const drained = eventually(
        "the end of a replay whose deliveries are sent",
        Effect.zipRight(
          endQueued(sql, sql`endpoint_id = ${id}`, "delivered"),
          Effect.map(readReplay(tenant, started), (json) =>
            json["state"] === "finished" ? Option.some(json) : Option.none()
          )
        )
      )
      expect(yield* drained).toMatchObject({ queued: 250, skipped: 0, reachedAt: started.json["until"] })
      expect((yield* queuedFor(id)).length).toBe(251)
    }
  )

  it.scoped("is finished by other processes if the one that began it is gone, each event once", function* () {
    const { sql } = yield* TestService
    const { id, tenant } = yield* makeSubscriber()
    const ids = yield* storeEvents(tenant, 450)
    const started = yield* replay(tenant, id)
    const processes = [yield* otherProcess, yield* otherProcess, yield* otherProcess]
    const work = (replays: EventReplays["Type"]) =>
      endQueued(sql, sql`endpoint_id = ${id}`, "delivered").pipe(
        Effect.zipRight(replays.step),
        Effect.zipRight(readReplay(tenant, started)),
        Effect.repeat({ until: (json) => json["state"] === "finished" })
      )
    yield* Effect.forEach(processes, work, { concurrency: 3 })
    expect((yield* queuedFor(id)).toSorted()).toEqual(ids.toSorted())
    expect(yield* readReplay(tenant, started)).toMatchObject({ queued: 450, skipped: 0 })
  })

  it.effect("is one at a time per endpoint, the same with the same key, and can be canceled", function* () {
    const { sql } = yield* TestService
    const { id, tenant } = yield* makeSubscriber()
    const { id: other } = yield* subscribe(tenant)
    yield* storeEvents(tenant, 150)
    const key = randomUUID()
    const since = minutesAgo(5)
    const started = yield* replay(tenant, id, { since }, key)
    const again = yield* replay(tenant, id, { since }, key)
    expect([again.status, again.text, again.headers.get("idempotent-replayed")]).toEqual([202, started.text, "true"])
    expectFailure(yield* replay(tenant, id, { since: minutesAgo(6) }, key), {
      status: 409,
      code: "idempotency_key_reused"
    })
    expectFailure(yield* replay(tenant, id), { status: 409, code: "replay_in_progress" })
    expect((yield* replay(tenant, other)).status).toBe(202)
    const canceled = yield* call(tenant, "POST", `/endpoints/${id}/replays/${started.json["id"]}/cancel`)
    expect(canceled.json).toMatchObject({ id: started.json["id"], state: "canceled", queued: 100 })
    const twice = yield* call(tenant, "POST", `/endpoints/${id}/replays/${started.json["id"]}/cancel`)
    expect([twice.status, twice.text]).toEqual([200, canceled.text])
    const recorded = yield* sql`
        SELECT action FROM payments.audit_log WHERE target_id = ${String(started.json["id"])} ORDER BY id`
    expect(recorded.map(({ action }) => action)).toEqual(["event_replay.started", "event_replay.canceled"])
    // What was created is sent, and another replay creates all of them again
    expect(yield* statesOf(id)).toEqual({ queued: 100 })
    yield* endQueued(sql, sql`endpoint_id = ${id}`, "delivered")
    const next = yield* replay(tenant, id)
    expect(next.json).toMatchObject({ state: "running", queued: 100 })
    expect(yield* statesOf(id)).toEqual({ delivered: 100, queued: 100 })
    const { json } = yield* call(tenant, "GET", `/endpoints/${id}/replays`)
    expect(rowsOf(json).map((row) => [row["id"], row["state"]])).toEqual([
      [next.json["id"], "running"],
      [started.json["id"], "canceled"]
    ])
  })

  it.scoped("waits while its endpoint is paused, and ends if that is deleted", function* () {
    const { sql } = yield* TestService
    const { id, tenant } = yield* makeSubscriber()
    yield* storeEvents(tenant, 350)
    const started = yield* replay(tenant, id)
    yield* atEndpoints(tenant, "PATCH", `/${id}`, { active: false })
    yield* endQueued(sql, sql`endpoint_id = ${id}`, "delivered")
    yield* (yield* otherProcess).step
    expect(yield* readReplay(tenant, started)).toMatchObject({ state: "running", queued: 100 })
    expectFailure(yield* replay(tenant, id), { status: 409, code: "endpoint_paused" })
    yield* atEndpoints(tenant, "PATCH", `/${id}`, { active: true })
    yield* eventuallyIs("the replay goes on", readReplay(tenant, started), (json) => json["queued"] === 200, 60_000)
    yield* sql`UPDATE payments.endpoints SET deleted_at = now() WHERE id = ${id}`
    expectFailure(yield* replay(tenant, id), { status: 409, code: "endpoint_deleted" })
    expect(yield* untilEnded(tenant, started)).toMatchObject({ state: "canceled", queued: 200 })
  })

  it.scoped("to an endpoint whose secret was deleted holds up no other, and goes on with a new one", function* () {
    const { sql } = yield* TestService
    const { id, tenant } = yield* makeSubscriber()
    yield* storeEvents(tenant, 150)
    const started = yield* replay(tenant, id)
    yield* sql`DELETE FROM payments.endpoint_secrets WHERE endpoint_id = ${id}`
    yield* endQueued(sql, sql`endpoint_id = ${id}`, "delivered")
    const stranger = yield* makeTenant
    const { id: theirs } = yield* subscribe(stranger)
    yield* storeEvents(stranger, 150)
    const another = yield* replay(stranger, theirs)
    yield* endQueued(sql, sql`endpoint_id = ${theirs}`, "delivered")
    expect(yield* untilEnded(stranger, another)).toMatchObject({ state: "finished", queued: 150 })
    expect(yield* readReplay(tenant, started)).toMatchObject({ state: "running", queued: 100 })
    yield* atEndpoints(tenant, "POST", `/${id}/rotate-secret`)
    expect(yield* untilEnded(tenant, started)).toMatchObject({ state: "finished", queued: 150 })
  })

  it.effect("of an event that was replayed very often is in its history, however many came after it", function* () {
    const { sql } = yield* TestService
    const { id, tenant } = yield* makeSubscriber()
    yield* pay(tenant, "pi_often")
    yield* endQueued(sql, sql`endpoint_id = ${id}`, "delivered")
    const [event] = rowsOf((yield* call(tenant, "GET", "/events")).json)
    const since = minutesAgo(5)
    const first = yield* replay(tenant, id, { since })
    expect(first.json).toMatchObject({ state: "finished", queued: 1 })
    yield* endQueued(sql, sql`endpoint_id = ${id}`, "delivered")
    // Later ones that the filters kept from it
    yield* sql`
        INSERT INTO payments.event_replays
          (organization_id, environment, id, endpoint_id, since, until, types, reached, state, finished_at)
        SELECT organization_id, environment,
          -- Some in the same millisecond
          overlay(overlay(id::text PLACING lpad(to_hex(n), 4, '0') FROM 25) PLACING to_hex(65000 + n / 3) FROM 10)::uuid, endpoint_id,
          since, until, types, reached, 'finished', now()
        FROM payments.event_replays, generate_series(1, 450) AS n WHERE id = ${String(first.json["id"])}`
    const second = yield* replay(tenant, id, { since })
    yield* endQueued(sql, sql`endpoint_id = ${id}`, "delivered")
    const list = (query: string) =>
      Effect.map(call(tenant, "GET", `/deliveries?event_id=${event?.["id"]}${query}`), ({ json }) => ({
        ids: rowsOf(json).map((row) => String(row["id"])),
        more: json["has_more"]
      }))
    const all = yield* list("")
    expect(second.json).toMatchObject({ state: "finished", queued: 1 })
    expect(all.ids).toHaveLength(3)
    expect(all.ids).toEqual(all.ids.toSorted().toReversed())
    const pages = [yield* list("&limit=1"), yield* list(`&limit=1&starting_after=${all.ids[0]}`)]
    expect(pages).toEqual(all.ids.slice(0, 2).map((one) => ({ ids: [one], more: true })))
    expect(yield* list(`&starting_after=${all.ids[1]}`)).toEqual({ ids: all.ids.slice(2), more: false })
    const { json } = yield* call(tenant, "GET", `/events/${event?.["id"]}`)
    expect(json["deliveries"]).toHaveLength(3)
  })

  it.scoped("waits for what is being stored, which did not go to the endpoint and is seen only later", function* () {
    const { options, sql } = yield* TestService
    const { id, tenant } = yield* makeSubscriber()
    yield* pay(tenant, "pi_stored")
    yield* endQueued(sql, sql`endpoint_id = ${id}`, "delivered")
    const stored = yield* Deferred.make<void>()
    const commit = yield* Deferred.make<void>()
    const other = yield* Layer.build(databaseLayer({ url: options.databaseUrl, poolSize: 1 }))
    const late = yield* Effect.fork(
      SqlClient.SqlClient.pipe(
        Effect.flatMap((client) =>
          client.withTransaction(
            Effect.zipRight(
              storeEvents(tenant, 1, client),
              Effect.zipRight(Deferred.succeed(stored, undefined), Deferred.await(commit))
            )
          )
        ),
        Effect.provide(other)
      )
    )
    yield* Deferred.await(stored)
    yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 10)))
    const started = yield* replay(tenant, id)
    expect(started.json).toMatchObject({ state: "running", queued: 0 })
    yield* (yield* otherProcess).step
    expect(yield* readReplay(tenant, started)).toMatchObject({ state: "running", queued: 0 })
    yield* Deferred.succeed(commit, undefined)
    yield* Fiber.join(late)
    expect(yield* untilEnded(tenant, started)).toMatchObject({ state: "finished", queued: 2 })
  })

  it.effect("is limited to the endpoint's subscribed types, and known to its tenant and endpoint alone", function* () {
    const tenant = yield* makeTenant
    const stranger = yield* makeTenant
    const { id } = yield* subscribe(tenant, ["payment.succeeded", "payment.failed"])
    const { id: other } = yield* subscribe(tenant)
    yield* pay(tenant, "pi_one")
    yield* pay(tenant, "pi_two", { status: "requires_payment_method" }, { type: "payment_intent.payment_failed" })
    expectFailure(yield* replay(tenant, other, { types: ["payment.failed"] }), {
      status: 422,
      code: "event_type_not_subscribed",
      fields: ["types"]
    })
    const started = yield* replay(tenant, id, { types: ["payment.failed"] })
    expect(started.json).toMatchObject({ types: ["payment.failed"], queued: 1, skipped: 0 })
    const notFound = { status: 404, code: "resource_not_found" }
    const one = `/replays/${started.json["id"]}`
    expectFailure(yield* call(tenant, "GET", `/endpoints/${other}${one}`), notFound)
    expectFailure(yield* call(stranger, "GET", `/endpoints/${id}${one}`), notFound)
    expectFailure(yield* call(stranger, "POST", `/endpoints/${id}${one}/cancel`), notFound)
    expectFailure(yield* call(stranger, "GET", `/endpoints/${id}/replays`), notFound)
    expectFailure(yield* replay(stranger, id), notFound)
    expectFailure(yield* replay(tenant, randomUUID()), notFound)
    // Nothing of a stranger's is sent
    const { id: theirs } = yield* subscribe(stranger, ["payment.succeeded", "payment.failed"])
    expect((yield* replay(stranger, theirs)).json).toMatchObject({ state: "finished", queued: 0, skipped: 0 })
  })
})
