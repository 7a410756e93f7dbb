import { randomUUID } from "node:crypto"
import { PgClient } from "@effect/sql-pg"
import { expect } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { streamsPerOrganization } from "../../../src/destinations/event-streams/EventStreams.ts"
import { databaseLayer } from "../../../src/platform/storage/Database.ts"
import { eventuallyIs, eventuallyTrue } from "../../harness/Eventually.ts"
import { inDatabase, onSharedService, sendRequest, TestService } from "../../harness/TestService.ts"
import { accepted, makeTenant, notification, notify, type Tenant, unlink } from "../../inbound/Notifications.ts"
import { expectFailure, refusedWith } from "../../surface/http/Refusals.ts"
import { listen, pathOf } from "./Reader.ts"

const pay = (tenant: Tenant, options?: Parameters<typeof notification>[1]) =>
  accepted(notify(notification(tenant.accountId, options)))

const store = (tenant: Tenant, age: string, environment = "sandbox") =>
  Effect.gen(function* () {
    const id = `svc_evt_${randomUUID().replaceAll("-", "").repeat(2)}`
    const payload = JSON.stringify({ id, type: "payment.succeeded" })
    yield* inDatabase`
      INSERT INTO payments.workspaces (organization_id, environment) VALUES (${tenant.id}, ${environment})
      ON CONFLICT DO NOTHING`
    yield* inDatabase`
      INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload, created_at)
      VALUES (${tenant.id}, ${environment}, uuidv7(), ${id}, 'payment.succeeded', ${payload}, now() - ${age}::interval)`
    return id
  })

