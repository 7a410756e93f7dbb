import { Config, Effect, Layer, Option } from "effect"
import type { Signals } from "./ExportSettings.ts"

/**
 * Traces, metrics and logs over OTLP, for operators. Each is on where a standard variable names an exporter's address
 * (`OTEL_EXPORTER_OTLP_ENDPOINT` for all, `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` and so on for one), unless
 * `OTEL_SDK_DISABLED` or `OTEL_TRACES_EXPORTER=none` and so on turns it off. Off costs nothing: its packages are not even
 * loaded, and nothing is counted. Sampler, resource and export settings are the standard `OTEL_*` variables'.
 */

const isNamed = (name: string) => Config.map(Config.option(Config.nonEmptyString(name)), Option.isSome)

const exporterIsNamed = (signal: string) =>
  Config.all({
    common: isNamed("OTEL_EXPORTER_OTLP_ENDPOINT"),
    own: isNamed(`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`),
    exporter: Config.withDefault(Config.string(`OTEL_${signal}_EXPORTER`), "otlp")
  }).pipe(Config.map(({ common, exporter, own }) => (common || own) && exporter.trim().toLowerCase() !== "none"))

const isDisabled = Config.string("OTEL_SDK_DISABLED").pipe(
  Config.withDefault("false"),
  Config.map((text) => text.trim().toLowerCase() === "true")
)

const none: Signals = { traces: false, metrics: false, logs: false }

const signals: Effect.Effect<Signals> = Config.all({
  disabled: isDisabled,
  named: Config.all({
    traces: exporterIsNamed("TRACES"),
    metrics: exporterIsNamed("METRICS"),
    logs: exporterIsNamed("LOGS")
  })
}).pipe(
  Effect.map(({ disabled, named }) => (disabled ? none : named)),
  // An unreadable variable is as good as none: telemetry never stops a start
  Effect.orElseSucceed(() => none)
)

/**
 * The tracer, the metrics and the exported log of the process. What is pending when it ends is sent, within 3 seconds.
 * Lines go on being written where they were before.
 */
export const telemetryLayer: Layer.Layer<never> = Layer.unwrapEffect(
  Effect.flatMap(signals, (on) =>
    on.traces || on.metrics || on.logs
      ? Effect.map(
          Effect.promise(() => import("./OpenTelemetry.ts")),
          ({ openTelemetryLayer }) => openTelemetryLayer(on)
        )
      : Effect.succeed(Layer.empty)
  )
)
