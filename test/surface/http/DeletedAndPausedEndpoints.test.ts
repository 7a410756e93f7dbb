import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Context, Effect, Fiber, Logger, LogLevel, Option } from "effect"
import { Endpoints } from "../../../src/destinations/endpoints/Endpoints.ts"
import { batchSize } from "../../../src/platform/storage/Batches.ts"
import { endQueued, queueAgain, statesOf, storeDeliveries } from "../../destinations/deliveries/StoredDeliveries.ts"
import { makeDestination, payment, received, withWorker } from "../../destinations/endpoints/Delivering.ts"
import { eventually, eventuallyIs } from "../../harness/Eventually.ts"
import { type Answer, inDatabase, onSharedService, TestService } from "../../harness/TestService.ts"
import { waitsForLock } from "../../platform/storage/PartitionBed.ts"
import { posting } from "./Payments.ts"
import { expectFailure } from "./Refusals.ts"

type Json = Record<string, unknown>

const listed = ({ json }: Answer): ReadonlyArray<Json> => (Array.isArray(json["data"]) ? json["data"] : [])

const notFound = { status: 404, code: "resource_not_found", fields: [] }
const unknownCursor = { status: 422, code: "validation_failed", fields: ["starting_after"] }

const endedByDeletion = {
  state: "failed",
  nextAttemptAt: null,
  finishedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]+\.\d{3}Z$/),
  lastHttpStatus: null,
  lastErrorCode: "endpoint_deleted"
}

