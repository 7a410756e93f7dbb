import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { standardWebhooksSecret } from "../../src/webhooks/index.ts"
import { makeCollector } from "../harness/Collector.ts"
import { makeConsumer } from "../harness/Consumer.ts"
import { eventuallyTrue } from "../harness/Eventually.ts"
import { requestTo } from "../harness/TestService.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { notification, signature } from "../inbound/Notifications.ts"
import { databaseSession, delivered, integrator, payOn } from "./Integrator.ts"
import { dataDirectory, startService, stop } from "./ServiceProcess.ts"

const jsonIn = (directory: string, file: string) =>
  Effect.promise(async (): Promise<Record<string, string>> => JSON.parse(await readFile(join(directory, file), "utf8")))

describe("what a process writes", () => {
  it.scopedLive("holds no secret, however much goes wrong: not its log, its errors, nor its traces", function* () {
    const directory = yield* dataDirectory
    const traces = yield* makeCollector
    const consumer = yield* makeConsumer
    const service = yield* startService(directory, {
      LOG_LEVEL: "all",
      OTEL_EXPORTER_OTLP_ENDPOINT: traces.url,
      OTEL_BSP_SCHEDULE_DELAY: "100"
    })
    const { local } = service
    const backend = integrator(local)
    const plain = requestTo(local.baseUrl)
    const errors: Array<string> = []
    const fails = Effect.fnUntraced(function* (status: number, answer: ReturnType<typeof plain>) {
      const { status: answered, text } = yield* answer
      expect(answered, text).toBe(status)
      errors.push(text)
    })

    // A whole payment
    const endpoint = yield* backend.subscribe(consumer.url)
    const checkout = yield* backend.openCheckout
    yield* payOn(checkout.url)
    const delivery = yield* delivered(local, endpoint.id)
    const paid = yield* backend.get(`/provider/checkout/sessions/${checkout.sessionId}`)

    // And what can go wrong
    const wrongKey = `pk_test_${"x".repeat(43)}`
    yield* fails(401, backend.call("GET", "/provider/products", undefined, { key: wrongKey }))
    yield* fails(403, plain("GET", `/v2/organizations/${crypto.randomUUID()}/provider/products`, { key: local.apiKey }))
    yield* fails(422, backend.call("POST", "/provider/products", { name: local.apiKey, unknown: endpoint.secret }))
    yield* fails(404, backend.call("GET", "/provider/products/prod_unknown"))
    yield* fails(
      422,
      backend.call("POST", "/provider/prices", { product: "prod_unknown", currency: "brl", unit_amount: 1 })
    )
    yield* fails(422, backend.call("POST", "/integrations/endpoints", { name: "x", url: "ftp://x", events: ["x"] }))
    const forged = notification("acct_1")
    yield* fails(
      400,
      plain("POST", "/webhooks/provider", { raw: forged, headers: { "stripe-signature": signature(forged) } })
    )
    const deadEndpoint = yield* backend.subscribe((yield* Effect.scoped(makeConsumer)).url)
    yield* payOn((yield* backend.openCheckout).url)
    yield* eventuallyTrue("the log of the second payment", () => consumer.received.length === 2)
    const session = yield* databaseSession(local)
    yield* Effect.promise(() => session.query("ALTER TABLE payments.endpoints RENAME TO away"))
    yield* fails(500, backend.call("GET", "/integrations/endpoints"))
    const secrets = yield* jsonIn(directory, "secrets.json")
    const storable = notification("acct_1")
    const signed = signature(storable, { secret: secrets["providerWebhookSecret"] ?? "" })
    yield* fails(503, plain("POST", "/webhooks/provider", { raw: storable, headers: { "stripe-signature": signed } }))
    yield* Effect.promise(() => session.query("ALTER TABLE payments.away RENAME TO endpoints"))
    yield* Effect.promise(() => session.end())

    yield* stop(service, "SIGTERM")
    const spans = traces.text()
    for (const name of ["deliver", "Inbound.receive", "provider products.create"]) expect(spans).toContain(name)
    expect(service.output.stderr.length).toBeGreaterThan(0)

    const sessionUrl = new URL(checkout.url)
    const secret = {
      "the API key": local.apiKey,
      "a wrong key": wrongKey,
      "the signing secret": endpoint.secret,
      "the signing secret for Standard Webhooks": standardWebhooksSecret(endpoint.secret).slice("whsec_".length),
      "the other signing secret": deadEndpoint.secret,
      "the provider's secret key": secrets["providerSecretKey"],
      "the provider's webhook secret": secrets["providerWebhookSecret"],
      "the master key": secrets["masterKey"],
      "the database's password": decodeURIComponent(new URL(local.databaseUrl).password),
      "the payer's page": `${sessionUrl.pathname}${sessionUrl.hash}`,
      "a client secret": "_secret_",
      "a signature for the consumer": String(consumer.received[0]?.headers["service-signature"]).split("v1=")[1],
      "a Standard Webhooks signature": String(consumer.received[0]?.headers["webhook-signature"]).split("v1,")[1]
    }
    expect(delivery["state"]).toBe("delivered")
    expect(paid["payment_status"]).toBe("paid")
    const written = { "the log": service.output.stderr, "the traces": spans, "the errors": errors.join("\n") }
    const found = Object.entries(secret).flatMap(([what, value]) => {
      expect([what, (value ?? "").length > 7]).toEqual([what, true])
      return Object.entries(written).flatMap(([where, text]) => {
        const at = text.indexOf(value ?? "")
        return at === -1 ? [] : [`${what} in ${where}: ${text.slice(Math.max(0, at - 200), at)}…`]
      })
    })
    expect(found).toEqual([])
  })
})
