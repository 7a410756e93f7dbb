import { randomUUID } from "node:crypto"
import { readFileSync } from "node:fs"
import { expect } from "@effect/vitest"
import { Effect, Option, Predicate } from "effect"
import { eventTypes } from "../../../src/events/Catalog.ts"
import { verifyWebhook } from "../../../src/webhooks/index.ts"
import { makeDestination, payment } from "../../destinations/endpoints/Delivering.ts"
import { makeConsumer } from "../../harness/Consumer.ts"
import { eventually } from "../../harness/Eventually.ts"
import { onSharedServiceWithWorker, type RequestOptions, TestService } from "../../harness/TestService.ts"
import { type McpClient, overHttp } from "./McpClient.ts"

const nobody = "0199c0de-0000-7000-8000-00000000dead"

const create = (mcp: McpClient, url: string, args: Record<string, unknown> = {}) =>
  Effect.gen(function* () {
    const { isError, json } = yield* mcp.call("create_webhook_endpoint", {
      name: "Shop",
      url,
      events: ["payment.succeeded", "payout.paid"],
      ...args
    })
    expect(isError, JSON.stringify(json)).toBe(false)
    return { ...json, id: String(json["id"]), signingSecret: String(json["signingSecret"]) }
  })

const settled = (mcp: McpClient, deliveryId: string, state: string) =>
  eventually(
    `delivery ${deliveryId} is ${state}`,
    Effect.map(mcp.call("get_webhook_delivery", { deliveryId }), ({ json }) =>
      json["state"] === state ? Option.some(json) : Option.none()
    )
  )

const rows = (json: Record<string, unknown>): ReadonlyArray<Record<string, unknown>> => {
  const data = json["data"]
  return Array.isArray(data) ? data.filter(Predicate.isRecord) : []
}

const start = Effect.gen(function* () {
  const service = yield* TestService
  const { organization } = service
  const mcp = yield* overHttp(service.baseUrl, organization.testKey)
  const { tools } = yield* Effect.promise(() => mcp.client.listTools())
  /** The same thing over HTTP, with the same key. */
  const overRest = (method: string, below: string, options: RequestOptions = {}) =>
    service.request(method, `/v2/organizations/${organization.id}/integrations${below}`, {
      key: organization.testKey,
      ...options
    })
  return { service, organization, mcp, tools, overRest }
})

const startWithEndpoint = Effect.gen(function* () {
  const started = yield* start
  const consumer = yield* makeConsumer
  return { ...started, consumer, endpointId: (yield* create(started.mcp, consumer.url)).id }
})

