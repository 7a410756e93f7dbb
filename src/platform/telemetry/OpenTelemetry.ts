import { hostname } from "node:os"
import * as EffectMetrics from "@effect/opentelemetry/Metrics"
import * as EffectResource from "@effect/opentelemetry/Resource"
import { SqlError } from "@effect/sql"
import {
  type Attributes,
  type AttributeValue,
  DiagLogLevel,
  diag,
  type HrTime,
  type Span as OtelSpan,
  type Tracer as OtelTracer,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace
} from "@opentelemetry/api"
import { detectResources, envDetector, type Resource, resourceFromAttributes } from "@opentelemetry/resources"
import { BatchLogRecordProcessor, LoggerProvider } from "@opentelemetry/sdk-logs"
import {
  DataPointType,
  type MetricData,
  type MetricProducer,
  PeriodicExportingMetricReader
} from "@opentelemetry/sdk-metrics"
import { AlwaysOnSampler, BasicTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-base"
import {
  Cause,
  Config,
  Context,
  Effect,
  type Exit,
  Inspectable,
  Layer,
  Logger,
  Option,
  Predicate,
  Runtime,
  Tracer
} from "effect"
import { isApiError } from "../errors/Errors.ts"
import { closing, type Export, exporterMillis, type Protocol, type Signals } from "../settings/ExportSettings.ts"
import { version } from "../settings/Version.ts"
import { lineLogger } from "./LogForms.ts"
import { type LineLevel, type LogLine, LogLines } from "./LogLines.ts"
import { Metrics, makeMetrics, unitTag } from "./Metrics.ts"
import { eventLoopMetrics } from "./ProcessMetrics.ts"
import { sqlState } from "./ServerErrors.ts"
import { KeptSpan } from "./Spans.ts"

/**
 * A span of the program, exported by OpenTelemetry's SDK. Effect's own bridge treats every parent as sampled, marks
 * successes as `Ok`, and writes a failure's message and stack, which may contain anything, into the span. Here a failed
 * span only has an error code, and the log has the rest.
 */

const kinds: Readonly<Record<Tracer.SpanKind, SpanKind>> = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER
}

const hrTime = (nanoseconds: bigint): HrTime => [
  Number(nanoseconds / 1_000_000_000n),
  Number(nanoseconds % 1_000_000_000n)
]

const isPlain = (value: unknown): value is string | number | boolean =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean"

const attributeValue = (value: unknown): AttributeValue => (isPlain(value) ? value : Inspectable.toStringUnknown(value))

const attributesOf = (values: Readonly<Record<string, unknown>>): Attributes =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, attributeValue(value)]))

const spanContextOf = (span: Tracer.AnySpan): SpanContext =>
  span instanceof ExportedSpan
    ? span.exported.spanContext()
    : {
        traceId: span.traceId,
        spanId: span.spanId,
        traceFlags: span.sampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
        isRemote: span._tag === "ExternalSpan"
      }

const linkOf = ({ attributes, span }: Tracer.SpanLink) => ({
  context: spanContextOf(span),
  attributes: attributesOf(attributes)
})

const commands =
  /\b(?:SELECT|INSERT|UPDATE|DELETE|MERGE|CREATE|ALTER|DROP|TRUNCATE|ANALYZE|NOTIFY|LISTEN|SET|SHOW|LOCK)\b/

/** The first command keyword of a statement, skipping `WITH`. Ours are in capitals; other statements begin with it. */
const operationOf = (statement: string): string | undefined =>
  commands.exec(statement)?.[0] ?? /^\s*([a-z]+)/i.exec(statement)?.[1]?.toUpperCase()

/** The type of a failure: one of few values, without details. */
const typeOf = (error: unknown): string => {
  if (error instanceof SqlError.SqlError) return sqlState(error) ?? error._tag
  if (isApiError(error)) return error.code
  if (Predicate.hasProperty(error, "_tag") && typeof error._tag === "string") return error._tag
  return error instanceof Error ? error.name : "_OTHER"
}

