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

/** Exports over OTLP with OpenTelemetry's own SDK. Loaded only if something is exported. */

/** The resource that identifies this process; the environment's attributes take precedence. */
const resource: Effect.Effect<Resource> = Effect.sync(() =>
  resourceFromAttributes({
    "service.name": "connected-payments",
    "service.version": version,
    "service.instance.id": crypto.randomUUID()
  }).merge(detectResources({ detectors: [envDetector] }))
)

/** Writes the SDK's export failures to the local log, never to the exported one, at most once a minute. */
const reportFailures = Effect.map(LogLines, (lines) => {
  if (lines === null) return
  // The SDK fails on each export, and its own message may contain the exporter's headers
  const saying = (message: string) => {
    let saidAt = Number.NEGATIVE_INFINITY
    return () => {
      const now = performance.now()
      if (now - saidAt < 60_000) return
      saidAt = now
      if (lines.writes("WARN")) lines.write({ level: "WARN", message, time: Date.now(), span: null, attributes: {} })
    }
  }
  const error = saying("Telemetry could not be exported: see the collector, and the OTEL_EXPORTER_OTLP_* variables")
  const refusedInPart = saying("The collector has refused a part of the telemetry: see its log")
  const warn = (message: string) => {
    if (message.startsWith("Received Partial Success")) refusedInPart()
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

/** Exports the signals that are on, until the scope closes. */
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
