import * as EffectMetrics from "@effect/opentelemetry/Metrics"
import * as EffectResource from "@effect/opentelemetry/Resource"
import type { Attributes } from "@opentelemetry/api"
import type { Resource } from "@opentelemetry/resources"
import {
  DataPointType,
  type MetricData,
  type MetricProducer,
  PeriodicExportingMetricReader
} from "@opentelemetry/sdk-metrics"
import { Effect, Layer, Runtime } from "effect"
import { type Export, exporterMillis, type Protocol } from "../settings/ExportSettings.ts"
import { version } from "../settings/Version.ts"
import { Metrics, makeMetrics, unitTag } from "./Metrics.ts"
import { eventLoopMetrics } from "./ProcessMetrics.ts"

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

const complete = (attributes: Attributes): void => {
  delete attributes[unitTag]
  for (const name of numbers) {
    if (attributes[name] !== undefined) attributes[name] = Number(attributes[name])
  }
}

/**
 * A producer that runs the observations first, then converts the contents of Effect's registry: the scope is ours,
 * units are not attributes, status codes are numbers, and gauges without a value (`NaN`) are omitted.
 */
const lookingFirst = (producer: MetricProducer, look: () => Promise<unknown>): MetricProducer => ({
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
        for (const { attributes } of dataPoints) complete(attributes)
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
    reader.setMetricProducer(lookingFirst(producer, () => runPromise(looked)))
    const metrics = Layer.succeed(Metrics, writer)
    return { layer: Layer.merge(metrics, Layer.provide(eventLoopMetrics, metrics)), close: () => reader.shutdown() }
  })