onSharedService("an endpoint", (it) => {
  it.scoped("that is deleted is gone for every operation, but for its history", function* () {
    const { request, sql } = yield* TestService
    const { base, id, rotate, send, tenant, test } = yield* makeDestination()
    yield* payment(tenant)
    const deleted = yield* send("DELETE")
    expect([deleted.status, deleted.text]).toEqual([204, ""])
    for (const answer of [
      yield* send("GET"),
      yield* send("PATCH", "", { body: { active: true } }),
      yield* send("DELETE"),
      yield* rotate(),
      yield* test("payment.succeeded")
    ]) {
      expectFailure(answer, notFound)
    }
    expect(listed(yield* request("GET", `${base}/endpoints`, { key: tenant.key }))).toEqual([])
    const [delivery] = listed(yield* send("GET", "/deliveries"))
    expect(delivery).toMatchObject({ ...endedByDeletion, endpointId: id, attemptCount: 0 })
    const detail = yield* request("GET", `${base}/deliveries/${delivery?.["id"]}`, { key: tenant.key })
    expect(detail.json).toMatchObject({ ...delivery, attempts: [], event: { type: "payment.succeeded" } })
    expect((yield* send("GET", "/skipped")).json).toEqual({ data: [], has_more: false })
    expect(yield* sql`SELECT 1 FROM payments.endpoint_secrets WHERE endpoint_id = ${id}`).toEqual([])
    const [record] = listed(yield* request("GET", `${base}/audit-log`, { key: tenant.key }))
    expect(record).toMatchObject({
      action: "endpoint.deleted",
      author: { kind: "api_key" },
      target: { type: "endpoint", id },
      requestId: deleted.headers.get("request-id")
    })
  })

  it.scoped("that is deleted gets no further events, none that waits; what has ended stays as it was", function* () {
    const { sql } = yield* TestService
    const { consumer, id, send, tenant } = yield* makeDestination()
    const neighbour = yield* makeDestination()
    for (let count = 0; count < 3; count++) yield* payment(tenant)
    yield* payment(neighbour.tenant)
    const oldest = sql`id = (SELECT id FROM payments.deliveries WHERE endpoint_id = ${id} ORDER BY id LIMIT 1)`
    yield* endQueued(sql, oldest, "delivered")
    yield* sql`UPDATE payments.deliveries SET last_http_status = 204 WHERE ${oldest}`
    yield* send("DELETE")
    yield* payment(tenant)
    yield* withWorker(received(neighbour.consumer, 1))
    expect(consumer.received).toHaveLength(0)
    expect(listed(yield* send("GET", "/deliveries"))).toMatchObject([
      endedByDeletion,
      endedByDeletion,
      { state: "delivered", lastHttpStatus: 204, lastErrorCode: null }
    ])
  })

  for (const status of [204, 500]) {
    it.scoped(`that is deleted is not brought back by an attempt that is answered ${status}`, function* () {
      const { request } = yield* TestService
      const { base, consumer, send, tenant } = yield* makeDestination()
      const release = consumer.hold()
      consumer.answer(status)
      yield* payment(tenant)
      const detail = yield* withWorker(
        Effect.gen(function* () {
          yield* received(consumer, 1)
          expect((yield* send("DELETE")).status).toBe(204)
          release()
          const [delivery] = listed(yield* send("GET", "/deliveries"))
          return yield* eventually(
            "the record of the attempt",
            Effect.map(request("GET", `${base}/deliveries/${delivery?.["id"]}`, { key: tenant.key }), ({ json }) =>
              Array.isArray(json["attempts"]) && json["attempts"].length > 0 ? Option.some(json) : Option.none()
            )
          )
        })
      )
      expect(detail).toMatchObject({
        ...(status === 204
          ? { state: "delivered", lastHttpStatus: 204, lastErrorCode: null, nextAttemptAt: null }
          : endedByDeletion),
        attemptCount: 1,
        attempts: [{ number: 1, trigger: "automatic", httpStatus: status }]
      })
      expect(consumer.received).toHaveLength(1)
    })
  }

  it.scoped("that is deleted holds up the record of nobody's attempts, however much waits for it", function* () {
    const { sql } = yield* TestService
    const { consumer, id, send, tenant } = yield* makeDestination()
    const neighbour = yield* makeDestination()
    const [waiting = ""] = yield* storeDeliveries({ organizationId: tenant.id, endpointId: id, state: "queued" })
    const release = consumer.hold()
    yield* payment(tenant)
    const deletion = yield* withWorker(
      Effect.gen(function* () {
        yield* received(consumer, 1)
        // As if ending what waits took long: it waits for the history of one of them
        return yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`SELECT 1 FROM payments.deliveries WHERE id = ${waiting} FOR UPDATE`
            const deletion = yield* Effect.fork(send("DELETE"))
            yield* waitsForLock(sql, "a deletion that waits", "%")
            release()
            yield* received(consumer, 1)
            yield* payment(neighbour.tenant)
            yield* eventuallyIs(
              "the records of both attempts",
              sql`
                    SELECT 1 FROM payments.deliveries WHERE state = 'delivered'
                      AND organization_id IN (${tenant.id}, ${neighbour.tenant.id})`,
              (rows) => rows.length === 2
            )
            return deletion
          })
        )
      })
    )
    expect((yield* Fiber.join(deletion)).status).toBe(204)
    expect(listed(yield* send("GET", "/deliveries?state=failed"))).toMatchObject([{ ...endedByDeletion, id: waiting }])
  })

  it.scoped("that is deleted with a long queue is gone at once; the housekeeping ends the queue", function* () {
    const { services, sql } = yield* TestService
    const { consumer, id, send, tenant } = yield* makeDestination()
    const neighbour = yield* makeDestination()
    const of = { organizationId: tenant.id, endpointId: id, state: "queued" } as const
    yield* storeDeliveries({ ...of, count: 2 * batchSize + 500 })
    expect((yield* send("DELETE")).status).toBe(204)
    expect(yield* statesOf(id)).toEqual({ failed: batchSize, queued: batchSize + 500 })
    // The longest due: a worker meets all of them first
    yield* sql`
        UPDATE payments.delivery_queue SET next_attempt_at = now() - interval '1 minute' WHERE endpoint_id = ${id}`
    yield* payment(neighbour.tenant)
    yield* withWorker(received(neighbour.consumer, 1))
    expect(consumer.received).toHaveLength(0)
    yield* Context.get(services, Endpoints).endDeleted
    expect(yield* statesOf(id)).toEqual({ failed: 2 * batchSize + 500 })
    expect(yield* sql`SELECT 1 FROM payments.delivery_queue WHERE endpoint_id = ${id}`).toEqual([])
    const [last] = yield* sql<{ readonly code: string }>`
        SELECT last_error_code AS code FROM payments.deliveries WHERE endpoint_id = ${id} ORDER BY id DESC LIMIT 1`
    expect(last?.code).toBe("endpoint_deleted")
    expect(
      yield* sql`
          SELECT id FROM payments.deliveries
          WHERE endpoint_id = ${id} AND attempt_count <> COALESCE(cardinality(attempts), 0)`
    ).toEqual([])
  })

  it.scoped("that is deleted makes room for another one", function* () {
    const service = yield* TestService
    const { send, tenant } = yield* makeDestination()
    const body = { name: "Orders", url: "http://localhost:1/hook", events: ["payment.failed"] }
    const create = Effect.suspend(() =>
      posting(service, { organizationId: tenant.id, key: tenant.key })("/integrations/endpoints", body)
    )
    const made = yield* Effect.replicateEffect(create, 15, { concurrency: 5 })
    expect(new Set(Array.from(made, ({ status }) => status))).toEqual(new Set([200]))
    expectFailure(yield* create, { status: 409, code: "endpoint_limit_reached", fields: [] })
    yield* send("DELETE")
    expect((yield* create).status).toBe(200)
    expectFailure(yield* create, { status: 409, code: "endpoint_limit_reached", fields: [] })
  })

  it.scoped("is deleted once, by whichever of ten requests", function* () {
    const { id, send, tenant } = yield* makeDestination()
    yield* payment(tenant)
    const answers = yield* Effect.all(
      Array.from({ length: 10 }, () => send("DELETE")),
      { concurrency: "unbounded" }
    )
    expect(answers.map(({ status }) => status).toSorted()).toEqual([204, ...Array.from({ length: 9 }, () => 404)])
    const records =
      yield* inDatabase`SELECT 1 FROM payments.audit_log WHERE target_id = ${id} AND action = 'endpoint.deleted'`
    expect(records).toHaveLength(1)
  })

  it.scoped("that is deleted is rid of what a notification under way had queued meanwhile", function* () {
    const { services, sql } = yield* TestService
    const { consumer, id, send, tenant } = yield* makeDestination()
    const neighbour = yield* makeDestination()
    yield* payment(tenant)
    yield* payment(neighbour.tenant)
    yield* send("DELETE")
    // As if the notification had found the endpoint just before, and stored its delivery just after
    yield* queueAgain(sql, sql`endpoint_id = ${id}`)
    yield* sql`UPDATE payments.deliveries SET last_error_code = NULL WHERE endpoint_id = ${id}`
    const errors: Array<unknown> = []
    const noting = Logger.make(({ logLevel, message }) => {
      if (LogLevel.greaterThanEqual(logLevel, LogLevel.Warning)) errors.push(message)
    })
    yield* Effect.provide(withWorker(received(neighbour.consumer, 1)), Logger.replace(Logger.defaultLogger, noting))
    expect(errors).toEqual([])
    expect(consumer.received).toHaveLength(0)
    yield* Context.get(services, Endpoints).endDeleted
    expect(listed(yield* send("GET", "/deliveries"))).toMatchObject([endedByDeletion])
    expect(listed(yield* neighbour.send("GET", "/deliveries"))).toMatchObject([{ state: "delivered" }])
  })

  it.scoped("that was paused shows the events that it missed, also after its deletion", function* () {
    const { consumer, send, tenant, base } = yield* makeDestination()
    const { request, sql } = yield* TestService
    const other = yield* makeDestination()
    yield* payment(tenant)
    yield* send("PATCH", "", { body: { active: false } })
    for (let count = 0; count < 3; count++) yield* payment(tenant)
    yield* send("PATCH", "", { body: { active: true } })
    yield* payment(tenant)
    yield* withWorker(received(consumer, 2))
    const all = yield* send("GET", "/skipped")
    const skipped = listed(all)
    expect(all.json["has_more"]).toBe(false)
    const stored = yield* sql<{ id: string; payload: string }>`
        SELECT public_id AS id, payload FROM payments.events WHERE organization_id = ${tenant.id}
        ORDER BY created_at DESC, public_id DESC`
    // The first and the last of the five were delivered
    const missed = stored.slice(1, 4)
    expect(skipped).toEqual(
      missed.map(({ id, payload }) => ({
        eventId: id,
        type: "payment.succeeded",
        createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]+\.\d{3}Z$/),
        event: JSON.parse(payload)
      }))
    )
    expect(consumer.received).toHaveLength(2)

    const pages: Array<unknown> = []
    let query = "?limit=2"
    for (let more = true; more; ) {
      const page = yield* send("GET", `/skipped${query}`)
      pages.push(...listed(page))
      more = page.json["has_more"] === true
      query = `?limit=2&starting_after=${listed(page).at(-1)?.["eventId"]}`
    }
    expect(pages).toEqual(skipped)
    expect((yield* send("GET", `/skipped?starting_after=${missed[2]?.id}`)).json).toEqual({
      data: [],
      has_more: false
    })
    for (const cursor of [`svc_evt_${"0".repeat(64)}`, stored[0]?.id]) {
      expectFailure(yield* send("GET", `/skipped?starting_after=${cursor}`), unknownCursor)
    }
    expectFailure(yield* other.send("GET", `/skipped?starting_after=${missed[0]?.id}`), unknownCursor)
    expect(listed(yield* other.send("GET", "/skipped"))).toEqual([])
    const unknown = yield* request("GET", `${base}/endpoints/${randomUUID()}/skipped`, { key: tenant.key })
    expectFailure(unknown, notFound)
    yield* send("DELETE")
    expect(listed(yield* send("GET", "/skipped"))).toEqual(skipped)
  })

  it.scoped("that was paused missed only what it would have got: by type and by filters", function* () {
    const { send, tenant } = yield* makeDestination(["payment.failed"])
    const filtered = yield* makeDestination(["payment.succeeded"])
    yield* send("PATCH", "", { body: { active: false } })
    yield* filtered.send("PATCH", "", { body: { active: false, filters: { amountMin: 100_000_000 } } })
    yield* payment(tenant)
    yield* payment(filtered.tenant)
    expect(listed(yield* send("GET", "/skipped"))).toEqual([])
    expect(listed(yield* filtered.send("GET", "/skipped"))).toEqual([])
  })
})
