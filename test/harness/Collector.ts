import { createServer } from "node:http"
import { gunzipSync } from "node:zlib"
import { Effect, Schema, type Scope } from "effect"

/** An OTLP collector over real HTTP, which keeps what it is sent in the protocol's JSON form. */

const Value = Schema.Struct({
  stringValue: Schema.optional(Schema.String),
  intValue: Schema.optional(Schema.Union(Schema.Number, Schema.String)),
  doubleValue: Schema.optional(Schema.Number),
  boolValue: Schema.optional(Schema.Boolean)
})
const Attributes = Schema.optionalWith(Schema.Array(Schema.Struct({ key: Schema.String, value: Value })), {
  default: () => []
})
const Resource = Schema.Struct({ attributes: Attributes })

const Traces = Schema.Struct({
  resourceSpans: Schema.Array(
    Schema.Struct({
      resource: Resource,
      scopeSpans: Schema.Array(
        Schema.Struct({
          spans: Schema.Array(
            Schema.Struct({
              name: Schema.String,
              kind: Schema.Number,
              traceId: Schema.String,
              spanId: Schema.String,
              parentSpanId: Schema.optional(Schema.String),
              attributes: Attributes,
              links: Schema.optionalWith(
                Schema.Array(Schema.Struct({ traceId: Schema.String, spanId: Schema.String })),
                {
                  default: () => []
                }
              ),
              status: Schema.Struct({ code: Schema.optional(Schema.Number), message: Schema.optional(Schema.String) })
            })
          )
        })
      )
    })
  )
})

const Point = Schema.Struct({
  attributes: Attributes,
  asDouble: Schema.optional(Schema.Number),
  asInt: Schema.optional(Schema.Union(Schema.Number, Schema.String)),
  count: Schema.optional(Schema.Union(Schema.Number, Schema.String)),
  sum: Schema.optional(Schema.Number)
})
const Points = Schema.optional(Schema.Struct({ dataPoints: Schema.Array(Point) }))

const Metrics = Schema.Struct({
  resourceMetrics: Schema.Array(
    Schema.Struct({
      resource: Resource,
      scopeMetrics: Schema.Array(
        Schema.Struct({
          metrics: Schema.Array(
            Schema.Struct({ name: Schema.String, unit: Schema.String, sum: Points, gauge: Points, histogram: Points })
          )
        })
      )
    })
  )
})

const Logs = Schema.Struct({
  resourceLogs: Schema.Array(
    Schema.Struct({
      resource: Resource,
      scopeLogs: Schema.Array(
        Schema.Struct({
          logRecords: Schema.Array(
            Schema.Struct({
              severityText: Schema.String,
              severityNumber: Schema.Number,
              body: Value,
              traceId: Schema.optional(Schema.String),
              spanId: Schema.optional(Schema.String),
              attributes: Attributes
            })
          )
        })
      )
    })
  )
})

type Plain = Readonly<Record<string, string | number | boolean | undefined>>

const plain = (attributes: typeof Resource.Type.attributes): Plain =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      value.stringValue ??
        value.doubleValue ??
        value.boolValue ??
        (value.intValue === undefined ? undefined : Number(value.intValue))
    ])
  )

export interface CollectedSpan {
  readonly name: string
  /** As the protocol numbers them: 2 is a server's, 3 a client's. */
  readonly kind: number
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly attributes: Plain
  readonly links: ReadonlyArray<{ readonly traceId: string; readonly spanId: string }>
  readonly failed: boolean
  readonly resource: Plain
}

export interface CollectedPoint {
  readonly unit: string
  readonly attributes: Plain
  /** A sum's or gauge's value, a histogram's count. */
  readonly value: number
}

export interface CollectedLog {
  readonly level: string
  readonly severity: number
  readonly message: string
  readonly traceId: string | undefined
  readonly attributes: Plain
}

/** What was received so far. */
export interface Collector {
  readonly url: string
  readonly spans: () => ReadonlyArray<CollectedSpan>
  /** The points of a metric in the newest export that has it. */
  readonly metric: (name: string) => ReadonlyArray<CollectedPoint>
  readonly metricNames: () => ReadonlySet<string>
  readonly logs: () => ReadonlyArray<CollectedLog>
  /** The paths of its requests, newest last. */
  readonly paths: () => ReadonlyArray<string>
  /** Everything as it came. */
  readonly text: () => string
}

const spansOf = (body: string): ReadonlyArray<CollectedSpan> =>
  Schema.decodeUnknownSync(Schema.parseJson(Traces))(body).resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(({ attributes, parentSpanId, status, ...span }) => ({
        ...span,
        parentSpanId: parentSpanId === "" ? undefined : parentSpanId,
        attributes: plain(attributes),
        failed: status.code === 2,
        resource: plain(resource.attributes)
      }))
    )
  )

const pointsOf = (body: string): ReadonlyMap<string, ReadonlyArray<CollectedPoint>> =>
  new Map(
    Schema.decodeUnknownSync(Schema.parseJson(Metrics))(body).resourceMetrics.flatMap(({ scopeMetrics }) =>
      scopeMetrics.flatMap(({ metrics }) =>
        metrics.map(({ gauge, histogram, name, sum, unit }) => [
          name,
          [gauge, histogram, sum].flatMap((kind) =>
            (kind?.dataPoints ?? []).map(({ asDouble, asInt, attributes, count }) => ({
              unit,
              attributes: plain(attributes),
              value: Number(count ?? asDouble ?? asInt)
            }))
          )
        ])
      )
    )
  )

const logsOf = (body: string): ReadonlyArray<CollectedLog> =>
  Schema.decodeUnknownSync(Schema.parseJson(Logs))(body).resourceLogs.flatMap(({ scopeLogs }) =>
    scopeLogs.flatMap(({ logRecords }) =>
      logRecords.map(({ attributes, body, severityNumber, severityText, traceId }) => ({
        level: severityText,
        severity: severityNumber,
        message: body.stringValue ?? "",
        traceId: traceId === "" ? undefined : traceId,
        attributes: plain(attributes)
      }))
    )
  )

/** Starts a collector; it ends with the scope. */
export const makeCollector: Effect.Effect<Collector, never, Scope.Scope> = Effect.acquireRelease(
  Effect.async<Collector & { readonly close: () => void }>((resume) => {
    const received: Array<{ readonly path: string; readonly body: string }> = []
    const bodies = (path: string) => received.filter((one) => one.path === path).map(({ body }) => body)
    const server = createServer((request, response) => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        const bytes = Buffer.concat(chunks)
        const body = (request.headers["content-encoding"] === "gzip" ? gunzipSync(bytes) : bytes).toString()
        received.push({ path: request.url ?? "", body })
        response.writeHead(200, { "content-type": "application/json" }).end("{}")
      })
    })
    const points = () => bodies("/v1/metrics").map(pointsOf)
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      resume(
        Effect.succeed({
          url: `http://127.0.0.1:${port}`,
          spans: () => bodies("/v1/traces").flatMap(spansOf),
          metric: (name) =>
            points()
              .findLast((found) => found.has(name))
              ?.get(name) ?? [],
          metricNames: () => new Set(points().flatMap((found) => [...found.keys()])),
          logs: () => bodies("/v1/logs").flatMap(logsOf),
          paths: () => received.map(({ path }) => path),
          text: () => received.map(({ body }) => body).join("\n"),
          close: () => {
            server.closeAllConnections()
            server.close()
          }
        })
      )
    })
  }),
  ({ close }) => Effect.sync(close)
)