class ExportedSpan implements Tracer.Span {
  readonly _tag = "Span"
  readonly name: string
  readonly parent: Option.Option<Tracer.AnySpan>
  readonly context: Context.Context<never>
  readonly kind: Tracer.SpanKind
  readonly links: Array<Tracer.SpanLink>
  readonly attributes = new Map<string, unknown>()
  readonly traceId: string
  readonly spanId: string
  readonly sampled: boolean
  readonly exported: OtelSpan
  status: Tracer.SpanStatus

  constructor(
    tracer: OtelTracer,
    ...[name, parent, context, links, startTime, kind]: Parameters<Tracer.Tracer["span"]>
  ) {
    this.name = name
    this.parent = parent
    this.context = context
    this.kind = kind
    this.links = [...links]
    this.status = { _tag: "Started", startTime }
    this.exported = tracer.startSpan(
      name,
      { kind: kinds[kind], startTime: hrTime(startTime), links: this.links.map(linkOf) },
      Option.isNone(parent) ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, spanContextOf(parent.value))
    )
    const { spanId, traceFlags, traceId } = this.exported.spanContext()
    this.traceId = traceId
    this.spanId = spanId
    this.sampled = (traceFlags & TraceFlags.SAMPLED) !== 0
  }

  attribute(key: string, value: unknown): void {
    // The SQL client sets this to the kind of execution, not the command
    if (value === undefined || value === null || key === "db.operation.name") return
    this.attributes.set(key, value)
    this.exported.setAttribute(key, attributeValue(value))
    if (key === "db.query.text") this.#nameStatement(String(value))
  }

  event(name: string, startTime: bigint, attributes: Readonly<Record<string, unknown>> = {}): void {
    this.exported.addEvent(name, attributesOf(attributes), hrTime(startTime))
  }

  addLinks(links: ReadonlyArray<Tracer.SpanLink>): void {
    for (const link of links) this.links.push(link)
    this.exported.addLinks(links.map(linkOf))
  }

  end(endTime: bigint, exit: Exit.Exit<unknown, unknown>): void {
    this.status = { _tag: "Ended", startTime: this.status.startTime, endTime, exit }
    // By OpenTelemetry's conventions, a success or an interruption has no status
    if (exit._tag === "Failure" && !Cause.isInterruptedOnly(exit.cause)) this.#fail(Cause.squash(exit.cause))
    this.exported.end(hrTime(endTime))
  }

  #nameStatement(statement: string): void {
    const operation = operationOf(statement)
    if (operation === undefined) return
    this.exported.setAttribute("db.operation.name", operation)
    this.exported.updateName(`${operation} ${String(this.attributes.get("db.namespace") ?? "")}`.trim())
  }

  #fail(error: unknown): void {
    if (isApiError(error) && error.status < 500) {
      // A refusal (4xx) is not an error of the span
      this.attribute("api.error.code", error.code)
      return
    }
    if (error instanceof SqlError.SqlError) this.attribute("db.response.status_code", sqlState(error))
    if (!this.attributes.has("error.type")) this.attribute("error.type", typeOf(error))
    this.exported.setStatus({ code: SpanStatusCode.ERROR })
  }
}

/** The metrics over OTLP, read from Effect's registry. */

/** Timeout of the observations before an export; beyond it, the previous values are exported again. */
const lookWithin = "5 seconds"

/** Whether a metric is one of Effect's about fibers: they are registered but not updated, since that costs every fiber. */
const isOfFibers = (name: string): boolean => name.startsWith("effect_fiber_")

/** Attributes that are numbers; Effect's registry stores all of them as text. */
const numbers = ["http.response.status_code"]

const withValues = (metric: MetricData): MetricData =>
  metric.dataPointType === DataPointType.GAUGE
    ? { ...metric, dataPoints: metric.dataPoints.filter(({ value }) => !Number.isNaN(value)) }
    : metric

