import { BlockList } from "node:net"
import { SqlClient } from "@effect/sql"
import { Context, DefaultServices, Effect, Layer, Logger, Option, Tracer } from "effect"
import { makeInboundRepo } from "../../src/inbound/InboundRepo.ts"
import { lineLogger } from "../../src/platform/telemetry/LogForms.ts"
import { type LogLine, LogLines } from "../../src/platform/telemetry/LogLines.ts"
import { inDatabase, sendRequest, TestService } from "../harness/TestService.ts"
import { expect, layer } from "../harness/Tests.ts"
import { anyReceipt, makeSubscriber, makeTenant, newEventId, notification, signature } from "./Notifications.ts"

/** What was recorded of the requests whose callers had chosen their traces, and of all others nothing but their own. */
const spans: Array<Tracer.Span> = []
const native = Context.get(DefaultServices.liveServices, Tracer.Tracer)

const tracer = Tracer.make({
  span: (name, parent, ...rest) => {
    const span = native.span(name, parent, ...rest)
    Object.defineProperty(span, "sampled", { value: parent._tag === "Some" && parent.value.sampled })
    spans.push(span)
    return span
  },
  context: (execution) => execution()
})

/** The requests of this test come from a caller that may choose. */
const trustedTraceParents = new BlockList()
trustedTraceParents.addAddress("127.0.0.1")

/** What the log says. */
const lines: Array<LogLine> = []
const write = (line: LogLine) => void lines.push(line)

const service = TestService.layer({ roles: { api: true, worker: false }, trustedTraceParents }).pipe(
  Layer.provide([
    Layer.setTracer(tracer),
    Logger.add(lineLogger(write)),
    Layer.succeed(LogLines, { writes: () => true, requests: true, write })
  ])
)

/** Sends a notification with a trace of the sender's; answers the spans of that trace and what deliveries link to. */
const notifyIn = Effect.fnUntraced(function* (traceId: string, sampled: boolean, path = "/webhooks/provider") {
  const { tenant } = yield* makeSubscriber()
  const id = newEventId()
  const body = notification(tenant.accountId, { id })
  const headers = {
    "stripe-signature": signature(body),
    traceparent: `00-${traceId}-00000000000000aa-0${sampled ? 1 : 0}`
  }
  const answer = yield* sendRequest("POST", path, { raw: body, headers })
  const deliveries = yield* inDatabase<{ traceparent: string | null }>`
    SELECT d.traceparent FROM payments.deliveries d JOIN payments.events e
      ON e.organization_id = d.organization_id AND e.environment = d.environment AND e.id = d.event_id
    WHERE e.provider_event_id = ${id}`
  return { answer, id, deliveries, spans: spans.filter((span) => span.traceId === traceId) }
})

