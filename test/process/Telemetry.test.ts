import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Redacted, Schema } from "effect"
import { metricTable } from "../../src/platform/telemetry/Metrics.ts"
import { type CollectedSpan, type Collector, makeCollector } from "../harness/Collector.ts"
import { eventuallyTrue } from "../harness/Eventually.ts"
import { freePort } from "../harness/FreePort.ts"
import { createMigratedDatabase } from "../harness/TestDatabase.ts"
import { requestTo } from "../harness/TestService.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { signature } from "../inbound/Notifications.ts"
import { databaseSession, payWithOneFailure } from "./Integrator.ts"
import { dataDirectory, spawnService, startService, stop } from "./ServiceProcess.ts"

const sum = (points: ReturnType<Collector["metric"]>, attributes: Readonly<Record<string, unknown>> = {}): number =>
  points
    .filter((point) => Object.entries(attributes).every(([name, value]) => point.attributes[name] === value))
    .reduce((total, { value }) => total + value, 0)

/** What the provider signed and nobody can read. */
const notifyMalformed = Effect.fnUntraced(function* (directory: string, baseUrl: string) {
  const { providerWebhookSecret } = yield* Effect.flatMap(
    Effect.promise(() => readFile(join(directory, "secrets.json"), "utf8")),
    Schema.decode(Schema.parseJson(Schema.Struct({ providerWebhookSecret: Schema.String })))
  )
  const body = JSON.stringify({ id: "evt_1", api_version: "2030-01-01.next", created: canaryInABody })
  return yield* requestTo(baseUrl)("POST", "/webhooks/provider", {
    raw: body,
    headers: { "stripe-signature": signature(body, { secret: providerWebhookSecret }) }
  })
})

const canaryInABody = "canary-in-a-body"

const notificationsOf = (spans: ReadonlyArray<CollectedSpan>, id: string) =>
  spans.filter(({ attributes, name }) => name === "Inbound.receive" && attributes["notification.id"] === id)

