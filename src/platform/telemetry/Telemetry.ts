import { Config, Effect, Layer, Option, Redacted } from "effect"
import { endpointRow, type Protocol, protocolRow, protocols, type Signals } from "../settings/ExportSettings.ts"
import { exporterHeaders, SettingsError } from "../settings/Settings.ts"

/**
 * Traces, metrics and logs over OTLP, for operators. Each is on if a standard variable sets an exporter's address
 * (`OTEL_EXPORTER_OTLP_ENDPOINT` for all, `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` and so on for one), unless
 * `OTEL_SDK_DISABLED` or `OTEL_TRACES_EXPORTER=none` and so on turns it off. Off costs nothing: its packages are not
 * loaded, and nothing is counted. `OTEL_EXPORTER_OTLP_PROTOCOL`, or `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL` and so on for
 * one, is `http/protobuf`, the default, or `http/json`. Sampler, resource and export settings come from the standard
 * `OTEL_*` variables.
 */

const isNamed = (name: string) => Config.map(Config.option(Config.nonEmptyString(name)), Option.isSome)

const exporterIsNamed = (signal: string) =>
  Config.all({
    common: isNamed(endpointRow.name),
    own: isNamed(`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`),
    exporter: Config.withDefault(Config.string(`OTEL_${signal}_EXPORTER`), "otlp")
  }).pipe(Config.map(({ common, exporter, own }) => (common || own) && exporter.trim().toLowerCase() !== "none"))

const isDisabled = Config.string("OTEL_SDK_DISABLED").pipe(
  Config.withDefault("false"),
  Config.map((text) => text.trim().toLowerCase() === "true")
)

const off = { traces: false, metrics: false, logs: false }

const signals = Config.all({
  disabled: isDisabled,
  named: Config.all({
    traces: exporterIsNamed("TRACES"),
    metrics: exporterIsNamed("METRICS"),
    logs: exporterIsNamed("LOGS")
  })
}).pipe(
  Effect.map(({ disabled, named }) => (disabled ? off : named)),
  // An unreadable variable is treated as absent
  Effect.orElseSucceed(() => off)
)

/** A variable's text; as the standard requires, an empty one is treated as absent. */
const given = (name: string) =>
  Config.string(name).pipe(
    Effect.map((text) => text.trim()),
    Effect.orElseSucceed(() => ""),
    Effect.map((text) => (text === "" ? null : { name, text }))
  )

/** The protocol of a signal: from its own variable, the common one, or the default. */
const protocolOf = (signal: string): Effect.Effect<Protocol, SettingsError> =>
  Effect.gen(function* () {
    const set = (yield* given(`OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`)) ?? (yield* given(protocolRow.name))
    if (set === null) return protocols[0]
    const known = protocols.find((protocol) => protocol === set.text.toLowerCase())
    if (known !== undefined) return known
    return yield* new SettingsError({
      message: `${set.name}: must be ${protocols.join(" or ")}, with the collector's address for HTTP (its usual port is 4318)`
    })
  })

/** The exported signals with their protocols. Fails if a protocol is not supported. */
const exported: Effect.Effect<Signals, SettingsError> = Effect.gen(function* () {
  const on = yield* signals
  return {
    traces: on.traces ? yield* protocolOf("TRACES") : null,
    metrics: on.metrics ? yield* protocolOf("METRICS") : null,
    logs: on.logs ? yield* protocolOf("LOGS") : null
  }
})

/** Headers from files go where the SDK reads them. */
const placeHeaders = Effect.map(exporterHeaders, (headers) => {
  for (const [name, value] of headers) process.env[name] = Redacted.value(value)
})

/**
 * The tracer, the metrics and the exported log of the process. Pending data is sent when the process ends, within 3
 * seconds. Log lines are still written as before. Fails with `SettingsError` if a variable sets an unsupported
 * protocol.
 */
export const telemetryLayer: Layer.Layer<never, SettingsError> = Layer.unwrapEffect(
  Effect.flatMap(exported, (on) =>
    Object.values(on).some((protocol) => protocol !== null)
      ? Effect.map(
          Effect.zipRight(
            placeHeaders,
            Effect.promise(() => import("./OpenTelemetry.ts"))
          ),
          ({ openTelemetryLayer }) => openTelemetryLayer(on)
        )
      : Effect.succeed(Layer.empty)
  )
)
