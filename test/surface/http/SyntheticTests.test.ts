import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Context, Effect, Either, Layer, Option, Schema } from "effect"
import { servicesLayer, storageLayer } from "../../../src/app/Service.ts"
import { DeliveryDetail } from "../../../src/destinations/deliveries/Api.ts"
import { SyntheticTests } from "../../../src/destinations/publishing/SyntheticTests.ts"
import { EventType } from "../../../src/events/Catalog.ts"
import { Envelope } from "../../../src/events/Envelope.ts"
import { EndpointId } from "../../../src/platform/kit/Ids.ts"
import { verifyWebhook } from "../../../src/webhooks/index.ts"
import { makeDestination, payment, received, verifies, withWorker } from "../../destinations/endpoints/Delivering.ts"
import { eventually } from "../../harness/Eventually.ts"
import { inDatabase, onSharedService, sendRequest, TestService } from "../../harness/TestService.ts"
import { posting } from "./Payments.ts"
import { expectFailure } from "./Refusals.ts"
import { idOf, tenantData } from "./Samples.ts"
import { makeOrganization } from "./StartedService.ts"

const allTypes = EventType.literals

/** Has an endpoint have been tested so many seconds ago, the latest first. */
const testedBefore = (endpointId: string, seconds: ReadonlyArray<number>) =>
  inDatabase`
    UPDATE payments.endpoints
    SET recent_tests = ARRAY(SELECT now() - s * interval '1 second' FROM unnest(${seconds}::int[]) s)
    WHERE id = ${endpointId}`

const testsOf = (endpointId: string) =>
  inDatabase<{ id: string; eventId: string; state: string }>`
    SELECT id, event_id AS "eventId", state FROM payments.deliveries WHERE endpoint_id = ${endpointId} AND test`

const ended = (endpointId: string) =>
  eventually(
    "the end of the test's delivery",
    Effect.map(testsOf(endpointId), ([test]) =>
      Option.filter(Option.fromNullable(test), (one) => one.state !== "queued")
    )
  )

const tooMany = { status: 429, code: "test_rate_limit_exceeded", fields: [] }