describe("a process that exports over OTLP", () => {
  it.scopedLive(
    "shows a payment from its notification to each attempt and back by trace ids, in traces, metrics and logs",
    function* () {
      const directory = yield* dataDirectory
      const collector = yield* makeCollector
      const service = yield* startService(directory, {
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_SERVICE_NAME: "payments-of-the-test",
        OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
        OTEL_BSP_SCHEDULE_DELAY: "100",
        OTEL_BLRP_SCHEDULE_DELAY: "100",
        OTEL_METRIC_EXPORT_INTERVAL: "300"
      })
      const { local } = service
      const { backend, checkout, consumer, endpoint } = yield* payWithOneFailure(local, yield* databaseSession(local))
      const envelope: { readonly id: string; readonly source: { readonly event_id: string } } = JSON.parse(
        consumer.received[1]?.body.toString() ?? ""
      )
      const unknown = yield* backend.call("GET", "/provider/products/prod_unknown")
      const malformed = yield* notifyMalformed(directory, local.baseUrl)
      expect(malformed.status).toBe(400)
      expect((yield* requestTo(local.baseUrl)("POST", "/webhooks/provider", { raw: "{}" })).status).toBe(400)
      const canary = "canary-in-a-query"
      yield* backend.call("GET", `/no-such-route/${canary}?token=${canary}`)

      yield* eventuallyTrue(
        "both attempts' metrics",
        () => sum(collector.metric("connected_payments.delivery.attempt.duration")) >= 2
      )
      expect((yield* stop(service, "SIGTERM")).code).toBe(0)
      const spans = collector.spans()

      // From the provider's event to every attempt
      const [notification, ...others] = notificationsOf(spans, envelope.source.event_id)
      expect(others).toEqual([])
      expect(notification?.attributes["notification.outcome"]).toBe("delivered")
      // Besides attempts, a statement for several notifications is linked to each of them
      const attempts = spans.filter(
        ({ links, name }) => name === "deliver" && links.some(({ traceId }) => traceId === notification?.traceId)
      )
      expect(
        attempts.map(({ attributes, failed, kind, name }) => [
          name,
          kind,
          attributes["delivery.attempt"],
          failed,
          attributes["http.response.status_code"]
        ])
      ).toEqual([
        ["deliver", 3, 1, true, 500],
        ["deliver", 3, 2, false, 204]
      ])
      for (const { attributes } of attempts) {
        expect(attributes).toMatchObject({
          "endpoint.id": endpoint.id,
          "event.id": envelope.id,
          "organization.id": local.organizationId,
          environment: "sandbox",
          "delivery.id": consumer.received[0]?.headers["service-delivery-id"],
          "server.address": new URL(consumer.url).hostname,
          "server.port": Number(new URL(consumer.url).port)
        })
      }
      expect(attempts[0]?.attributes["error.type"]).toBe("http_error")

      // By the conventions: whose instrumentation it is, who was called, which statement; no status but an error's
      expect(new Set(spans.map(({ scope }) => scope))).toEqual(new Set(["connected-payments"]))
      expect(new Set(spans.map(({ status }) => status.code))).toEqual(new Set([0, 2]))
      expect(spans.filter(({ status }) => (status.message ?? "") !== "")).toEqual([])
      const refusals = spans.filter(({ attributes }) => attributes["http.response.status_code"] === 404)
      expect(
        refusals
          .filter(({ kind }) => kind === 2)
          .map(({ attributes, status }) => [status.code, attributes["error.type"], attributes["api.error.code"]])
          .toSorted()
      ).toEqual([
        [0, undefined, "provider_resource_missing"],
        [0, undefined, "resource_not_found"]
      ])
      const statements = spans.filter(({ attributes }) => attributes["db.query.text"] !== undefined)
      expect(statements.map(({ attributes }) => attributes["db.operation.name"])).toEqual(
        expect.arrayContaining(["SELECT", "INSERT", "UPDATE"])
      )
      for (const { attributes, kind, name } of statements) {
        expect([kind, name]).toEqual([3, `${attributes["db.operation.name"]} ${attributes["db.namespace"]}`])
        expect(attributes["db.operation.name"]).toMatch(/^[A-Z]+$/)
      }
      for (const { attributes } of spans.filter(({ kind }) => kind === 3)) {
        expect(attributes["server.address"]).toEqual(expect.any(String))
        expect(attributes["server.port"]).toEqual(expect.any(Number))
      }
      expect(new Set(collector.contentTypes())).toEqual(new Set(["application/x-protobuf"]))

      // And back: from an attempt's link to the notification's request and the provider's id
      const linked = spans.filter(({ traceId }) => traceId === attempts[1]?.links[0]?.traceId)
      expect(notificationsOf(linked, envelope.source.event_id)).toEqual([notification])
      expect(linked.find(({ kind }) => kind === 2)).toMatchObject({
        name: "POST /webhooks/provider",
        failed: false,
        attributes: { "http.route": "/webhooks/provider", "http.response.status_code": 200 },
        resource: { "service.name": "payments-of-the-test", "deployment.environment.name": "test" }
      })

      // The provider's calls, under the requests that needed them
      const call = spans.find(({ name }) => name === "provider products.create")
      expect(call).toMatchObject({
        kind: 3,
        attributes: { "provider.operation": "products.create", "http.response.status_code": 200 }
      })
      expect(call?.attributes["provider.request_id"]).toMatch(/^req_/)
      expect(call?.attributes["provider.account"]).toMatch(/^[0-9a-f]{16}$/)
      expect(spans.find(({ spanId }) => spanId === call?.parentSpanId)?.traceId).toBe(call?.traceId)

      // Logs: a line for each request and attempt, under their traces
      const logs = collector.logs()
      const lines = logs.filter(({ traceId }) => attempts.some((attempt) => attempt.traceId === traceId))
      expect(lines.map(({ attributes, level }) => [level, attributes["delivery.attempt"]])).toEqual([
        ["WARN", 1],
        ["INFO", 2]
      ])
      expect(lines.map(({ attributes }) => attributes["notification.trace_id"])).toEqual([
        notification?.traceId,
        notification?.traceId
      ])
      const refused = logs.filter(({ attributes }) => attributes["request.id"] === unknown.headers.get("request-id"))
      expect(refused.filter(({ attributes }) => attributes["http.response.status_code"] !== undefined)).toMatchObject([
        {
          level: "WARN",
          severity: 13,
          message: "GET /v2/organizations/:organizationId/provider/products/:id 404",
          attributes: {
            "http.request.method": "GET",
            "organization.id": local.organizationId,
            "author.kind": "api_key",
            "api.error.code": "provider_resource_missing"
          }
        }
      ])

      // Metrics: each that is declared, under its unit and attributes
      expect([...collector.metricNames()].toSorted()).toEqual(
        Object.keys(metricTable)
          // The right key is never refused so
          .filter((name) => name !== "connected_payments.provider.access.refused.count")
          .toSorted()
      )
      for (const [name, { attributes, unit }] of Object.entries(metricTable)) {
        for (const point of collector.metric(name)) {
          expect([name, point.unit, point.scope]).toEqual([name, unit, "connected-payments"])
          const allowed: ReadonlyArray<string> = [...attributes, "installation", "role"]
          expect(point.attributes).toMatchObject({ installation: "local", role: "all" })
          expect(Object.keys(point.attributes).filter((attribute) => !allowed.includes(attribute))).toEqual([])
        }
      }
      const of = collector.metric
      expect(sum(of("http.server.request.duration"), { "http.route": "/webhooks/provider" })).toBeGreaterThan(0)
      expect(sum(of("http.server.request.duration"), { "http.response.status_code": 404 })).toBe(2)
      expect(sum(of("connected_payments.notification.count"), { "notification.outcome": "delivered" })).toBe(1)
      // One that is signed but malformed, one without a signature
      expect(sum(of("connected_payments.notification.count"), { "notification.outcome": "refused" })).toBe(2)
      expect(of("connected_payments.notification.malformed.count")).toMatchObject([
        { value: 1, attributes: { environment: "sandbox", "malformed.part": "event" } }
      ])
      expect(logs.filter(({ message }) => message.includes("malformed"))).toMatchObject([
        {
          level: "ERROR",
          attributes: {
            "request.id": malformed.headers.get("request-id"),
            environment: "sandbox",
            apiVersion: "2030-01-01.next",
            reason: expect.stringContaining("event.data")
          }
        }
      ])
      const attempted = of("connected_payments.delivery.attempt.duration")
      expect(sum(attempted, { "delivery.state": "delivered" })).toBe(1)
      // One that is signed but malformed, one without a signature
      expect(sum(of("connected_payments.notification.count"), { "notification.outcome": "refused" })).toBe(2)
      expect(sum(attempted, { "delivery.state": "queued", "error.type": "http_error" })).toBe(1)
      expect(sum(of("connected_payments.delivery.retry.count"))).toBe(1)
      expect(sum(of("connected_payments.provider.call.duration"), { "provider.operation": "products.create" })).toBe(1)
      expect(sum(of("db.client.connection.count"))).toBeGreaterThan(0)

      // Nothing secret anywhere, the developer's own log included
      const written = { collected: collector.text(), log: service.output.stderr }
      const page = new URL(checkout.url)
      const secrets = {
        "the API key": local.apiKey,
        "the signing secret": endpoint.secret,
        "the payer's page": page.pathname + page.hash,
        "a signature": String(consumer.received[0]?.headers["service-signature"]).split("v1=")[1] ?? "",
        "the consumer's address": new URL(consumer.url).host,
        "a product's name": "Coffee",
        "a query": canary,
        "a refused value": canaryInABody,
        "a payload's amount": '"amount_received"'
      }
      for (const [where, text] of Object.entries(written)) {
        expect(text).toContain(local.organizationId)
        for (const [what, secret] of Object.entries(secrets)) {
          expect([where, what, secret.length > 5 && text.includes(secret)]).toEqual([where, what, false])
        }
      }
    }
  )
})

