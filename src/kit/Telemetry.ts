import { Config, Effect, Layer, Option } from "effect"
import { version } from "./Version.ts"

/**
 * Traces over OTLP, for operators. On where a standard variable names an exporter's address
 * (`OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`), else off at no cost: its packages are not
 * even loaded. Sampler, resource and export settings are the standard `OTEL_*` variables'.
 */

const exporterIsNamed = Config.all([
  Config.option(Config.nonEmptyString("OTEL_EXPORTER_OTLP_ENDPOINT")),
  Config.option(Config.nonEmptyString("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"))
]).pipe(Config.map((addresses) => addresses.some(Option.isSome)))

const exporting = Layer.unwrapEffect(
  Effect.promise(async () => {
    const NodeSdk = await import("@effect/opentelemetry/NodeSdk")
    const { OTLPTraceExporter } = await import("@opentelemetry/exporter-trace-otlp-http")
    const { BatchSpanProcessor } = await import("@opentelemetry/sdk-trace-base")
    return NodeSdk.layer(() => ({
      resource: { serviceName: "connected-payments", serviceVersion: version },
      spanProcessor: new BatchSpanProcessor(new OTLPTraceExporter())
    }))
  })
)

/** The tracer of the process; spans that are pending when it ends are sent, within 3 seconds. */
export const telemetryLayer: Layer.Layer<never> = Layer.unwrapEffect(
  exporterIsNamed.pipe(
    // An unreadable variable is as good as none: telemetry never stops a start
    Effect.orElseSucceed(() => false),
    Effect.map((on) => (on ? Layer.discard(exporting) : Layer.empty))
  )
)
