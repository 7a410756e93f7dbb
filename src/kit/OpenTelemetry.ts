import * as OtelTracer from "@effect/opentelemetry/Tracer"
import { DiagLogLevel, diag } from "@opentelemetry/api"
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http"
import { detectResources, envDetector, type Resource, resourceFromAttributes } from "@opentelemetry/resources"
import { AlwaysOnSampler, BasicTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-base"
import { Context, Effect, Layer, Tracer } from "effect"
import { closing, type Export, type Signals } from "./ExportSettings.ts"
import { LogLines } from "./LogLines.ts"
import { exportLogs } from "./OpenTelemetryLogs.ts"
import { exportMetrics } from "./OpenTelemetryMetrics.ts"
import { KeptSpan } from "./Spans.ts"
import { version } from "./Version.ts"

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

/** The sampler is that of the environment; spans that are to be kept have a provider without one. */
const exportTraces = (resource: Resource) =>
  Effect.gen(function* () {
    const processor = new BatchSpanProcessor(new OTLPTraceExporter())
    const make = (sampler: { readonly sampler?: AlwaysOnSampler }) => {
      const provider = new BasicTracerProvider({ ...sampler, resource, spanProcessors: [processor] })
      const tracer = provider.getTracer("connected-payments", version)
      return Effect.provideService(OtelTracer.make, OtelTracer.OtelTracer, tracer)
    }
    const sampled = yield* make({})
    const kept = yield* make({ sampler: new AlwaysOnSampler() })
    const layer = Layer.setTracer(
      Tracer.make({
        span: (name, parent, context, ...rest) =>
          (Context.get(context, KeptSpan) ? kept : sampled).span(name, parent, context, ...rest),
        context: (execution, fiber) => sampled.context(execution, fiber)
      })
    )
    return { layer, close: () => processor.forceFlush().then(() => processor.shutdown()) } satisfies Export
  })

/** What is on, exported until the scope closes. */
export const openTelemetryLayer = (signals: Signals): Layer.Layer<never> =>
  Layer.unwrapScoped(
    Effect.gen(function* () {
      const named = yield* resource
      yield* reportFailures
      const exports = yield* Effect.all([
        ...(signals.traces ? [exportTraces(named)] : []),
        ...(signals.metrics ? [exportMetrics(named)] : []),
        ...(signals.logs ? [exportLogs(named)] : [])
      ])
      yield* Effect.addFinalizer(() => closing(exports))
      return exports.reduce((all: Layer.Layer<never>, { layer }) => Layer.merge(all, layer), Layer.empty)
    })
  )