const production = {
  MODE: "production",
  ROLES: "api",
  MASTER_KEYS: `test:${Buffer.alloc(32).toString("base64")}`,
  PUBLIC_URL: "https://payments.example",
  CHECKOUT_SUCCESS_URL: "https://shop.example/thanks",
  CHECKOUT_CANCEL_URL: "https://shop.example/cart",
  SMTP_URL: "smtp://127.0.0.1:1",
  MAIL_FROM: "payments@payments.example",
  PROVIDER_SANDBOX_SECRET_KEY: "sk_test_production",
  PROVIDER_SANDBOX_WEBHOOK_SECRETS: "whsec_production"
}

const startProduction = Effect.fnUntraced(function* (settings: Readonly<Record<string, string>> = {}) {
  const [{ url }, port] = [yield* createMigratedDatabase, yield* freePort]
  const own = { ...production, DATABASE_URL: Redacted.value(url), PORT: String(port), ...settings }
  return { port, service: yield* spawnService("/nowhere", own) }
})

describe("a process in production", () => {
  it.scopedLive(
    "is not ready with a clock that is ten minutes ahead, and warns of it and of a misspelt setting",
    function* () {
      const ahead = `data:text/javascript,${encodeURIComponent("const now = Date.now; Date.now = () => now() + 600_000")}`
      const misspelt = { DELIVERY_RETENTON: "9 days" }
      const { port, service } = yield* startProduction({ NODE_OPTIONS: `--import=${ahead}`, ...misspelt })
      yield* eventuallyTrue("the service serves", () => service.output.stdout.includes("Serving "), 240_000)
      const ready = yield* requestTo(`http://127.0.0.1:${port}`)("GET", "/health/ready")
      expect([ready.status, ready.text]).toEqual([
        503,
        expect.stringMatching(/This process's clock is (599|60\d) seconds ahead of the database's/)
      ])
      const warned = /"level":"WARN","message":"This machine's clock is \d+ seconds ahead/
      yield* eventuallyTrue("the warning", () => warned.test(service.output.stdout))
      expect(service.output.stdout).toContain(
        "DELIVERY_RETENTON is not a setting, and changes nothing: did you mean DELIVERY_RETENTION?"
      )
    }
  )

  it.scopedLive("writes its log as JSON lines to standard output, the lines of requests among them", function* () {
    const { port, service } = yield* startProduction()
    yield* eventuallyTrue(
      `the service serves: ${service.output.stderr}`,
      () =>
        service.output.stdout.includes(`Serving https://payments.example on 127.0.0.1:${port}`) ||
        service.child.exitCode !== null
    )
    const answer = yield* requestTo(`http://127.0.0.1:${port}`)("GET", "/identity/session?canary=canary")
    yield* stop(service, "SIGTERM")
    expect(service.output.stdout.split("\n").filter((line) => !line.startsWith("{"))).toEqual([""])
    const lines: ReadonlyArray<Record<string, unknown>> = service.output.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line))
    expect(lines.find((line) => line["request.id"] === answer.headers.get("request-id"))).toMatchObject({
      level: "WARN",
      "http.response.status_code": 401,
      time: expect.stringMatching(/^\d{4}-.*Z$/)
    })
    expect(service.output.stdout).not.toContain("canary")
  })
})
