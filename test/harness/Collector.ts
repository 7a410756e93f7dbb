import { createServer } from "node:http"
import { gunzipSync } from "node:zlib"
import { Effect, Schema } from "effect"
import { listening } from "./Listening.ts"
import { otlpJson } from "./OtlpProtobuf.ts"

/** An OTLP collector over real HTTP, which takes the protocol's binary and JSON forms and keeps what it is sent as JSON. */

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
const InstrumentationScope = Schema.Struct({ name: Schema.String, version: Schema.optional(Schema.String) })

const Traces = Schema.Struct({
  resourceSpans: Schema.Array(
    Schema.Struct({
      resource: Resource,
      scopeSpans: Schema.Array(
        Schema.Struct({
          scope: InstrumentationScope,
          spans: Schema.Array(
            Schema.Struct({
              name: Schema.String,
              // As the protocol numbers them: 2 is a server's, 3 a client's
              kind: Schema.Number,
              traceId: Schema.String,
              spanId: Schema.String,
              parentSpanId: Schema.optional(Schema.String),
              attributes: Attributes,
              events: Schema.optionalWith(
                Schema.Array(Schema.Struct({ name: Schema.String, attributes: Attributes })),
                { default: () => [] }
              ),
              links: Schema.optionalWith(
                Schema.Array(Schema.Struct({ traceId: Schema.String, spanId: Schema.String })),
                {
                  default: () => []
                }
              ),
              status: Schema.optionalWith(
                // 0 is unset, 1 `Ok`, 2 an error
                Schema.Struct({ code: Schema.optional(Schema.Number), message: Schema.optional(Schema.String) }),
                { default: () => ({}) }
              )
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
          scope: InstrumentationScope,
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
          scope: InstrumentationScope,
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

const spansOf = (body: string) =>
  Schema.decodeUnknownSync(Schema.parseJson(Traces))(body).resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ scope, spans }) =>
      spans.map(({ attributes, events, parentSpanId, status, ...span }) => ({
        ...span,
        parentSpanId: parentSpanId === "" ? undefined : parentSpanId,
        attributes: plain(attributes),
        events: events.map((event) => ({ ...event, attributes: plain(event.attributes) })),
        failed: status.code === 2,
        status: { code: status.code ?? 0, message: status.message },
        scope: scope.name,
        resource: plain(resource.attributes)
      }))
    )
  )

const pointsOf = (body: string) =>
  new Map(
    Schema.decodeUnknownSync(Schema.parseJson(Metrics))(body).resourceMetrics.flatMap(({ scopeMetrics }) =>
      scopeMetrics.flatMap(({ metrics, scope }) =>
        metrics.map(({ gauge, histogram, name, sum, unit }) => [
          name,
          [gauge, histogram, sum].flatMap((kind) =>
            (kind?.dataPoints ?? []).map(({ asDouble, asInt, attributes, count }) => ({
              scope: scope.name,
              unit,
              attributes: plain(attributes),
              // A sum's or gauge's value, a histogram's count
              value: Number(count ?? asDouble ?? asInt)
            }))
          )
        ])
      )
    )
  )

const logsOf = (body: string) =>
  Schema.decodeUnknownSync(Schema.parseJson(Logs))(body).resourceLogs.flatMap(({ scopeLogs }) =>
    scopeLogs.flatMap(({ logRecords, scope }) =>
      logRecords.map(({ attributes, body, severityNumber, severityText, traceId }) => ({
        scope: scope.name,
        level: severityText,
        severity: severityNumber,
        message: body.stringValue ?? "",
        traceId: traceId === "" ? undefined : traceId,
        attributes: plain(attributes)
      }))
    )
  )

export type CollectedSpan = ReturnType<typeof spansOf>[number]

export type Collector = Effect.Effect.Success<typeof makeCollector>

export const makeCollector = Effect.gen(function* () {
  const received: Array<{
    readonly path: string
    readonly contentType: string
    readonly body: string
    readonly text: string
  }> = []
  const bodies = (path: string) => received.filter((one) => one.path === path).map(({ body }) => body)
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const bytes = Buffer.concat(chunks)
      const sent = request.headers["content-encoding"] === "gzip" ? gunzipSync(bytes) : bytes
      const path = request.url ?? ""
      const contentType = request.headers["content-type"] ?? ""
      const text = sent.toString()
      received.push({
        path,
        contentType,
        text,
        body: contentType === "application/json" ? text : otlpJson(path, sent)
      })
      // An empty answer is the protocol's in both forms
      response.writeHead(200, { "content-type": contentType }).end(contentType === "application/json" ? "{}" : "")
    })
  })
  const points = () => bodies("/v1/metrics").map(pointsOf)
  return {
    url: `http://127.0.0.1:${yield* listening(server)}`,
    spans: () => bodies("/v1/traces").flatMap(spansOf),
    metric: (name: string) =>
      points()
        .findLast((found) => found.has(name))
        ?.get(name) ?? [],
    metricNames: () => new Set(points().flatMap((found) => [...found.keys()])),
    logs: () => bodies("/v1/logs").flatMap(logsOf),
    /** The content types of its requests, newest last. */
    contentTypes: () => received.map(({ contentType }) => contentType),
    text: () => received.map(({ text }) => text).join("\n")
  }
})