onSharedServiceWithWorker("the tool server", (it) => {
  it.scoped("lists the contract's tools, each with its schemas, its hints and the scope that it needs", function* () {
    const { mcp, tools } = yield* start
    expect(mcp.client.getServerVersion()?.name).toBe("connected-payments")
    expect(mcp.client.getInstructions()).toContain("environment")
    const names = tools.map(({ name }) => name)
    const guide = readFileSync(new URL("../../../src/docs/guides/agents.md", import.meta.url), "utf8")
    const documented = [...guide.matchAll(/^\| `([a-z_]+)` \| `([\w:-]+)` \| .* \|$/gm)].map(([, name, permission]) => [
      name,
      permission
    ])
    expect(documented.toSorted()).toEqual(
      tools
        .map(({ description = "", name }) => [
          name,
          /Needs the (?:scope|permission) ([\w:-]+)\.$/.exec(description)?.[1]
        ])
        .toSorted()
    )
    expect(new Set(names).size).toBe(names.length)
    for (const { annotations, description = "", inputSchema, name, outputSchema, title } of tools) {
      const reads = /^(list|get|search)_/.test(name)
      const { idempotentHint, openWorldHint, readOnlyHint } = annotations ?? {}
      expect([name, readOnlyHint, typeof openWorldHint]).toEqual([name, reads, "boolean"])
      expect([name, typeof idempotentHint]).toEqual([name, reads ? "undefined" : "boolean"])
      expect([name, Object.hasOwn(inputSchema.properties ?? {}, "idempotencyKey")]).toEqual([name, !reads])
      expect([name, (title ?? "").length > 5]).toEqual([name, true])
      if (name.includes("webhook") || name === "list_event_types") {
        expect(description).toContain(`Needs the scope webhook-endpoints:${reads ? "read" : "write"}.`)
      } else {
        expect([name, openWorldHint, description.includes(`:${reads ? "read" : "write"}.`)]).toEqual([name, true, true])
      }
      expect(inputSchema).toMatchObject({ type: "object", additionalProperties: false })
      expect(outputSchema?.type).toBe("object")
      // Every client reads them, whatever it knows of JSON Schema
      expect(JSON.stringify([inputSchema, outputSchema])).not.toMatch(/\$ref|\$id|\$defs|\\\\p\{/)
    }
    const expected = (hint: "destructiveHint" | "idempotentHint", named: RegExp) =>
      expect(tools.filter(({ annotations }) => annotations?.[hint] === true).map(({ name }) => name)).toEqual(
        names.filter((name) => named.test(name))
      )
    expected("destructiveHint", /^(cancel|delete|expire|rotate|set|update)_|^create_refund$/)
    // A product may get another default price each time, a session another payer
    expected(
      "idempotentHint",
      /^(cancel|delete|expire|set|update(?!_product$))_|^create_(?!checkout_session|webhook_endpoint)/
    )
    const shown = tools.find(({ name }) => name === "create_webhook_endpoint")?.inputSchema
    expect(shown?.required).toEqual(["name", "url", "events"])
    expect(Object.keys(Object(shown?.properties?.["filters"]).properties)).toEqual([
      "currencies",
      "amountMin",
      "amountMax",
      "products",
      "prices",
      "metadata"
    ])
  })

  it.scoped("manages a destination from its creation to its rotated secret, as the HTTP API shows it", function* () {
    const { mcp, overRest } = yield* start
    const consumer = yield* makeConsumer
    expect((yield* mcp.call("list_event_types")).json).toEqual({ data: eventTypes })

    const endpoint = yield* create(mcp, consumer.url, { filters: { currencies: ["brl"], metadata: { shop: "1" } } })
    expect(endpoint).toMatchObject({ active: true, environment: "sandbox", filters: { currencies: ["brl"] } })
    expect(endpoint.signingSecret).toMatch(/^whsec_[A-Za-z0-9_-]{43}$/)

    const listed = yield* mcp.call("list_webhook_endpoints")
    const mine = rows(listed.json).find(({ id }) => id === endpoint.id)
    expect(mine).toMatchObject({ id: endpoint.id, name: "Shop", recentFailures: 0 })
    expect(JSON.stringify(listed.json)).not.toContain("whsec_")

    const paused = yield* mcp.call("set_webhook_endpoint_active", { endpointId: endpoint.id, active: false })
    expect(paused.json).toMatchObject({ id: endpoint.id, active: false })
    expect((yield* overRest("GET", `/endpoints/${endpoint.id}`)).json).toEqual(paused.json)
    const refused = yield* mcp.call("send_webhook_test_event", { endpointId: endpoint.id, type: "payout.paid" })
    expect(refused).toMatchObject({ isError: true, json: { code: "endpoint_paused" } })
    yield* mcp.call("set_webhook_endpoint_active", { endpointId: endpoint.id, active: true })

    const rotated = yield* mcp.call("rotate_webhook_secret", { endpointId: endpoint.id })
    const secret = String(rotated.json["signingSecret"])
    expect(secret).toMatch(/^whsec_/)
    expect(secret).not.toBe(endpoint.signingSecret)

    const test = yield* mcp.call("send_webhook_test_event", { endpointId: endpoint.id, type: "payout.paid" })
    expect(test.json).toMatchObject({ test: true, state: "queued" })
    expect(yield* settled(mcp, String(test.json["id"]), "delivered")).toMatchObject({
      endpointId: endpoint.id,
      test: true,
      event: { type: "payout.paid", test: true }
    })
    const received = consumer.received.find(({ headers }) => headers["service-delivery-id"] === String(test.json["id"]))
    const header = String(received?.headers["service-signature"])
    for (const key of [secret, endpoint.signingSecret]) {
      const event = verifyWebhook({ body: received?.body ?? "", header, secret: key, livemode: false })
      expect(event.test).toBe(true)
    }
  })

  it.scoped("shows what a destination missed while it was paused", function* () {
    const { baseUrl } = yield* TestService
    const { id: endpointId, send, tenant } = yield* makeDestination()
    const mcp = yield* overHttp(baseUrl, tenant.key)
    yield* mcp.call("set_webhook_endpoint_active", { endpointId, active: false })
    yield* payment(tenant)
    const skipped = yield* mcp.call("list_skipped_webhook_events", { endpointId, limit: 5 })
    expect(skipped.json).toMatchObject({ data: [{ type: "payment.succeeded" }], has_more: false })
    expect(skipped.json).toEqual((yield* send("GET", "/skipped")).json)
    const after = yield* mcp.call("list_skipped_webhook_events", {
      endpointId,
      starting_after: rows(skipped.json)[0]?.["eventId"]
    })
    expect(after.json["data"]).toEqual([])
  })

  it.scoped("changes and deletes a destination", function* () {
    const { consumer, endpointId, mcp, overRest } = yield* startWithEndpoint
    const change = { name: "Bakery", events: ["payout.paid"], filters: { currencies: ["brl"] }, active: false }
    const changed = yield* mcp.call("update_webhook_endpoint", { endpointId, ...change })
    expect(changed.json).toMatchObject({ id: endpointId, url: consumer.url, ...change })
    const path = `/endpoints/${endpointId}`
    expect((yield* overRest("GET", path)).json).toEqual(changed.json)

    const deleted = yield* mcp.call("delete_webhook_endpoint", { endpointId })
    expect(deleted).toMatchObject({ isError: false, json: { id: endpointId, deleted: true } })
    expect((yield* overRest("GET", path)).status).toBe(404)
    const again = yield* mcp.call("delete_webhook_endpoint", { endpointId })
    expect(again).toMatchObject({ isError: true, json: { code: "resource_not_found" } })
  })

  it.scoped("recovers a destination that was out of order, and shows how far that is", function* () {
    const { endpointId, mcp } = yield* startWithEndpoint
    const since = new Date(Date.now() - 3_600_000).toISOString()
    const recovery = yield* mcp.call("recover_webhook_endpoint", { endpointId, since })
    // Test events are not recovered, and nothing else has failed
    expect(recovery.json).toMatchObject({ endpointId, since, total: 0 })
    const finished = yield* eventually(
      "the recovery is finished",
      Effect.map(mcp.call("list_webhook_recoveries", { endpointId }), ({ json }) =>
        Option.liftPredicate(rows(json), ([first]) => first?.["state"] === "finished")
      )
    )
    expect(finished).toMatchObject([{ id: recovery.json["id"], queued: 0, skipped: 0 }])
    const old = yield* mcp.call("recover_webhook_endpoint", { endpointId, since: "2020-01-01T00:00:00Z" })
    expect(old).toMatchObject({ isError: true, json: { code: "validation_failed", fields: ["since"] } })
  })

  it.scoped("shows failed deliveries and re-sends them", function* () {
    const { mcp } = yield* start
    const consumer = yield* makeConsumer
    consumer.answer(400)
    const { id: endpointId } = yield* create(mcp, consumer.url)
    const test = yield* mcp.call("send_webhook_test_event", { endpointId, type: "payment.succeeded" })
    const deliveryId = String(test.json["id"])
    const failed = yield* settled(mcp, deliveryId, "failed")
    expect(failed).toMatchObject({ lastHttpStatus: 400, attempts: [{ number: 1, trigger: "automatic" }] })
    const page = yield* mcp.call("list_webhook_deliveries", { endpointId, state: "failed", limit: 5, created_gte: 0 })
    expect(rows(page.json).map(({ id }) => id)).toEqual([deliveryId])
    expect(page.json["has_more"]).toBe(false)
    expect((yield* mcp.call("list_webhook_deliveries", { endpointId, created_lte: 1 })).json["data"]).toEqual([])

    consumer.answer(204)
    const queued = yield* mcp.call("retry_webhook_delivery", { deliveryId })
    expect(queued.json).toMatchObject({ id: deliveryId, state: "queued" })
    const delivered = yield* settled(mcp, deliveryId, "delivered")
    expect(delivered).toMatchObject({ attempts: [{ number: 1 }, { number: 2, trigger: "manual" }] })
    const again = yield* mcp.call("retry_webhook_delivery", { deliveryId })
    expect(again).toMatchObject({ isError: true, json: { code: "delivery_not_failed" } })
  })

  it.scoped("repeats create, test and rotation safely under a key, which is the HTTP API's too", function* () {
    const { mcp, overRest } = yield* start
    const consumer = yield* makeConsumer
    const body = { name: "Once", url: consumer.url, events: ["payout.paid"] }
    const first = yield* create(mcp, consumer.url, { ...body, idempotencyKey: "mcp-create-1" })
    expect(yield* create(mcp, consumer.url, { ...body, idempotencyKey: "mcp-create-1" })).toEqual(first)
    const repeated = yield* overRest("POST", "/endpoints", { body, headers: { "idempotency-key": "mcp-create-1" } })
    expect(repeated.json).toEqual(first)
    expect(repeated.headers.get("idempotent-replayed")).toBe("true")
    const other = yield* mcp.call("create_webhook_endpoint", {
      ...body,
      name: "Other",
      idempotencyKey: "mcp-create-1"
    })
    expect(other).toMatchObject({ isError: true, json: { code: "idempotency_key_reused" } })

    const endpointId = first.id
    const paused = { endpointId, active: false, idempotencyKey: "mcp-pause-1" }
    expect((yield* mcp.call("set_webhook_endpoint_active", paused)).json).toMatchObject({ active: false })
    yield* mcp.call("update_webhook_endpoint", { endpointId, active: true })
    expect((yield* mcp.call("set_webhook_endpoint_active", paused)).json).toMatchObject({ active: false })
    const path = `/endpoints/${endpointId}`
    expect((yield* overRest("GET", path)).json["active"]).toBe(true)

    const since = new Date(Date.now() - 60_000).toISOString()
    const range = { endpointId, since, types: ["payout.paid"] }
    const { json: replay } = yield* mcp.call("replay_webhook_events", range)
    for (const [tool, args] of [
      ["send_webhook_test_event", { endpointId, type: "payout.paid", idempotencyKey: "mcp-test-1" }],
      ["rotate_webhook_secret", { endpointId, idempotencyKey: "mcp-rotate-1" }],
      ["update_webhook_endpoint", { endpointId, name: "Renamed", idempotencyKey: "mcp-update-1" }],
      ["recover_webhook_endpoint", { endpointId, since, idempotencyKey: "mcp-recover-1" }],
      ["cancel_webhook_replay", { endpointId, replayId: replay["id"], idempotencyKey: "mcp-cancel-1" }],
      ["delete_webhook_endpoint", { endpointId, idempotencyKey: "mcp-delete-1" }]
    ] as const) {
      const once = yield* mcp.call(tool, args)
      expect([tool, once.isError]).toEqual([tool, false])
      expect(yield* mcp.call(tool, args)).toEqual({ ...once, meta: { "connected-payments/replayed": true } })
    }
    const deleted = yield* overRest("DELETE", path, { headers: { "idempotency-key": "mcp-delete-1" } })
    expect([deleted.status, deleted.text]).toEqual([204, ""])
    expect(deleted.headers.get("idempotent-replayed")).toBe("true")

    // Without a key each call is a new one
    const again = yield* create(mcp, consumer.url, body)
    expect(again.id).not.toBe(first.id)
  })

  it.scoped("refuses what every tool lacks and what it does not know, all of it at once", function* () {
    const { mcp, tools } = yield* start
    for (const { inputSchema, name } of tools) {
      const { isError, json } = yield* mcp.call(name, { unknown: 1 })
      expect([name, isError, json["code"], new Set(Object(json["fields"]))]).toEqual([
        name,
        true,
        "validation_failed",
        new Set(["unknown", ...(inputSchema.required ?? [])])
      ])
    }
  })

  it.scoped("refuses bad arguments with every refused field, as the HTTP API does", function* () {
    const { mcp } = yield* start
    const good = { name: "Shop", url: (yield* makeConsumer).url, events: ["payout.paid"] }
    const deep = JSON.parse(`${'{"a":'.repeat(20)}1${"}".repeat(20)}`)
    const invalid = "validation_failed"
    const cases: ReadonlyArray<readonly [string, object, code: string, ...fields: ReadonlyArray<string>]> = [
      ["create_webhook_endpoint", { ...good, name: " ", events: ["payout.paid", "none"] }, invalid, "name", "events.1"],
      ["create_webhook_endpoint", { ...good, idempotencyKey: "short" }, invalid, "idempotencyKey"],
      ["create_webhook_endpoint", { ...good, filters: [] }, invalid, "filters"],
      ["create_webhook_endpoint", { ...good, filters: { tags: [] } }, "integration_filter_unknown", "filters.tags"],
      [
        "create_webhook_endpoint",
        { ...good, filters: { prices: [1] } },
        "integration_filter_invalid",
        "filters.prices.0"
      ],
      ["create_webhook_endpoint", { ...good, url: "https://10.0.0.1/" }, "destination_rejected", "url"],
      ["set_webhook_endpoint_active", { endpointId: "x", active: "yes" }, invalid, "endpointId", "active"],
      ["send_webhook_test_event", { endpointId: nobody, type: "x" }, invalid, "type"],
      ["list_webhook_deliveries", { endpointId: nobody, limit: "5", state: "lost" }, invalid, "limit", "state"],
      ["list_skipped_webhook_events", { endpointId: nobody, starting_after: "svc_evt_x" }, invalid, "starting_after"],
      ["retry_webhook_delivery", { deliveryId: null }, invalid, "deliveryId"],
      ["update_webhook_endpoint", { endpointId: 1, url: "https://shop.example/" }, invalid, "endpointId", "url"],
      ["delete_webhook_endpoint", { endpointId: nobody }, "resource_not_found"],
      ["recover_webhook_endpoint", { endpointId: nobody, since: "today" }, invalid, "since"],
      ["get_webhook_event", { eventId: `svc_evt_${"0".repeat(64)}` }, "resource_not_found"],
      ["get_webhook_event", { eventId: "evt_1" }, invalid, "eventId"],
      ["replay_webhook_events", { endpointId: nobody, types: [] }, invalid, "since", "types"],
      ["cancel_webhook_replay", { endpointId: nobody, replayId: nobody }, "resource_not_found"],
      ["list_products", { limit: "5", active: "true" }, invalid, "limit", "active"],
      ["list_products", { limit: 1.5, starting_after: "x" }, invalid, "limit", "starting_after"],
      ["list_prices", { lookup_keys: Array.from({ length: 11 }, String) }, invalid, "lookup_keys"],
      ["list_charges", { created_gte: -1, created_lte: 1e12 }, invalid, "created_gte", "created_lte"],
      ["get_product", { id: "../prices" }, invalid, "id"],
      ["create_product", { name: "x".repeat(251), metadata: { a: 1 } }, invalid, "name", "metadata.a"],
      ["create_product", { name: deep }, invalid, "name"],
      ["create_product", { name: "Tea", images: ["http://10.0.0.1/tea.png"] }, invalid, "images.0"],
      ["create_price", { currency: "brl", unit_amount: 1 }, invalid, "product"],
      ["create_checkout_session", { mode: "gift", line_items: [] }, invalid, "mode", "line_items"],
      ["create_checkout_page", { title: "", items: [], slug: "mine" }, invalid, "title", "items", "slug"],
      ["create_refund", { payment_intent: "pi_any", charge: "ch_any" }, invalid, "charge"],
      ["cancel_subscription", { id: "sub_any", organizationId: nobody }, invalid, "organizationId"]
    ]
    for (const [tool, args, code, ...fields] of cases) {
      const { isError, json } = yield* mcp.call(tool, { ...args })
      expect([tool, args, isError, json["code"], new Set(Object(json["fields"]))]).toEqual([
        tool,
        args,
        true,
        code,
        new Set(fields)
      ])
      expect(Object.keys(json)).toEqual(["error", "code", "fields", "requestId"])
      const named = fields.filter((field) => code !== invalid || String(json["error"]).includes(field))
      expect([tool, named]).toEqual([tool, fields])
      expect(json["requestId"]).toMatch(/^req_/)
    }
    expect(rows((yield* mcp.call("list_products")).json)).toEqual([])
    const unknown = yield* Effect.promise(() => mcp.client.callTool({ name: "drop_tables" }).catch(String))
    expect(unknown).toContain("There is no such tool")
  })

  it.scoped("shows events, sends them to a destination again, and shows how far that is", function* () {
    const { endpointId, mcp } = yield* startWithEndpoint
    const sent = yield* mcp.call("send_webhook_test_event", { endpointId, type: "payout.paid" })
    const eventId = String(sent.json["eventId"])
    const { json: event } = yield* mcp.call("get_webhook_event", { eventId })
    expect(event).toMatchObject({ id: eventId, test: true, deliveries: [{ id: sent.json["id"], endpointId }] })
    const { json: events } = yield* mcp.call("list_webhook_events", { type: "payout.paid", limit: 100 })
    expect(rows(events).map(({ id }) => id)).toContain(eventId)
    const args = { endpointId, since: new Date(Date.now() - 60_000).toISOString(), idempotencyKey: randomUUID() }
    const { json: replay } = yield* mcp.call("replay_webhook_events", args)
    // Test events are not replayed
    expect(replay).toMatchObject({ endpointId, since: args.since, queued: 0 })
    expect((yield* mcp.call("replay_webhook_events", args)).json).toEqual(replay)
    const { json: listed } = yield* mcp.call("list_webhook_replays", { endpointId })
    expect(rows(listed).map(({ id }) => id)).toEqual([replay["id"]])
    const { json: canceled } = yield* mcp.call("cancel_webhook_replay", { endpointId, replayId: replay["id"] })
    expect(canceled).toMatchObject({ id: replay["id"], state: "finished" })
  })

  it.scoped("says how long to wait where too many tests were sent", function* () {
    const { endpointId, mcp } = yield* startWithEndpoint
    const send = mcp.call("send_webhook_test_event", { endpointId, type: "payout.paid" })
    const answers = yield* Effect.all(Array.from({ length: 6 }, () => send))
    expect(answers.map(({ isError }) => isError)).toEqual([false, false, false, false, false, true])
    expect(answers[5]).toMatchObject({ json: { code: "test_rate_limit_exceeded" } })
    expect(answers[5]?.meta?.["connected-payments/retryAfterSeconds"]).toBeGreaterThan(0)
  })

  it.scoped("asks each key for the scope that the tool needs, before it looks at the arguments", function* () {
    const { tools, organization, service } = yield* start
    const webhookTools = tools.map(({ name }) => name).filter((name) => /webhook|event_types/.test(name))
    const reads = (tool: string) => /^(list|get)_/.test(tool)
    for (const [grant, mayCall] of [
      ["*", () => false],
      ["webhook-endpoints:read", reads],
      ["webhook-endpoints:write", (tool: string) => !reads(tool)],
      ["webhook-endpoints:*", () => true]
    ] as const) {
      const holder = yield* overHttp(service.baseUrl, yield* service.makeKey(organization.id, [grant]))
      for (const tool of webhookTools) {
        const { json } = yield* holder.call(tool, { unknown: 1 })
        const code = mayCall(tool) ? "validation_failed" : "endpoint_management_forbidden"
        expect([grant, tool, json["code"]]).toEqual([grant, tool, code])
      }
    }
  })

  it.scoped("keeps environments and organizations apart", function* () {
    const { endpointId, mcp, organization, service } = yield* startWithEndpoint
    const test = yield* mcp.call("send_webhook_test_event", { endpointId, type: "payout.paid" })
    const deliveryId = String(test.json["id"])
    for (const key of [organization.liveKey, service.stranger.testKey]) {
      const other = yield* overHttp(service.baseUrl, key)
      expect(rows((yield* other.call("list_webhook_endpoints")).json).map(({ id }) => id)).not.toContain(endpointId)
      for (const [tool, args] of [
        ["set_webhook_endpoint_active", { endpointId, active: false }],
        ["rotate_webhook_secret", { endpointId }],
        ["list_webhook_deliveries", { endpointId }],
        ["get_webhook_delivery", { deliveryId }],
        ["retry_webhook_delivery", { deliveryId }]
      ] as const) {
        const { isError, json } = yield* other.call(tool, args)
        expect([tool, isError, json["code"]]).toEqual([tool, true, "resource_not_found"])
      }
    }
    const live = yield* overHttp(service.baseUrl, organization.liveKey)
    const tested = yield* live.call("send_webhook_test_event", { endpointId, type: "payout.paid" })
    expect(tested).toMatchObject({
      isError: true,
      json: { code: expect.stringMatching(/not_found|test_environment/) }
    })
  })

  it.scoped("records the key as the author of what it changes", function* () {
    const { organization, overRest, service } = yield* start
    const consumer = yield* makeConsumer
    const key = yield* service.makeKey(organization.id, ["webhook-endpoints:*"])
    const [row] = yield* Effect.orDie(
      service.sql<{ id: string }>`SELECT id FROM payments.api_keys WHERE last_four = ${key.slice(-4)}`
    )
    const mcp = yield* overHttp(service.baseUrl, key)
    const endpoint = yield* create(mcp, consumer.url)
    yield* mcp.call("set_webhook_endpoint_active", { endpointId: endpoint.id, active: true })
    yield* mcp.call("rotate_webhook_secret", { endpointId: endpoint.id })
    const log = yield* overRest("GET", "/audit-log?limit=100")
    const entries = rows(log.json).filter(({ target }) => Object(target).id === endpoint.id)
    expect(entries.map(({ action }) => action)).toEqual([
      "endpoint.secret_rotated",
      "endpoint.updated",
      "endpoint.created"
    ])
    for (const { author, requestId } of entries) {
      expect(author).toEqual({ kind: "api_key", id: row?.id })
      expect(requestId).toMatch(/^req_/)
    }
  })
})