onSharedService("the stream of events", (it) => {
  it.scoped("sends the sandbox's events from now on as they are sent to endpoints, without any endpoint", function* () {
    const tenant = yield* makeTenant
    const stranger = yield* makeTenant
    yield* pay(tenant)
    const reader = yield* listen(tenant)
    expect(reader.messages[0]?.data).toMatchObject({ resumed: false, look_back_exceeded: false })
    yield* pay(stranger)
    yield* store(tenant, "0 seconds", "production")
    yield* pay(tenant, { id: "evt_streamed" })
    yield* eventuallyTrue("the event", () => reader.events().length > 0)
    expect(reader.messages.slice(1)).toMatchObject([
      {
        name: "",
        data: {
          type: "payment.succeeded",
          organization_id: tenant.id,
          livemode: false,
          source: { event_id: "evt_streamed" }
        }
      }
    ])
  })

  it.scoped("sends only the types that are asked for, and refuses unknown ones", function* () {
    const tenant = yield* makeTenant
    const reader = yield* listen(tenant, { query: "?types=checkout.completed,payment.failed" })
    const all = yield* listen(tenant)
    yield* pay(tenant)
    yield* eventuallyTrue("the payment on the other stream", () => all.events().length === 1)
    yield* pay(tenant, { type: "payment_intent.payment_failed", object: { id: "pi_1", amount: 5, currency: "brl" } })
    yield* eventuallyTrue("the failed payment", () => reader.events().length === 1)
    expect(reader.messages.at(-1)?.data["type"]).toBe("payment.failed")
    const refused = yield* sendRequest("GET", pathOf(tenant, "?types=payment.invented"), { key: tenant.key })
    expectFailure(refused, { status: 422, code: "validation_failed", fields: ["types"] })
  })

  it.scoped("loses nothing over a break: what came meanwhile or was under way follows the last id", function* () {
    const tenant = yield* makeTenant
    const first = yield* listen(tenant)
    yield* pay(tenant)
    yield* eventuallyTrue("the first event", () => first.events().length === 1)
    first.cut()
    yield* Effect.all([pay(tenant), pay(tenant), pay(tenant)], { concurrency: "unbounded" })
    const second = yield* listen(tenant, { after: first.place() })
    yield* eventuallyTrue("the others", () => new Set([...first.events(), ...second.events()]).size === 4)
    expect(second.messages[0]?.data).toMatchObject({ resumed: true, look_back_exceeded: false })
    // By the query as well, for those who can't set the header
    const third = yield* listen(tenant, { query: `?after=${first.place()}&follow=false` })
    yield* eventuallyTrue("its end", third.ended)
    expect(third.events().toSorted()).toEqual(second.events().toSorted())
  })

  it.scoped("sends an event whose transaction commits after later ones, once, also over a break", function* () {
    const { options, sql } = yield* TestService
    const tenant = yield* makeTenant
    const reader = yield* listen(tenant)
    const stored = yield* Deferred.make<string>()
    const commit = yield* Deferred.make<void>()
    const other = yield* Layer.build(databaseLayer({ url: options.databaseUrl, poolSize: 1 }))
    const late = yield* Effect.fork(
      PgClient.PgClient.pipe(
        Effect.flatMap((client) =>
          client.withTransaction(
            Effect.gen(function* () {
              const id = `svc_evt_${randomUUID().replaceAll("-", "").repeat(2)}`
              yield* client`SELECT now()`
              yield* Deferred.succeed(stored, id)
              yield* Deferred.await(commit)
              yield* client`
                  INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload)
                  VALUES (${tenant.id}, 'sandbox', uuidv7(), ${id}, 'payment.succeeded',
                    ${JSON.stringify({ id, type: "payment.succeeded" })})`
            })
          )
        ),
        Effect.provide(other)
      )
    )
    const id = yield* Deferred.await(stored)
    yield* pay(tenant)
    yield* eventuallyTrue("the later event", () => reader.events().length === 1)
    // Longer ago than looks overlap in any case
    yield* eventuallyIs(
      "the transaction is old",
      sql`
            SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction' AND datname = current_database()
              AND xact_start < clock_timestamp() - interval '5500 milliseconds'`,
      (rows) => rows.length > 0
    )
    const place = reader.place()
    yield* Deferred.succeed(commit, undefined)
    yield* Fiber.join(late)
    yield* eventuallyTrue("the late event", () => reader.events().includes(id))
    expect(reader.events()).toHaveLength(2)
    const resumed = yield* listen(tenant, { after: place })
    yield* eventuallyTrue("the late event again", () => resumed.events().includes(id))
    const [row] = yield* sql<{ late: boolean }>`
        SELECT min(created_at) FILTER (WHERE public_id = ${id}) + interval '5 seconds' < now() AS late
        FROM payments.events WHERE organization_id = ${tenant.id}`
    expect(row?.late).toBe(true)
  })

  it.scoped("looks back 24 hours, page by page, and says when that was not enough", function* () {
    const tenant = yield* makeTenant
    const gone = yield* store(tenant, "25 hours")
    const kept = yield* store(tenant, "23 hours")
    // More than two pages, many of them of the same moment
    yield* inDatabase`
      INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload, created_at)
      SELECT ${tenant.id}, 'sandbox', uuidv7(), 'svc_evt_' || n, 'payment.succeeded',
        json_build_object('id', 'svc_evt_' || n, 'type', 'payment.succeeded')::text,
        now() - interval '1 hour' + (n / 60) * interval '1 microsecond'
      FROM generate_series(1, 350) AS n`
    const reader = yield* listen(tenant, { after: "1", query: "?follow=false" })
    yield* eventuallyTrue("its end", reader.ended)
    expect(reader.messages[0]?.data).toMatchObject({ resumed: true, look_back_exceeded: true })
    expect(reader.events()).not.toContain(gone)
    expect(reader.events()).toContain(kept)
    expect(reader.events()).toHaveLength(351)
    expect(new Set(reader.events()).size).toBe(351)
    const places = reader.messages.map(({ id }) => Number(id))
    expect(places).toEqual(places.toSorted((a, b) => a - b))
  })

  it.scoped("sends each once, however many come at a time", function* () {
    const tenant = yield* makeTenant
    const reader = yield* listen(tenant)
    yield* inDatabase`
      INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload, created_at)
      SELECT ${tenant.id}, 'sandbox', uuidv7(), 'svc_evt_' || n, 'payment.succeeded',
        json_build_object('id', 'svc_evt_' || n, 'type', 'payment.succeeded')::text, now() + n * interval '1 microsecond'
      FROM generate_series(1, 8000) AS n`
    yield* eventuallyTrue("all", () => reader.events().length >= 8000)
    yield* pay(tenant)
    yield* eventuallyTrue("one more", () => reader.events().length >= 8001)
    expect(new Set(reader.events()).size).toBe(reader.events().length)
  })

  it.scoped("is for the sandbox, for those who may read endpoints, and for an organization's own events", function* () {
    const { makeKey, organization, request } = yield* TestService
    const tenant = yield* makeTenant
    yield* unlink(tenant)
    const live = yield* request("GET", pathOf(organization), { key: organization.liveKey })
    expectFailure(live, { status: 409, code: "test_environment_required" })
    const star = yield* makeKey(tenant.id, ["*"])
    expectFailure(
      yield* request("GET", pathOf(tenant), { key: star }),
      refusedWith(403, "endpoint_management_forbidden")
    )
    expectFailure(
      yield* request("GET", pathOf(organization), { key: tenant.key }),
      refusedWith(403, "organization_access_denied")
    )
    for (const place of ["-1", "1e3", "x", "9".repeat(17)]) {
      const header = yield* request("GET", pathOf(tenant), { key: tenant.key, headers: { "last-event-id": place } })
      expectFailure(header, { status: 422, code: "validation_failed", fields: ["last-event-id"] })
      const query = yield* request("GET", pathOf(tenant, `?after=${encodeURIComponent(place)}`), { key: tenant.key })
      expectFailure(query, { status: 422, code: "validation_failed", fields: ["after"] })
    }
  })

  it.scoped("is open a bounded number of times per organization, and a closed one gives its place back", function* () {
    const tenant = yield* makeTenant
    const readers = yield* Effect.all(Array.from({ length: streamsPerOrganization }, () => listen(tenant)))
    const refused = yield* sendRequest("GET", pathOf(tenant), { key: tenant.key })
    expectFailure(refused, { status: 429, code: "rate_limit_exceeded" })
    expect(refused.headers.get("retry-after")).toBe("5")
    readers[0]?.cut()
    yield* eventuallyTrue("the others still run", () => readers.slice(1).every(({ ended }) => !ended()))
    yield* eventuallyIs(
      "a place",
      sendRequest("GET", pathOf(tenant, "?follow=false"), { key: tenant.key }),
      ({ status }) => status === 200
    )
  })

  it.scoped("ends at once when its key is revoked", function* () {
    const tenant = yield* makeTenant
    const reader = yield* listen(tenant)
    yield* inDatabase`UPDATE payments.api_keys SET revoked_at = now() WHERE organization_id = ${tenant.id}`
    yield* eventuallyTrue("its end", reader.ended)
    expect(reader.messages).toHaveLength(1)
  })
})