const complete = (attributes: Attributes, identity: Attributes): void => {
  delete attributes[unitTag]
  Object.assign(attributes, identity)
  for (const name of numbers) {
    if (attributes[name] !== undefined) attributes[name] = Number(attributes[name])
  }
}

/**
 * A producer that runs the observations first, then converts the contents of Effect's registry: the scope is ours,
 * units are not attributes, status codes are numbers, and gauges without a value (`NaN`) are omitted.
 */
const lookingFirst = (
  producer: MetricProducer,
  look: () => Promise<unknown>,
  identity: Attributes
): MetricProducer => ({
  collect: async (options) => {
    await look()
    const collected = await producer.collect(options)
    for (const scope of collected.resourceMetrics.scopeMetrics) {
      scope.scope = { name: "connected-payments", version }
      scope.metrics = scope.metrics
        .filter(({ descriptor }) => !isOfFibers(descriptor.name))
        .map(withValues)
        .filter(({ dataPoints }) => dataPoints.length > 0)
      for (const { dataPoints } of scope.metrics) {
        for (const { attributes } of dataPoints) complete(attributes, identity)
      }
    }
    return collected
  }
})

const metricExporter = (protocol: Protocol) =>
  Effect.promise(() =>
    protocol === "http/json"
      ? import("@opentelemetry/exporter-metrics-otlp-http")
      : import("@opentelemetry/exporter-metrics-otlp-proto")
  ).pipe(Effect.map(({ OTLPMetricExporter }) => new OTLPMetricExporter()))

/** Collects metrics and exports them, every `OTEL_METRIC_EXPORT_INTERVAL`. */
export const exportMetrics = (resource: Resource, protocol: Protocol): Effect.Effect<Export> =>
  Effect.gen(function* () {
    const { look, writer } = makeMetrics()
    const exportIntervalMillis = yield* exporterMillis("OTEL_METRIC_EXPORT_INTERVAL", 60_000)
    const timeout = yield* exporterMillis("OTEL_METRIC_EXPORT_TIMEOUT", 30_000)
    const runPromise = Runtime.runPromise(yield* Effect.runtime<never>())
    const producer = yield* Effect.provideService(EffectMetrics.makeProducer, EffectResource.Resource, resource)
    const reader = new PeriodicExportingMetricReader({
      exporter: yield* metricExporter(protocol),
      exportIntervalMillis,
      // The SDK rejects a timeout longer than the interval
      exportTimeoutMillis: Math.min(timeout, exportIntervalMillis)
    })
    const looked = look.pipe(
      Effect.timeoutOption(lookWithin),
      Effect.catchAllCause((cause) => Effect.logDebug("A metric could not be observed", cause)),
      Effect.withTracerEnabled(false)
    )
    // On each metric, since backends keep a resource's attributes apart: alerts tell installations by them
    const { [installationAttribute]: installation = "", "service.role": role = "" } = resource.attributes
    reader.setMetricProducer(lookingFirst(producer, () => runPromise(looked), { installation, role }))
    const metrics = Layer.succeed(Metrics, writer)
    return { layer: Layer.merge(metrics, Layer.provide(eventLoopMetrics, metrics)), close: () => reader.shutdown() }
  })

/** Exports over OTLP with OpenTelemetry's own SDK. Loaded only if something is exported. */

/** The log over OTLP: the same lines as written, each with its span. */

const severities = { TRACE: 1, DEBUG: 5, INFO: 9, WARN: 13, ERROR: 17, FATAL: 21 } as const satisfies Record<
  LineLevel,
  number
>

/** Attributes as the protocol allows them; other values become JSON. */
const lineAttributes = ({ attributes }: LogLine): Record<string, string | number | boolean> =>
  Object.fromEntries(
    Object.entries(attributes).flatMap(([name, value]) => {
      if (value === undefined) return []
      const plain = typeof value === "string" || typeof value === "number" || typeof value === "boolean"
      return [[name, plain ? value : JSON.stringify(value)]]
    })
  )

