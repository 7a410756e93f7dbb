import { DiagLogLevel, diag } from "@opentelemetry/api"
import { detectResources, envDetector, type Resource, resourceFromAttributes } from "@opentelemetry/resources"
import { AlwaysOnSampler, BasicTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-base"
import { Context, Effect, Layer, Tracer } from "effect"
import { closing, type Export, type Protocol, type Signals } from "../settings/ExportSettings.ts"
import { version } from "../settings/Version.ts"
import { ExportedSpan } from "./ExportedSpan.ts"
import { LogLines } from "./LogLines.ts"
import { exportLogs } from "./OpenTelemetryLogs.ts"
import { exportMetrics } from "./OpenTelemetryMetrics.ts"
import { KeptSpan } from "./Spans.ts"

/** Exports over OTLP by OpenTelemetry's own SDK. Loaded only where something is exported. */

/** Which process of the service it is; what the environment says of it goes first. */
const resource: Effect.Effect<Resource> = Effect.sync(() =>
  resourceFromAttributes({
    "service.name": "connected-payments",
    "service.version": version,
    "service.instance.id": crypto.randomUUID()
  }).merge(detectResources({ detectors: [envDetector] }))
)

/** What the SDK says when it can't export goes to the log that is written here, never to the one that it exports. */
const reportFailures = Effect.map(LogLines, (lines) => {
  if (lines === null) return
  let saidAt = Number.NEGATIVE_INFINITY
  const say = () => {
    // It fails at each export, and its message may hold the exporter's headers
    if (Date.now() - saidAt < 60_000) return
    saidAt = Date.now()
    if (!lines.writes("WARN")) return
    const message = "Telemetry could not be exported: see the collector, and the OTEL_EXPORTER_OTLP_* variables"
    lines.write({ level: "WARN", message, time: saidAt, span: null, attributes: {} })
  }
  const quiet = () => {}
  diag.setLogger({ error: say, warn: quiet, info: quiet, debug: quiet, verbose: quiet }, DiagLogLevel.ERROR)
})

const traceExporter = (protocol: Protocol) =>
  Effect.promise(() =>
    protocol === "http/json"
      ? import("@opentelemetry/exporter-trace-otlp-http")
      : import("@opentelemetry/exporter-trace-otlp-proto")
  ).pipe(Effect.map(({ OTLPTraceExporter }) => new OTLPTraceExporter()))

/** The sampler is that of the environment; spans that are to be kept have a provider without one. */
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

/** What is on, exported until the scope closes. */
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
