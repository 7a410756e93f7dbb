import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { expect } from "@effect/vitest"
import { Context, Duration, Effect, Fiber, Layer } from "effect"
import { Endpoints } from "../../../src/destinations/endpoints/Endpoints.ts"
import { DnsResolver } from "../../../src/engine/transport/DestinationUrl.ts"
import { eventTypes } from "../../../src/events/Catalog.ts"
import { Cipher } from "../../../src/platform/kit/crypto/Cipher.ts"
import { EndpointId } from "../../../src/platform/kit/Ids.ts"
import { SlowReads } from "../../../src/platform/kit/SlowReads.ts"
import { nameServer } from "../../destinations/endpoints/DestinationNameServer.ts"
import { eventuallyIs } from "../../harness/Eventually.ts"
import { inDatabase, onService, onSharedService, type RequestOptions, TestService } from "../../harness/TestService.ts"
import { expectFailure } from "./Refusals.ts"
import { idOf, tenantData } from "./Samples.ts"
import { makeOrganization } from "./StartedService.ts"

/** A new organization with its own key, so that lists and limits are each test's own. */
const newCaller = Effect.gen(function* () {
  const { request, services } = yield* TestService
  const { id, key } = yield* makeOrganization(services, { name: `org-${randomUUID()}` })
  const path = `/v2/organizations/${id}/integrations/endpoints`
  const send = (method: string, suffix = "", options: RequestOptions = {}) =>
    request(method, `${path}${suffix}`, { key, headers: { "idempotency-key": randomUUID() }, ...options })
  const create = (body: Readonly<Record<string, unknown>> = {}, by = key) =>
    send("POST", "", {
      key: by,
      body: { name: "Orders", url: "http://localhost:1/hook", events: ["payment.succeeded"], ...body }
    })
  return { id, key, send, create }
})

const recordKeys = [
  "active",
  "createdAt",
  "environment",
  "events",
  "filters",
  "id",
  "name",
  "previousSecretExpiresAt",
  "updatedAt",
  "url",
  "warnings"
]

const uuid7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const isoMillis = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const listed = (json: Record<string, unknown>): ReadonlyArray<Record<string, unknown>> =>
  Array.isArray(json["data"]) ? json["data"] : []

