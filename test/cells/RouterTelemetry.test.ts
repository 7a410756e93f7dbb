import { randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { type CollectedPoint, type Collector, makeCollector } from "../harness/Collector.ts"
import { eventuallyTrue } from "../harness/Eventually.ts"
import { pathOf, startRouterBed } from "./RouterBed.ts"

const traceId = "0af7651916cd43dd8448eb211c80319c"
const traceparent = `00-${traceId}-b7ad6b7169203331-01`

const exporting = (url: string) => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  OTEL_METRIC_EXPORT_INTERVAL: "200",
  OTEL_METRIC_EXPORT_TIMEOUT: "200",
  OTEL_BSP_SCHEDULE_DELAY: "100",
  OTEL_BLRP_SCHEDULE_DELAY: "100",
  LOG_LEVEL: "INFO"
})

const valueOf = (points: ReadonlyArray<CollectedPoint>, attributes: Readonly<Record<string, unknown>> = {}) =>
  points.find((point) => Object.entries(attributes).every(([name, value]) => point.attributes[name] === value))?.value

/** Spans of requests: statements of the start have some as well. */
const ofRequests = (collector: Collector) => collector.spans().filter(({ kind }) => kind === 2)

describe("a router", { timeout: 120_000 }, () => {
  it.scopedLive("tells operators of each request: by cell and status, what it refused, and how it knew the way", () =>
    Effect.gen(function* () {
      const collector = yield* makeCollector
      const { directoryLine, north, router, south } = yield* startRouterBed(exporting(collector.url))
      const { request } = router
      for (const cell of [north, south, south]) expect((yield* request("GET", pathOf(cell))).status).toBe(200)
      const notify = (body: unknown) => request("POST", "/webhooks/provider", { raw: JSON.stringify(body) })
      yield* notify({ id: "evt_1", account: "acct_south" })
      yield* notify({ id: "evt_2", account: "acct_nobody" })
      yield* notify({ id: "evt_3" })
      directoryLine.cut()
      const unknown = yield* request("GET", `/v2/organizations/${randomUUID()}/provider/products`)
      expect(unknown.status).toBe(503)

      const metric = (name: string, attributes: Readonly<Record<string, unknown>> = {}) =>
        valueOf(collector.metric(`connected_payments.router.${name}`), attributes)
      yield* eventuallyTrue(
        "the export of everything",
        () => metric("refusal.count", { "router.refusal": "route_unknown" }) === 1
      )
      const counted = (name: string, attribute: string) =>
        Object.fromEntries(
          collector
            .metric(`connected_payments.router.${name}`)
            .map(({ attributes, value }) => [String(attributes[attribute]), value])
        )
      expect(metric("request.duration", { "router.cell": "north", "router.status_class": "2xx" })).toBe(3)
      expect(metric("request.duration", { "router.cell": "south", "router.status_class": "2xx" })).toBe(3)
      expect(metric("request.duration", { "router.status_class": "5xx" })).toBe(1)
      expect(counted("notification.count", "router.account")).toEqual({ known: 1, unknown: 1, none: 1 })
      expect(counted("directory.lookup.count", "router.lookup")).toEqual({ remembered: 4, asked: 1, failed: 1 })
      expect(counted("cell.up", "router.cell")).toEqual({ north: 1, south: 1 })
      expect(counted("request.active", "router.cell")).toEqual({ north: 0, south: 0 })
      expect(metric("connection.count")).toBeGreaterThan(0)
      const age = metric("directory.answer_age") ?? Number.NaN
      yield* eventuallyTrue("time without the directory", () => (metric("directory.answer_age") ?? 0) > age + 0.5)

      // What has as many values as there are organizations is in no metric
      const points = [...collector.metricNames()].flatMap((name) => collector.metric(name))
      const values = points.flatMap(({ attributes }) => Object.values(attributes))
      expect(values.filter((value) => /[0-9a-f]{8}-|acct_/.test(String(value)))).toEqual([])

      yield* eventuallyTrue("the log", () => collector.logs().some(({ message }) => message.endsWith("(no cell) 503")))
      const lines = collector.logs().filter(({ attributes }) => attributes["router.by"] !== undefined)
      expect(lines).toHaveLength(7)
      expect(lines[0]).toMatchObject({
        level: "INFO",
        message: "GET by organization to north 200",
        attributes: {
          "http.request.method": "GET",
          "http.response.status_code": 200,
          "router.by": "organization",
          "router.cell": "north",
          "organization.id": north.organization,
          "request.id": "req_of_the_cell"
        }
      })
      expect(lines.at(-1)).toMatchObject({
        level: "ERROR",
        attributes: { "router.refusal": "route_unknown", "request.id": unknown.headers.get("request-id") }
      })
    })
  )

  it.scopedLive("has a span of its own in each trace, links to a stranger's, and is what the cell continues", () =>
    Effect.gen(function* () {
      const collector = yield* makeCollector
      const { north, router } = yield* startRouterBed(exporting(collector.url))
      yield* router.request("GET", pathOf(north), { headers: { traceparent, tracestate: "vendor=1" } })
      yield* eventuallyTrue("the span", () => ofRequests(collector).length > 0)
      const [span] = ofRequests(collector)
      expect(span).toMatchObject({
        name: "route GET",
        kind: 2,
        links: [{ traceId }],
        attributes: { "router.cell": "north", "http.response.status_code": 200, "organization.id": north.organization }
      })
      expect(span?.traceId).not.toBe(traceId)
      // The cell is told of the router's trace, and of no other
      expect(north.seen[0]?.rawHeaders.filter((name) => name.startsWith("trace"))).toEqual(["traceparent"])
      expect(north.seen[0]?.headers["traceparent"]).toBe(`00-${span?.traceId}-${span?.spanId}-01`)
      expect(router.output.stderr).toContain("GET by organization to north 200")
    })
  )

  it.scopedLive("continues the trace of a caller that is trusted, and passes it on as it is if it exports none", () =>
    Effect.gen(function* () {
      const collector = yield* makeCollector
      const trusting = yield* startRouterBed({ ...exporting(collector.url), TRUSTED_TRACE_PARENTS: "127.0.0.1" })
      yield* trusting.router.request("GET", pathOf(trusting.south), { headers: { traceparent } })
      yield* eventuallyTrue("the span", () => ofRequests(collector).length > 0)
      expect(ofRequests(collector)[0]).toMatchObject({ traceId, parentSpanId: "b7ad6b7169203331", links: [] })
      expect(trusting.south.seen[0]?.headers["traceparent"]).toContain(traceId)

      const quiet = yield* startRouterBed({ LOG_REQUESTS: "false", LOG_LEVEL: "INFO" })
      yield* quiet.router.request("GET", pathOf(quiet.south), { headers: { traceparent } })
      expect(quiet.south.seen[0]?.headers["traceparent"]).toBe(traceparent)
      expect(quiet.router.output.stderr).not.toContain("by organization")
    })
  )
})
