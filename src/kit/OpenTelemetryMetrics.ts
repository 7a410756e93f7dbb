import * as EffectMetrics from "@effect/opentelemetry/Metrics"
import * as EffectResource from "@effect/opentelemetry/Resource"
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-http"
import type { Resource } from "@opentelemetry/resources"
import { type MetricProducer, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics"
import { Effect, Layer, Runtime } from "effect"
import { type Export, exporterMillis } from "./ExportSettings.ts"
import { Metrics, makeMetrics, unitTag } from "./Metrics.ts"
import { eventLoopMetrics } from "./ProcessMetrics.ts"

/** The metrics over OTLP, taken from Effect's registry. */

/** How long what is looked at before an export may take; then the values before go out again. */
const lookWithin = "5 seconds"

/** Effect's own of its fibers, which are registered but not kept: to keep them costs every fiber. */
const isRuntimes = (name: string): boolean => name.startsWith("effect_fiber_")

/** A producer that looks first, and gives no metric its unit as an attribute. */
const lookingFirst = (producer: MetricProducer, look: () => Promise<unknown>): MetricProducer => ({
  collect: async (options) => {
    await look()
    const collected = await producer.collect(options)
    for (const scope of collected.resourceMetrics.scopeMetrics) {
      scope.metrics = scope.metrics.filter(({ descriptor }) => !isRuntimes(descriptor.name))
      for (const { dataPoints } of scope.metrics) {
        for (const { attributes } of dataPoints) delete attributes[unitTag]
      }
    }
    return collected
  }
})

/** Counts, measures and exports, at `OTEL_METRIC_EXPORT_INTERVAL`. */
export const exportMetrics = (resource: Resource): Effect.Effect<Export> =>
  Effect.gen(function* () {
    const { look, writer } = makeMetrics()
    const exportIntervalMillis = yield* exporterMillis("OTEL_METRIC_EXPORT_INTERVAL", 60_000)
    const timeout = yield* exporterMillis("OTEL_METRIC_EXPORT_TIMEOUT", 30_000)
    const runPromise = Runtime.runPromise(yield* Effect.runtime<never>())
    const producer = yield* Effect.provideService(EffectMetrics.makeProducer, EffectResource.Resource, resource)
    const reader = new PeriodicExportingMetricReader({
      exporter: new OTLPMetricExporter(),
      exportIntervalMillis,
      // The SDK takes none that is longer than the interval
      exportTimeoutMillis: Math.min(timeout, exportIntervalMillis)
    })
    const looked = look.pipe(
      Effect.timeoutOption(lookWithin),
      Effect.catchAllCause((cause) => Effect.logDebug("A metric could not be looked at", cause)),
      Effect.withTracerEnabled(false)
    )
    reader.setMetricProducer(lookingFirst(producer, () => runPromise(looked)))
    const metrics = Layer.succeed(Metrics, writer)
    return { layer: Layer.merge(metrics, Layer.provide(eventLoopMetrics, metrics)), close: () => reader.shutdown() }
  })
