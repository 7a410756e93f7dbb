import { createHmac, randomUUID } from "node:crypto"
import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import { SqlClient } from "@effect/sql"
import { PgClient } from "@effect/sql-pg"
import { Accounts, embeddedServiceLayer, Keys, Organizations, operations } from "connected-payments"
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { isOperation, unsupportedOperations } from "../../src/payments/OwnProvider.ts"
import { stripeProvider, withoutCredentials } from "../../src/payments/stripe/StripeProvider.ts"
import { verifyWebhook } from "../../src/webhooks/index.ts"
import { pixbankLayer } from "../examples/embedding/pixbank.ts"
import { makeConsumer } from "../harness/Consumer.ts"
import { eventually, eventuallyTrue } from "../harness/Eventually.ts"
import { freePort } from "../harness/FreePort.ts"
import { listening } from "../harness/Listening.ts"
import { createTestDatabase } from "../harness/TestDatabase.ts"
import { describe, expect, it } from "../harness/Tests.ts"

// A team's service with a small provider of its own, which can do little: by the names that the package exports

const merchant = "merchant-77"
const secret = "whsec_pixbank"
const author = { kind: "operator", id: "shop" } as const

/** The bank: returns what is asked for, of the one payment that it knows. */
const startBank = Effect.gen(function* () {
  const asked: Array<{ readonly url: string; readonly key: unknown }> = []
  const server = createServer((request, response) => {
    asked.push({ url: request.url ?? "", key: request.headers["idempotency-key"] })
    request.resume().on("end", () => {
      const known = request.url === `/merchants/${merchant}/pix/pix_1/returns`
      response.writeHead(known ? 200 : 404).end(JSON.stringify({ id: "ret_1", cents: 500 }))
    })
  })
  return { asked, url: `http://127.0.0.1:${yield* listening(server)}` }
})

const start = Effect.gen(function* () {
  const bank = yield* startBank
  const port = yield* freePort
  const baseUrl = `http://127.0.0.1:${port}`
  const payments = embeddedServiceLayer({
    publicUrl: baseUrl,
    masterKeys: [{ id: "test", key: Redacted.make(new Uint8Array(32).fill(3)) }],
    provider: pixbankLayer({ apiUrl: bank.url, apiKey: Redacted.make("key"), secret: Redacted.make(secret) }),
    settings: {
      mode: "local",
      host: "127.0.0.1",
      port,
      allowLocalDestinations: true,
      rateLimitPerMinute: 10_000
    }
  })
  const { url } = yield* createTestDatabase()
  const services = yield* Layer.build(Layer.provideMerge(payments, PgClient.layer({ url, maxConnections: 5 })))
  const { id: organizationId } = yield* Context.get(services, Organizations).create({
    name: "Bakery",
    ownerEmail: "ada@example.com",
    author
  })
  yield* Context.get(services, Accounts).link({ organizationId, environment: "sandbox" }, merchant, author)
  const permissions = ["*", "webhook-endpoints:*", "subscriptions:write", "customers:read"] as const
  const { key } = yield* Context.get(services, Keys).create({ organizationId, name: "Shop", permissions, author })
  const ask = (method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) =>
    Effect.promise(async () => {
      const answer = await fetch(`${baseUrl}${path.replace(":organizationId", organizationId)}`, {
        method,
        headers: { "x-api-key": Redacted.value(key), "content-type": "application/json", ...headers },
        ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) })
      })
      const text = await answer.text()
      return { status: answer.status, headers: answer.headers, text, json: (): unknown => JSON.parse(text) }
    })
  const notify = (body: string, signedBy = secret, header = "x-pixbank-signature", path = "/webhooks/provider") =>
    Effect.map(
      ask("POST", path, body, { [header]: createHmac("sha256", signedBy).update(body).digest("hex") }),
      ({ status }) => status
    )
  return { bank, sql: Context.get(services, SqlClient.SqlClient), ask, notify }
})

const notification = (kind: string, pix: object, more: object = {}) =>
  JSON.stringify({
    notification: `n-${randomUUID()}`,
    kind,
    merchant,
    sent: Math.floor(Date.now() / 1000),
    pix,
    ...more
  })