layer(service)("a notification", (it) => {
  it.effect(
    "has the provider's event id on each line of the log, at the usual level only if it was not taken",
    function* () {
      const linesOf = (id: string) =>
        lines.flatMap(({ attributes, level, message }) =>
          attributes["notification.id"] === id ? [`${level} ${message}`.replace(/(?<=secret).*/, "")] : []
        )
      const { id } = yield* notifyIn("e".repeat(32), false)
      expect(linesOf(id)).toEqual(["DEBUG POST /webhooks/provider 200"])
      const live = newEventId()
      const body = notification("acct_1Nobody", { id: live, livemode: true })
      const headers = { "stripe-signature": signature(body) }
      expect((yield* sendRequest("POST", "/webhooks/provider", { raw: body, headers })).status).toBe(503)
      expect(linesOf(live)).toEqual([
        "ERROR A live event was signed with a secret",
        "ERROR POST /webhooks/provider 503"
      ])
    }
  )

  it.effect("that is traced has a span of its taking, of its verification and of each statement", function* () {
    const { answer, deliveries, id, spans } = yield* notifyIn("a".repeat(32), true)
    expect(answer.status, answer.text).toBe(200)
    const spanOf = (name: string) => spans.find((span) => span.name === name)
    const taking = spanOf("Inbound.receive")
    expect(spans.map(({ name }) => name).toSorted()).toEqual([
      "Inbound.receive",
      "POST /webhooks/provider",
      "Provider.verifyNotification",
      "sql.execute",
      "sql.execute"
    ])
    expect(Object.fromEntries(taking?.attributes ?? [])).toMatchObject({
      "notification.id": id,
      "notification.type": "payment_intent.succeeded",
      "notification.outcome": "delivered"
    })
    expect(deliveries).toEqual([{ traceparent: `00-${"a".repeat(32)}-${taking?.spanId}-01` }])
    expect(spanOf("POST /webhooks/provider")?.attributes.get("http.response.status_code")).toBe(200)
  })

  it.effect("that is not traced has the request's span alone, which its deliveries refer to", function* () {
    const { answer, deliveries, spans } = yield* notifyIn("b".repeat(32), false)
    expect(answer.status, answer.text).toBe(200)
    expect(spans.map(({ name }) => name)).toEqual(["POST /webhooks/provider"])
    expect(deliveries).toEqual([{ traceparent: `00-${"b".repeat(32)}-${spans[0]?.spanId}-00` }])
  })

  it.effect.each([
    { what: "nothing", every: Number.POSITIVE_INFINITY },
    { what: "5 %", every: 20 },
    { what: "everything, as by default,", every: 1 }
  ])("is stored with as many others in as few transactions where $what is sampled", function* ({ every }) {
    const made = spans.length
    const { sql } = yield* TestService
    const tenant = yield* makeTenant
    const receipts = yield* makeInboundRepo(null).pipe(Effect.provideService(SqlClient.SqlClient, sql))
    const ids = Array.from({ length: 64 }, newEventId)
    const requests: Array<string> = []
    const store = ids.map((providerEventId, index) => {
      const insert = receipts.insert({ ...anyReceipt(tenant.accountId, tenant.id), providerEventId })
      if ((index + 1) % every !== 0) return Effect.withTracerEnabled(insert, false)
      const noting = Effect.map(Effect.currentSpan, ({ spanId }) => void requests.push(spanId))
      return Effect.zipRight(Effect.orDie(noting), insert).pipe(
        Effect.withSpan("request", {
          parent: Tracer.externalSpan({ traceId: "d".repeat(32), spanId: "d".repeat(16) })
        })
      )
    })
    yield* Effect.all(store, { concurrency: "unbounded" })
    // One for each of the two that find nothing under way, and one for those that gather meanwhile; a busy process
    // waits for more
    const [{ transactions = 0 } = {}] = yield* sql<{ transactions: number }>`
        SELECT count(DISTINCT xmin::text)::int AS transactions FROM payments.receipts
        WHERE provider_event_id = ANY (${ids})`
    expect(transactions).toSatisfy((count: number) => count > 0 && count <= 3)
    // And each that is sampled leads to its statement: its own, or one that links to it
    const statements = spans.slice(made).filter(({ name, sampled }) => name === "sql.execute" && sampled)
    const served = statements.flatMap(({ links, parent }) => [parent, ...links.map(({ span }) => Option.some(span))])
    expect(served.flatMap((span) => Option.toArray(span).map(({ spanId }) => spanId)).toSorted()).toEqual(
      requests.toSorted()
    )
    expect(requests).toHaveLength(Math.floor(64 / every))
    expect(statements.length).toBeLessThanOrEqual(transactions)
  })

  it.effect("is taken where the entry's path is written with a query, as where it is not", function* () {
    const { request } = yield* TestService
    const path = "/webhooks/provider?from=provider"
    const { answer, deliveries } = yield* notifyIn("c".repeat(32), false, path)
    expect([answer.status, answer.json]).toEqual([200, { received: true }])
    expect(deliveries).toHaveLength(1)
    for (const unsigned of ["/webhooks/provider", path, "/webhooks/provider/thin"]) {
      const refusal = yield* request("POST", unsigned, { raw: "{}" })
      expect([refusal.status, refusal.json["code"]]).toEqual([400, "signature_invalid"])
      expect(refusal.headers.get("request-id")).toMatch(/^req_/)
    }
  })
})