const logExporter = (protocol: Protocol) =>
  Effect.promise(() =>
    protocol === "http/json"
      ? import("@opentelemetry/exporter-logs-otlp-http")
      : import("@opentelemetry/exporter-logs-otlp-proto")
  ).pipe(Effect.map(({ OTLPLogExporter }) => new OTLPLogExporter()))

/**
 * Whether a line is exported. Successes of unsampled traces are omitted, as their spans are: a line for each attempt
 * would cost more than the rest of its delivery. Warnings and errors are always exported.
 */
const isExported = ({ level, span }: LogLine): boolean =>
  severities[level] >= severities.WARN || span === null || (span !== "not sampled" && span.sampled)

/** Exports messages and lines, in addition to writing them. */
const exportLogs = (resource: Resource, protocol: Protocol): Effect.Effect<Export> =>
  Effect.gen(function* () {
    const written = yield* LogLines
    const scheduledDelayMillis = yield* exporterMillis("OTEL_BLRP_SCHEDULE_DELAY", 1000)
    const exporter = yield* logExporter(protocol)
    const provider = new LoggerProvider({
      resource,
      processors: [new BatchLogRecordProcessor({ exporter, scheduledDelayMillis })]
    })
    const logger = provider.getLogger("connected-payments", version)
    const emit = (line: LogLine) => {
      if (!isExported(line)) return
      logger.emit({
        timestamp: line.time,
        severityNumber: severities[line.level],
        severityText: line.level,
        body: line.message,
        attributes: lineAttributes(line),
        ...(line.span === null || line.span === "not sampled"
          ? {}
          : {
              context: trace.setSpanContext(ROOT_CONTEXT, {
                traceId: line.span.traceId,
                spanId: line.span.spanId,
                traceFlags: line.span.sampled ? TraceFlags.SAMPLED : TraceFlags.NONE
              })
            })
      })
    }
    const lines = Layer.succeed(LogLines, {
      writes: written?.writes ?? (() => true),
      requests: written?.requests ?? true,
      write: (line) => {
        written?.write(line)
        emit(line)
      }
    })
    return {
      layer: Layer.merge(Logger.add(lineLogger(emit)), lines),
      close: () => provider.forceFlush().then(() => provider.shutdown())
    }
  })

const installationAttribute = "service.namespace"

/**
 * The resource that identifies this process; the environment's attributes take precedence. The settings are read here
 * as they are written: a wrong one is reported when all are read. A process keeps its id when it is restarted.
 */
const resource: Effect.Effect<Resource> = Effect.all({
  publicUrl: Config.withDefault(Config.string("PUBLIC_URL"), ""),
  role: Config.withDefault(Config.string("ROLES"), "all"),
  port: Config.withDefault(Config.string("PORT"), "8080")
}).pipe(
  Effect.orDie,
  Effect.map(({ port, publicUrl, role }) =>
    resourceFromAttributes({
      "service.name": "connected-payments",
      "service.version": version,
      [installationAttribute]: URL.canParse(publicUrl) ? new URL(publicUrl).host : "local",
      "service.instance.id": `${hostname()}:${port === "0" ? process.pid : port}`,
      "service.role": role
    }).merge(detectResources({ detectors: [envDetector] }))
  )
)

/** The values of a standard variable of the exporters, the common one and that of each signal. */
const exporterVariables = (name: "ENDPOINT" | "HEADERS"): ReadonlyArray<string> =>
  ["", "_TRACES", "_METRICS", "_LOGS"].map((signal) => process.env[`OTEL_EXPORTER_OTLP${signal}_${name}`] ?? "")

/** The hosts that telemetry is sent to. */
const collectors = (): string =>
  exporterVariables("ENDPOINT")
    .flatMap((url) => (URL.canParse(url) ? [new URL(url).host] : []))
    .join(", ")

/**
 * The code of an export's failure: the system's (`ECONNREFUSED`, `CERT_HAS_EXPIRED`) or an HTTP status. Nothing else of the
 * SDK's message is logged, as it may hold the exporter's headers.
 */