onSharedService("endpoints", (it) => {
  it.effect("say which subscribed types their filters never let through", function* () {
    const { create, send } = yield* newCaller
    const events = ["payment.succeeded", "checkout.completed", "account.updated"]
    const warned = (filters: object, json: Record<string, unknown>) => {
      expect(json["filters"]).toEqual(filters)
      return Array.isArray(json["warnings"]) ? json["warnings"].map((text) => String(text).split(" ")[0]) : []
    }
    const products = { products: ["prod_1"] }
    const created = yield* create({ events, filters: products })
    expect(warned(products, created.json)).toEqual(["payment.succeeded", "account.updated"])
    expect(created.json["warnings"]).toContain(
      "payment.succeeded is never received: its events lack what the filter products reads."
    )
    expect(listed((yield* send("GET")).json)[0]?.["warnings"]).toEqual(created.json["warnings"])
    const money = { currencies: ["brl"] }
    const changed = yield* send("PATCH", `/${created.json["id"]}`, { body: { filters: money } })
    expect(warned(money, changed.json)).toEqual(["account.updated"])
    // Sessions alone have the key of checkout pages
    const page = { metadata: { svc_checkout_page: "0199c0de-0000-7000-8000-000000000012" } }
    const onPages = yield* send("PATCH", `/${created.json["id"]}`, { body: { filters: page } })
    expect(warned(page, onPages.json)).toEqual(["payment.succeeded", "account.updated"])
    const open = yield* send("PATCH", `/${created.json["id"]}`, { body: { filters: { metadata: { a: "b" } } } })
    expect(warned({ metadata: { a: "b" } }, open.json)).toEqual(["account.updated"])
  })

  it.effect("are shown as the documented record, with the secret on creation alone", function* () {
    const { create, send } = yield* newCaller
    const created = yield* create({ name: "  Orders  ", events: ["payment.failed", "payment.succeeded"] })
    expect(created.status, created.text).toBe(200)
    const { signingSecret, standardWebhooksSecret, ...record } = created.json
    expect(Object.keys(record).toSorted()).toEqual(recordKeys)
    expect(record).toMatchObject({
      name: "Orders",
      url: "http://localhost:1/hook",
      environment: "sandbox",
      events: ["payment.failed", "payment.succeeded"],
      filters: {},
      active: true,
      warnings: [],
      previousSecretExpiresAt: null
    })
    expect(record["id"]).toMatch(uuid7)
    expect(record["createdAt"]).toMatch(isoMillis)
    expect(record["updatedAt"]).toBe(record["createdAt"])
    expect(signingSecret).toMatch(/^whsec_[A-Za-z0-9_-]{43}$/)
    expect(standardWebhooksSecret).toBe(`whsec_${Buffer.from(String(signingSecret)).toString("base64")}`)
    expect((yield* send("GET", `/${record["id"]}`)).json).toEqual(record)
    const list = yield* send("GET")
    expect(listed(list.json)).toEqual([{ ...record, recentFailures: 0 }])
    const patched = yield* send("PATCH", `/${record["id"]}`, { body: { name: "Other" } })
    expect(Object.keys(patched.json).toSorted()).toEqual(recordKeys)
    for (const { text } of [list, patched]) expect(text).not.toContain("whsec_")
  })

  it.effect("have secrets of their own, kept encrypted", function* () {
    const { sql } = yield* TestService
    const { create, id } = yield* newCaller
    const secrets = [(yield* create()).json["signingSecret"], (yield* create()).json["signingSecret"]].map(String)
    expect(new Set(secrets).size).toBe(2)
    const [dump] = yield* sql<{ text: string }>`
        SELECT string_agg(t::text, ' ') AS text
        FROM payments.endpoint_secrets t WHERE organization_id = ${id}`
    for (const secret of secrets) {
      expect(dump?.text).not.toContain(secret)
      expect(dump?.text).not.toContain(Buffer.from(secret).toString("hex"))
      expect(dump?.text).not.toContain(secret.slice(6))
    }
    const rows = yield* sql<{ bytes: number; key: string }>`
        SELECT length(ciphertext) AS bytes, master_key_id AS key FROM payments.endpoint_secrets
        WHERE organization_id = ${id}`
    expect(rows).toEqual([
      { bytes: 12 + 16 + 49, key: "test" },
      { bytes: 12 + 16 + 49, key: "test" }
    ])
  })

  it.effect("are listed newest first, with the whole catalog of 19 types", function* () {
    const { create, send } = yield* newCaller
    const ids = [idOf(yield* create()), idOf(yield* create()), idOf(yield* create())]
    const { json } = yield* send("GET")
    expect(Object.keys(json).toSorted()).toEqual(["data", "eventTypes"])
    expect(listed(json).map(({ id }) => id)).toEqual(ids.toReversed())
    expect(json["eventTypes"]).toEqual(eventTypes.map(({ type, description }) => ({ type, description })))
    expect(json["eventTypes"]).toHaveLength(19)
  })

  it.effect("count deliveries that failed in the last 24 hours, without tests, per endpoint", function* () {
    const { create, id, send } = yield* newCaller
    const [failing, quiet] = [idOf(yield* create()), idOf(yield* create())]
    const insert = (n: number, state: string, age: string, test: boolean) => inDatabase`
        WITH event AS (
          INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload)
          VALUES (${id}, 'sandbox', uuidv7(), ${`svc_evt_${n}`}, 'payment.succeeded', '{}') RETURNING id)
        INSERT INTO payments.deliveries (organization_id, environment, id, endpoint_id, event_id, secret_ids, state,
          attempts, finished_at, test)
        SELECT s.organization_id, s.environment, uuidv7(), s.endpoint_id, event.id, ARRAY[s.id], ${state},
          '{}', CASE WHEN ${state} <> 'queued' THEN now() - ${age}::interval END, ${test}
        FROM payments.endpoint_secrets s, event WHERE s.endpoint_id = ${failing}`
    yield* insert(1, "failed", "1 minute", false)
    yield* insert(2, "failed", "23 hours 59 minutes", false)
    yield* insert(3, "failed", "24 hours 1 minute", false)
    yield* insert(4, "failed", "1 minute", true)
    yield* insert(5, "delivered", "1 minute", false)
    yield* insert(6, "queued", "0 seconds", false)
    const counts = listed((yield* send("GET")).json).map(({ id, recentFailures }) => [id, recentFailures])
    expect(Object.fromEntries(counts)).toEqual({ [failing]: 2, [quiet]: 0 })
  })

  it.effect("change what PATCH names and keep the rest", function* () {
    const { create, send } = yield* newCaller
    const { signingSecret: _, standardWebhooksSecret: __, ...record } = (yield* create()).json
    const patch = (body: unknown) => send("PATCH", `/${record["id"]}`, { body })
    const paused = yield* patch({ active: false })
    expect(paused.json).toEqual({ ...record, active: false, updatedAt: paused.json["updatedAt"] })
    expect(String(paused.json["updatedAt"]) > String(record["updatedAt"])).toBe(true)
    const events = ["checkout.completed", "account.updated"]
    const renamed = yield* patch({ name: " Shop ", events })
    expect(renamed.json).toMatchObject({ active: false, name: "Shop", events, url: record["url"] })
    const active = yield* patch({ active: true })
    expect(active.json).toMatchObject({ active: true, name: "Shop", events })
    expect((yield* send("GET", `/${record["id"]}`)).json).toEqual(active.json)
  })

  it.effect("from before subscriptions existed count as subscribed to payment.succeeded", function* () {
    const { create, send } = yield* newCaller
    const id = idOf(yield* create({ events: ["payment.failed"] }))
    yield* inDatabase`UPDATE payments.endpoints SET events = NULL WHERE id = ${id}`
    expect((yield* send("GET", `/${id}`)).json["events"]).toEqual(["payment.succeeded"])
  })

  it.effect("are listed however long it takes to count somebody's failures, and however often they ask", function* () {
    const { sql } = yield* TestService
    const { create, send } = yield* newCaller
    const id = idOf(yield* create())
    const other = yield* newCaller
    const theirs = idOf(yield* other.create())
    const { answers, waiting } = yield* sql.withTransaction(
      Effect.gen(function* () {
        // As if there were millions of them
        yield* sql`LOCK TABLE payments.deliveries IN ACCESS EXCLUSIVE MODE`
        const answers = yield* Effect.fork(
          Effect.all(
            // Again if a busy machine holds the table for longer than a list waits for its turn, or a count for the table
            Array.from({ length: 20 }, () =>
              Effect.repeat(send("GET"), { until: ({ status }) => status !== 429 && status !== 503 })
            ),
            { concurrency: "unbounded" }
          )
        )
        // PostgreSQL caches the activity for the rest of a transaction, unless the cache is cleared
        const waits = Effect.zipRight(
          sql`SELECT pg_stat_clear_snapshot()`,
          sql`SELECT 1 FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
              WHERE NOT l.granted AND a.datname = current_database() AND a.query LIKE '%d.failed_at > now() - interval%'`
        )
        yield* eventuallyIs("a count that waits", waits, (rows) => rows.length > 0)
        // Others are answered meanwhile
        expect((yield* other.send("GET", `/${theirs}`)).status).toBe(200)
        return { answers, waiting: (yield* waits).length }
      })
    )
    expect(waiting).toBe(1)
    for (const { json, status } of yield* Fiber.join(answers)) {
      expect(status).toBe(200)
      expect(json["data"]).toMatchObject([{ id, recentFailures: 0 }])
    }
  })

  it.effect("are at most 16 per organization and environment, also when 20 are made at once", function* () {
    const { makeKey } = yield* TestService
    const { create, id, send } = yield* newCaller
    const answers = yield* Effect.all(
      Array.from({ length: 20 }, (_, n) => create({ name: `Endpoint ${n}` })),
      { concurrency: 20 }
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(16)
    for (const answer of answers.filter(({ status }) => status !== 200)) {
      expectFailure(answer, { status: 409, code: "endpoint_limit_reached", fields: [] })
    }
    expect(listed((yield* send("GET")).json)).toHaveLength(16)
    const live = yield* create(
      { url: "https://93.184.215.14/hook" },
      yield* makeKey(id, ["webhook-endpoints:*"], { mode: "live" })
    )
    expect(live.status, live.text).toBe(200)
    expect(live.json["environment"]).toBe("production")
  })

  it.effect("have no local destinations in production, whatever the setting says", function* () {
    const { makeKey } = yield* TestService
    const { create, id } = yield* newCaller
    const live = yield* makeKey(id, ["webhook-endpoints:*"], { mode: "live" })
    for (const url of ["http://localhost:1/hook", "https://localhost/hook", "https://127.0.0.1/hook"]) {
      expectFailure(yield* create({ url }, live), { status: 422, code: "destination_rejected", fields: ["url"] }, url)
    }
  })
})

/** One for each reason; test/engine/DestinationUrl.test.ts has every form of each. */
const rejected = [
  "http://shop.example/hook",
  "shop.example/hook",
  "https://shop.example:8443/hook",
  "https://user:pa55word@shop.example/hook",
  "https://shop.example/hook?token=abc",
  "https://shop.example/hook#top",
  "https://localhost/hook",
  "http://localhost:8080/hook",
  "https://2130706433/hook",
  "https://169.254.169.254/latest/meta-data",
  "https://[::ffff:127.0.0.1]/hook"
]

onService({ roles: { api: true, worker: false }, allowLocalDestinations: false })("destinations", (it) => {
  it.effect("are public HTTPS URLs on port 443, without credentials, query or fragment", function* () {
    const service = yield* TestService
    const { create } = yield* newCaller
    const before = yield* tenantData(service)
    for (const url of rejected) {
      const answer = yield* create({ url })
      expectFailure(answer, { status: 422, code: "destination_rejected", fields: ["url"] }, url)
      expect(answer.text).not.toContain("pa55word")
    }
    expect(yield* tenantData(service)).toEqual(before)
    const good = yield* create({ url: "HTTPS://93.184.215.14:443/hook/" })
    expect(good.json).toMatchObject({ url: "https://93.184.215.14/hook/" })
  })

  it.scoped("are resolved when made: a name without an address, or with a private one, is refused", function* () {
    const { organization, services } = yield* TestService
    const { address } = yield* nameServer({
      "public.example": ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"],
      "private.example": ["10.1.2.3"],
      "mixed.example": ["93.184.215.14", "127.0.0.1"],
      "empty.example": []
    })
    const endpoints = yield* Layer.build(
      Endpoints.layer({ limit: 16, allowLocalDestinations: false, keepFor: Duration.days(30) })
    ).pipe(
      Effect.provide(DnsResolver.layerWith({ nameServers: [address] })),
      Effect.provide(Context.pick(Cipher, SlowReads, SqlClient.SqlClient)(services)),
      Effect.map(Context.get(Endpoints))
    )
    const principal = {
      organizationId: organization.id,
      environment: "production",
      permissions: new Set<never>(),
      author: { kind: "api_key", id: randomUUID() }
    } as const
    const codeOf = (host: string) =>
      endpoints.create(principal, { name: "Live", url: `https://${host}/hook`, events: ["payment.failed"] }).pipe(
        Effect.map(({ url }) => ({ code: url, fields: [] })),
        Effect.catchAll(({ code, fields }) => Effect.succeed({ code, fields }))
      )
    const fields = ["url"]
    expect(yield* codeOf("public.example")).toEqual({ code: "https://public.example/hook", fields: [] })
    expect(yield* codeOf("private.example")).toEqual({ code: "destination_rejected", fields })
    expect(yield* codeOf("mixed.example")).toEqual({ code: "destination_rejected", fields })
    expect(yield* codeOf("empty.example")).toEqual({ code: "destination_unresolvable", fields })
    expect(yield* codeOf("unknown.example")).toEqual({ code: "destination_unresolvable", fields })
    const [stored, ...others] = (yield* endpoints.list(principal)).data
    expect(others).toEqual([])
    expect(stored?.url).toBe("https://public.example/hook")
    expect((yield* Effect.flip(endpoints.get(principal, EndpointId.make(randomUUID())))).code).toBe(
      "resource_not_found"
    )
  })
})