const paid = { id: "pix_1", cents: 1500, returned: 0 }

describe("the calls that operations need", () => {
  it("are calls of the port, all of which Stripe's adapter has", () => {
    const needed = operations.flatMap(({ neededCalls }) => neededCalls)
    expect(needed.length).toBeGreaterThan(40)
    expect(needed.filter((call) => !isOperation(call))).toEqual([])
    expect(unsupportedOperations(operations, stripeProvider(withoutCredentials, null)).size).toBe(0)
  })
})

describe("another provider", () => {
  it.scopedLive("has its notifications delivered as signed events that name it", function* () {
    const { ask, notify, sql } = yield* start
    const consumer = yield* makeConsumer
    const created = yield* ask(
      "POST",
      "/v2/organizations/:organizationId/integrations/endpoints",
      {
        name: "Shop",
        url: consumer.url,
        events: ["payment.succeeded", "payment.refunded", "milestone.first_payment"]
      },
      { "idempotency-key": "endpoint-1" }
    )
    const endpoint = created.json()
    const first = notification("PIX_RECEIVED", paid)
    expect([yield* notify(first), yield* notify(first)]).toEqual([200, 200])
    expect(yield* notify(notification("PIX_RETURNED", { ...paid, returned: 500 }))).toBe(200)
    // Recorded, and nothing else: a kind that it doesn't translate, and an object that is not as expected
    expect(yield* notify(notification("PIX_REVERSED", paid))).toBe(200)
    expect(yield* notify(notification("account.updated", paid))).toBe(200)
    expect(yield* notify(notification("PIX_RECEIVED", { id: "pix_2", cents: "15" }))).toBe(200)
    yield* eventuallyTrue("two deliveries", () => consumer.received.length >= 2)
    const events = consumer.received.map(({ body, headers }) =>
      verifyWebhook({
        body,
        header: String(headers["service-signature"]),
        secret: String(Object(endpoint).signingSecret)
      })
    )
    expect(new Map(events.map(({ data, source, type }) => [type, { data, provider: source.provider }]))).toEqual(
      new Map<string, object>([
        [
          "payment.succeeded",
          { provider: "pixbank", data: { payment_id: "pix_1", amount_received: 1500, currency: "brl" } }
        ],
        [
          "payment.refunded",
          {
            provider: "pixbank",
            data: {
              charge_id: "pix_1",
              payment_id: "pix_1",
              amount_refunded: 500,
              currency: "brl",
              fully_refunded: false
            }
          }
        ]
      ])
    )
    const receipts = yield* sql<{ outcome: string; reason: string | null }>`
        SELECT outcome, reason FROM payments.receipts ORDER BY outcome, received_at`
    expect(receipts.map(({ outcome }) => outcome)).toEqual([
      "delivered",
      "delivered",
      "ignored",
      "ignored",
      "malformed"
    ])
    expect(receipts.at(-1)?.reason).toBe("the provider's translate threw ParseError")
    // The tasks of a provider that lists its events are not begun
    const tasks = yield* eventually(
      "the housekeeping",
      Effect.map(sql<{ name: string }>`SELECT name FROM payments.housekeeping`, (rows) =>
        Option.liftPredicate(
          rows.map(({ name }) => name),
          (names) => names.includes("service")
        )
      )
    )
    expect(tasks.filter((name) => name.startsWith("reconciliation"))).toEqual([])
  })

  it.scopedLive("has forged, old, malformed and oversized notifications refused", function* () {
    const { ask, notify, sql } = yield* start
    const valid = notification("PIX_RECEIVED", paid)
    const statuses = [
      yield* notify(valid, "another secret"),
      yield* notify(valid, secret, "stripe-signature"),
      yield* notify(valid, secret, "x-pixbank-signature", "/webhooks/provider/thin"),
      (yield* ask("POST", "/webhooks/provider", valid)).status,
      (yield* ask("POST", "/webhooks/provider", valid, { "x-pixbank-signature": "é".repeat(9) })).status,
      yield* notify(notification("PIX_RECEIVED", paid, { sent: 1_700_000_000 })),
      yield* notify("{"),
      yield* notify(`${"[".repeat(100_000)}${"]".repeat(100_000)}`),
      yield* notify(notification("PIX_RECEIVED", paid, { notification: "two\nlines" })),
      yield* notify(notification("PIX_RECEIVED", paid, { merchant: 7 }))
    ]
    expect(statuses).toEqual(statuses.map(() => 400))
    expect(yield* notify(`"${"x".repeat(2 * 1024 * 1024)}"`)).toBe(413)
    expect(yield* sql`SELECT 1 FROM payments.receipts`).toEqual([])
  })

  it.scopedLive("answers 501 to what it can't do, and documents only the rest", function* () {
    const { ask, bank } = yield* start
    const refunds = "/v2/organizations/:organizationId/provider/refunds"
    const refund = (payment_intent: string) =>
      ask("POST", refunds, { payment_intent, amount: 500 }, { "idempotency-key": `refund-${payment_intent}` })
    const made = yield* refund("pix_1")
    expect([made.status, made.json()]).toMatchObject([200, { id: "ret_1", amount: 500, status: "succeeded" }])
    expect((yield* refund("pix_1")).headers.get("idempotent-replayed")).toBe("true")
    expect(bank.asked.map(({ url }) => url)).toEqual([`/merchants/${merchant}/pix/pix_1/returns`])
    expect((yield* refund("pix_2")).status).toBe(404)

    const document: { readonly paths: Record<string, Record<string, { readonly operationId: string }>> } = JSON.parse(
      (yield* ask("GET", "/openapi.json")).text
    )
    const documented = new Set(
      Object.values(document.paths).flatMap((methods) => Object.values(methods).map(({ operationId }) => operationId))
    )
    // These need not ask the provider, but are of little use without what it lacks
    const answersAnyway = /^(checkoutPages\.(list|get|update|delete)|productImages\.upload|search\.payments)$/
    for (const { endpoint, group, method, name, path } of operations) {
      const id = `${group}.${name}`
      if (!path.includes("/:organizationId/provider/") || id === "refunds.create") continue
      expect([id, documented.has(id)]).toEqual([id, false])
      if (answersAnyway.test(id)) continue
      const example = JSON.parse(readFileSync(`src/docs/examples/${group}.json`, "utf8"))[name]
      const filled = path.replaceAll(/:(?!organizationId)(\w+)/g, (_, part: string) => example.parameters[part])
      const key = Option.isSome(endpoint.headersSchema) ? { "idempotency-key": `key-of-${id}` } : {}
      const answer = yield* ask(method, filled, example.request, key)
      expect([id, answer.status, answer.json()]).toMatchObject([
        id,
        501,
        { code: "provider_operation_unsupported", requestId: expect.any(String) }
      ])
      expect(answer.headers.get("link")).toContain("/docs/errors#provider_operation_unsupported")
    }
    for (const id of ["refunds.create", "inbound.receive", "endpoints.create", "accountConnection.get"]) {
      expect(documented).toContain(id)
    }
    expect(documented).not.toContain("inbound.receiveThin")

    const reference = (yield* ask("GET", "/docs/reference")).text
    expect(reference).toContain("/docs/reference/refunds")
    expect(reference).not.toContain("/docs/reference/products")
    const rpc = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} }
    const toolsOf = (query: string) =>
      Effect.map(ask("POST", `/mcp${query}`, rpc, { accept: "application/json, text/event-stream" }), ({ text }) =>
        [...text.matchAll(/"name":"(\w+)"/g)].map(([, name]) => name)
      )
    expect(yield* toolsOf("?tools=support")).toEqual(["create_refund"])
    expect(yield* toolsOf("")).not.toContain("list_products")
    const [, unsupported = ""] =
      /<meta name="unsupported" content="([^"]*)">/.exec((yield* ask("GET", "/console")).text) ?? []
    expect(unsupported.split(" ")).toEqual(expect.arrayContaining(["products.list", "paymentIntents.list"]))
    expect(unsupported.split(" ")).not.toContain("refunds.create")
  })
})