const codeOf = (message: string): string | undefined =>
  /"code":"([A-Z0-9_]{2,40})"/.exec(message)?.[1] ?? (/timed out/i.test(message) ? "timeout" : undefined)

/** How much of a collector's own words is logged, in characters. */
const maxReason = 500

/** A collector's answer, without the exporter's headers, which it may repeat. */
const reasonOf = (refusal: unknown): string =>
  exporterVariables("HEADERS")
    .flatMap((headers) => headers.split(/[=,]/))
    // Values may be percent-encoded
    .flatMap((part) => [part.trim(), new URLSearchParams(`_=${part.trim()}`).get("_") ?? ""])
    .filter(({ length }) => length > 3)
    .reduce((text, part) => text.replaceAll(part, "…"), String(refusal))
    .slice(0, maxReason)

/** Writes the SDK's export failures to the local log, never to the exported one, at most once a minute. */
const reportFailures = Effect.map(LogLines, (lines) => {
  if (lines === null) return
  // The SDK fails on each export
  const saying = (message: string) => {
    let saidAt = Number.NEGATIVE_INFINITY
    return (attributes: LogLine["attributes"]) => {
      const now = performance.now()
      if (now - saidAt < 60_000) return
      saidAt = now
      if (lines.writes("WARN")) lines.write({ level: "WARN", message, time: Date.now(), span: null, attributes })
    }
  }
  const failed = saying("Telemetry could not be exported: see the collector, and the OTEL_EXPORTER_OTLP_* variables")
  const refusedInPart = saying("The collector has refused a part of the telemetry")
  const error = (message: string) => failed({ code: codeOf(message), collector: collectors() })
  const warn = (message: string, refusal: unknown) => {
    if (message.startsWith("Received Partial Success")) refusedInPart({ reason: reasonOf(refusal) })
  }
  const quiet = () => {}
  diag.setLogger({ error, warn, info: quiet, debug: quiet, verbose: quiet }, DiagLogLevel.WARN)
})

const traceExporter = (protocol: Protocol) =>
  Effect.promise(() =>
    protocol === "http/json"
      ? import("@opentelemetry/exporter-trace-otlp-http")
      : import("@opentelemetry/exporter-trace-otlp-proto")
  ).pipe(Effect.map(({ OTLPTraceExporter }) => new OTLPTraceExporter()))

/** Exports traces. The environment sets the sampler; spans that must be kept use a provider that samples all. */
const exportTraces = (resource: Resource, protocol: Protocol): Effect.Effect<Export> =>
  Effect.map(traceExporter(protocol), (exporter) => {
    const processor = new BatchSpanProcessor(exporter)
    const tracerWith = (sampler: { readonly sampler?: AlwaysOnSampler }) =>
      new BasicTracerProvider({ ...sampler, resource, spanProcessors: [processor] }).getTracer(
        "connected-payments",
        version
      )
    const sampled = tracerWith({})
    const kept = tracerWith({ sampler: new AlwaysOnSampler() })
    const layer = Layer.setTracer(
      Tracer.make({
        span: (name, parent, context, ...rest) =>
          new ExportedSpan(Context.get(context, KeptSpan) ? kept : sampled, name, parent, context, ...rest),
        context: (execution) => execution()
      })
    )
    return { layer, close: () => processor.forceFlush().then(() => processor.shutdown()) }
  })

export const openTelemetryLayer = (signals: Signals): Layer.Layer<never> =>
  Layer.unwrapScoped(
    Effect.gen(function* () {
      const named = yield* resource
      yield* reportFailures
      const exports = yield* Effect.all([
        ...(signals.traces === null ? [] : [exportTraces(named, signals.traces)]),
        ...(signals.metrics === null ? [] : [exportMetrics(named, signals.metrics)]),
        ...(signals.logs === null ? [] : [exportLogs(named, signals.logs)])
      ])
      yield* Effect.addFinalizer(() => closing(exports))
      return exports.reduce((all: Layer.Layer<never>, { layer }) => Layer.merge(all, layer), Layer.empty)
    })
  )