onSharedService("a synthetic test", (it) => {
  it.scoped("of every type arrives signed, and says in every way that it is one", function* () {
    const { consumer, id, secret, tenant, test } = yield* makeDestination(allTypes)
    const seen = new Set<string>()
    yield* withWorker(
      Effect.forEach(allTypes, (type, index) =>
        Effect.gen(function* () {
          yield* testedBefore(id, [61, 62, 63, 64, 65])
          const queued = yield* test(type)
          expect(queued.status, queued.text).toBe(200)
          expect(queued.json).toEqual({
            id: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
            eventId: expect.stringMatching(/^svc_test_evt_[A-Za-z0-9_-]+$/),
            state: "queued",
            test: true,
            warnings: []
          })
          const request = yield* received(consumer, index + 1)
          const event = verifyWebhook({
            body: request.body,
            header: String(request.headers["service-signature"]),
            secret,
            organizationId: tenant.id,
            livemode: false
          })
          expect(event).toMatchObject({
            id: queued.json["eventId"],
            type,
            version: 1,
            livemode: false,
            organization_id: tenant.id,
            source: { provider: "svc_test" },
            test: true
          })
          expect(request.headers["service-delivery-id"]).toBe(queued.json["id"])
          const envelope: unknown = JSON.parse(request.body.toString())
          expect(Schema.decodeUnknownSync(Envelope)(envelope, { onExcessProperty: "error" })).toEqual(envelope)
          expect(Math.abs(Date.parse(event.created_at) - Date.now())).toBeLessThan(60_000)
          seen.add(event.id)
        })
      )
    )
    expect(seen.size).toBe(19)
  })

  it.scoped("is a delivery like any other, marked as a test, and no recent failure where it fails", function* () {
    const { base, consumer, id, send, tenant, test } = yield* makeDestination()
    consumer.answer(400)
    const queued = yield* test("payment.succeeded")
    yield* withWorker(ended(id))
    const delivery = yield* sendRequest("GET", `${base}/deliveries/${idOf(queued)}`, { key: tenant.key })
    expect(delivery.json).toMatchObject({
      id: queued.json["id"],
      endpointId: id,
      eventId: queued.json["eventId"],
      type: "payment.succeeded",
      state: "failed",
      test: true,
      attemptCount: 1,
      lastHttpStatus: 400,
      event: { test: true, data: { payment_id: expect.stringMatching(/^pi_test_/) } }
    })
    // Exactly what is documented, times in the documented form
    const detail = yield* Schema.decodeUnknown(DeliveryDetail, { onExcessProperty: "error" })(delivery.json)
    expect(detail.attempts).toHaveLength(1)
    expect(yield* Schema.encode(DeliveryDetail)(detail)).toEqual(delivery.json)
    expect((yield* send("GET", "/deliveries")).json["data"]).toMatchObject([{ id: queued.json["id"], test: true }])
    const list = yield* sendRequest("GET", `${base}/endpoints`, { key: tenant.key })
    expect(list.json["data"]).toMatchObject([{ id, recentFailures: 0 }])
  })

  it.scoped("is tried again like any other where the consumer is in trouble", function* () {
    const { consumer, id, test } = yield* makeDestination()
    consumer.answer(503)
    yield* test("payment.succeeded")
    const due = inDatabase`
      UPDATE payments.delivery_queue SET next_attempt_at = now() WHERE endpoint_id = ${id} AND lease IS NULL`
    yield* withWorker(
      Effect.gen(function* () {
        yield* received(consumer, 1)
        consumer.answer(204)
        yield* eventually(
          "the second attempt",
          Effect.zipRight(
            due,
            Effect.map(testsOf(id), ([one]) => Option.filter(Option.fromNullable(one), (o) => o.state === "delivered"))
          )
        )
      })
    )
    const [first, second] = consumer.received
    expect(consumer.received).toHaveLength(2)
    expect(second?.body.equals(first?.body ?? Buffer.alloc(0))).toBe(true)
  })

  it.scoped("is not asked for the endpoint's filters, and carries both signatures after a rotation", function* () {
    const { consumer, rotate, secret, send, test } = yield* makeDestination()
    yield* send("PATCH", "", { body: { filters: { currencies: ["usd"], amountMin: 1_000_000 } } })
    const rotated = String((yield* rotate()).json["signingSecret"])
    expect((yield* test("payment.succeeded")).json["warnings"]).toEqual([])
    const request = yield* withWorker(received(consumer, 1))
    yield* send("PATCH", "", { body: { filters: { products: ["prod_1"] } } })
    expect((yield* test("payment.succeeded")).json["warnings"]).toEqual([
      expect.stringContaining("payment.succeeded is never received")
    ])
    expect([rotated, secret].map((one) => verifies(request, one))).toEqual([true, true])
  })

  it.scoped("is recorded, and creates nothing but its event and its delivery", function* () {
    const service = yield* TestService
    const { base, id, tenant, test } = yield* makeDestination()
    const before = yield* tenantData(service)
    const queued = yield* test("payment.succeeded")
    const after = yield* tenantData(service)
    const changed = Object.keys(after).filter((table) => after[table]?.print !== before[table]?.print)
    expect(changed.toSorted()).toEqual(["audit_log", "deliveries", "delivery_queue", "endpoints", "events"])
    const log = yield* service.request("GET", `${base}/audit-log?limit=1`, { key: tenant.key })
    expect(log.json["data"]).toMatchObject([
      {
        action: "endpoint.tested",
        author: { kind: "api_key" },
        target: { type: "endpoint", id },
        requestId: queued.headers.get("request-id")
      }
    ])
  })

  it.scoped("again with the same key and type is the same; with another type or endpoint it is refused", function* () {
    const { consumer, id, test } = yield* makeDestination(["payment.succeeded", "payment.failed"])
    const other = yield* makeDestination()
    const key = randomUUID()
    const first = yield* test("payment.succeeded", key)
    for (let repeat = 0; repeat < 10; repeat++) {
      const again = yield* test("payment.succeeded", key)
      expect(again.text).toBe(first.text)
      expect(again.headers.get("idempotent-replayed")).toBe("true")
    }
    expectFailure(yield* test("payment.failed", key), { status: 409, code: "idempotency_key_reused", fields: [] })
    expect(yield* testsOf(id)).toHaveLength(1)
    // Another organization's key is another key
    expect((yield* other.test("payment.succeeded", key)).status).toBe(200)
    yield* withWorker(ended(id))
    expect(consumer.received).toHaveLength(1)
    for (const [headers, field] of [
      [{}, "idempotency-key"],
      [{ "idempotency-key": "short" }, "idempotency-key"]
    ] as const) {
      const refused = yield* test("payment.succeeded", "", { headers })
      expectFailure(refused, { status: 422, code: "validation_failed", fields: [field] })
    }
  })

  it.scoped("is refused with the plainest reason first, and changes nothing then", function* () {
    const service = yield* TestService
    const { organization, sql } = service
    const good = yield* makeDestination()
    const paused = yield* makeDestination()
    yield* paused.send("PATCH", "", { body: { active: false } })
    const deleted = yield* makeDestination()
    yield* deleted.send("DELETE")
    const disconnected = yield* makeDestination()
    yield* disconnected.send("PATCH", "", { body: { active: false } })
    yield* sql`
        UPDATE payments.provider_accounts SET status = 'disconnected', disconnected_at = now()
        WHERE organization_id = ${disconnected.tenant.id}`
    const unlinked = yield* makeOrganization(service.services, { name: `org-${randomUUID()}` })
    const create = (organizationId: string, key: string, url: string) =>
      Effect.map(
        posting(service, { organizationId, key })("/integrations/endpoints", {
          name: "Orders",
          url,
          events: ["payment.succeeded"]
        }),
        idOf
      )
    const live = yield* create(organization.id, organization.liveKey, "https://93.184.215.14/hook")
    const ofUnlinked = yield* create(unlinked.id, unlinked.key, "http://localhost:1/hook")
    const before = yield* tenantData(service)
    const attempt = (organizationId: string, id: string, key: string, type = "payment.succeeded") =>
      posting(service, { organizationId, key })(`/integrations/endpoints/${id}/test`, { type })
    const { id, tenant, test } = good
    const notFound = { status: 404, code: "resource_not_found", fields: [] }
    const notConnected = { status: 409, code: "provider_account_not_connected", fields: [] }
    expectFailure(yield* test("payment.failed"), { status: 422, code: "event_type_not_subscribed", fields: ["type"] })
    expectFailure(yield* paused.test("payment.failed"), { status: 409, code: "endpoint_paused", fields: [] })
    expectFailure(yield* disconnected.test("payment.failed"), notConnected)
    expectFailure(yield* attempt(unlinked.id, ofUnlinked, unlinked.key, "payment.failed"), notConnected)
    const inProduction = yield* attempt(organization.id, live, organization.liveKey, "payment.failed")
    expectFailure(inProduction, { status: 409, code: "test_environment_required", fields: [] })
    expectFailure(yield* attempt(organization.id, live, organization.testKey), notFound)
    expectFailure(yield* deleted.test("payment.succeeded"), notFound)
    expectFailure(yield* attempt(tenant.id, randomUUID(), tenant.key), notFound)
    expectFailure(yield* attempt(tenant.id, paused.id, tenant.key), notFound)
    expectFailure(yield* test("payment_intent.succeeded"), {
      status: 422,
      code: "validation_failed",
      fields: ["type"]
    })
    expect(yield* tenantData(service)).toEqual(before)
    yield* sql`UPDATE payments.endpoints SET events = NULL WHERE id = ${id}`
    expect((yield* test("payment.succeeded")).status).toBe(200)
    expectFailure(yield* test("account.updated"), {
      status: 422,
      code: "event_type_not_subscribed",
      fields: ["type"]
    })
  })

  it.scoped("that was refused before it began is sent under its key once the reason is gone", function* () {
    const { send, tenant, test } = yield* makeDestination()
    const link = (status: string) => inDatabase`
      UPDATE payments.provider_accounts
      SET status = ${status}, disconnected_at = CASE WHEN ${status} = 'connected' THEN NULL ELSE now() END
      WHERE organization_id = ${tenant.id}`
    const refusals = [
      [
        "endpoint_paused",
        send("PATCH", "", { body: { active: false } }),
        send("PATCH", "", { body: { active: true } })
      ],
      ["provider_account_not_connected", link("disconnected"), link("connected")]
    ] as const
    for (const [code, begin, end] of refusals) {
      const key = randomUUID()
      yield* begin
      expectFailure(yield* test("payment.succeeded", key), { status: 409, code, fields: [] })
      yield* end
      const sent = yield* test("payment.succeeded", key)
      expect([sent.status, sent.headers.get("idempotent-replayed")], sent.text).toEqual([200, null])
    }
  })

  it.scoped("is refused after five new ones in a minute, per endpoint, until the oldest is a minute old", function* () {
    const { id, tenant, test } = yield* makeDestination()
    const other = yield* makeDestination()
    const keys = Array.from({ length: 5 }, () => randomUUID())
    for (const key of keys) expect((yield* test("payment.succeeded", key)).status).toBe(200)
    expectFailure(yield* test("payment.succeeded"), tooMany)
    // A repeat is no new one, and another endpoint has a limit of its own
    expect((yield* test("payment.succeeded", keys[0])).headers.get("idempotent-replayed")).toBe("true")
    expect((yield* other.test("payment.succeeded")).status).toBe(200)
    yield* payment(tenant)
    // Refused ones do not count, and do not use up their key
    const key = randomUUID()
    yield* testedBefore(id, [0, 0, 0, 0, 20])
    const refused = yield* test("payment.succeeded", key)
    expectFailure(refused, tooMany)
    const wait = Number(refused.headers.get("retry-after"))
    expect(wait).toBeGreaterThan(0)
    expect(wait).toBeLessThanOrEqual(40)
    yield* testedBefore(id, [0, 0, 0, 0, 61])
    expect((yield* test("payment.succeeded", key)).status).toBe(200)
    expectFailure(yield* test("payment.succeeded"), tooMany)
    expect(yield* testsOf(id)).toHaveLength(6)
  })

  it.scoped("is refused after five of twenty at once, by whichever process", function* () {
    const { options, organization, services } = yield* TestService
    const storage = yield* Layer.build(storageLayer(options))
    const secondProcess = yield* Layer.build(servicesLayer(options)).pipe(Effect.provide(storage))
    const { id, tenant, test } = yield* makeDestination()
    const principal = {
      organizationId: tenant.id,
      environment: "sandbox",
      permissions: new Set<never>(),
      author: { kind: "api_key", id: randomUUID() }
    } as const
    const byService = [services, secondProcess].flatMap((process) =>
      Array.from({ length: 7 }, () =>
        Context.get(process, SyntheticTests)
          .queue(principal, EndpointId.make(id), "payment.succeeded")
          .pipe(Effect.either, Effect.map(Either.match({ onLeft: ({ code }) => code, onRight: ({ state }) => state })))
      )
    )
    const byHttp = Array.from({ length: 6 }, () =>
      Effect.map(test("payment.succeeded"), ({ json, status }) => String(status === 200 ? json["state"] : json["code"]))
    )
    const answers = yield* Effect.all([...byService, ...byHttp], { concurrency: "unbounded" })
    expect(answers.filter((answer) => answer === "queued")).toHaveLength(5)
    expect(answers.filter((answer) => answer === "test_rate_limit_exceeded")).toHaveLength(15)
    expect(yield* testsOf(id)).toHaveLength(5)
    expect(organization.id).not.toBe(tenant.id)
  })
})
