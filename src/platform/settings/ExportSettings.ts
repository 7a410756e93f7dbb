import { Config, Effect, type Layer } from "effect"
import { anySecret } from "./Forms.ts"
import { optional, type SettingRow } from "./Setting.ts"

/** Settings and types that the exporters of OpenTelemetry's SDK share. */

/**
 * A standard variable in milliseconds; as the standard requires, a value that is not a number above 0 is treated as
 * absent.
 */
export const exporterMillis = (name: string, fallback: number): Effect.Effect<number> =>
  Config.string(name).pipe(
    Effect.map((text) => (/^\d{1,9}$/.test(text.trim()) && Number(text) > 0 ? Number(text) : fallback)),
    Effect.orElseSucceed(() => fallback)
  )

/** The supported protocols, the default first. OTLP has a third, gRPC; collectors that accept it accept HTTP too. */
export const protocols = ["http/protobuf", "http/json"] as const

export type Protocol = (typeof protocols)[number]

/** The address that everything is exported to, unless a signal has its own. */
export const endpointRow: SettingRow = {
  name: "OTEL_EXPORTER_OTLP_ENDPOINT",
  fallback: "off",
  about: "where traces, metrics and logs are sent; the other standard `OTEL_*` variables are read too",
  bounds: ""
}

/** The protocol that everything is exported with, unless a signal has its own. */
export const protocolRow: SettingRow = {
  name: "OTEL_EXPORTER_OTLP_PROTOCOL",
  fallback: `\`${protocols[0]}\``,
  about: `${protocols.map((protocol) => `\`${protocol}\``).join(" or ")}; any other stops the start, including \`grpc\``,
  bounds: ""
}

/** The headers that everything is exported with, and those of a signal alone: a collector's key is among them. */
export const headerSettings = ["", "_TRACES", "_METRICS", "_LOGS"].map((signal) =>
  optional(`OTEL_EXPORTER_OTLP${signal}_HEADERS`, anySecret, {
    unset: signal === "" ? "none" : `those of \`OTEL_EXPORTER_OTLP_HEADERS\``,
    about: `the headers of ${signal === "" ? "exports" : `exported ${signal.slice(1).toLowerCase()}`}, such as a collector's key: \`name=value\`, comma-separated`
  })
)

/** The rows of the standard variables in the table of settings; they are read as their standard says. */
export const exporterRows: ReadonlyArray<SettingRow> = [
  endpointRow,
  protocolRow,
  ...headerSettings.map(({ row }) => row)
]

/** The protocol of each signal; null if it is not exported. */
export type Signals = Readonly<Record<"traces" | "metrics" | "logs", Protocol | null>>

/** The export of a signal: the layer that the program needs, and how to send what is pending at the end. */
export interface Export {
  readonly layer: Layer.Layer<never>
  readonly close: () => Promise<unknown>
}

/**
 * Closes exports: sends pending data, for a bounded time, since a collector that is gone must not block the process.
 */
export const closing = (exports: ReadonlyArray<Export>): Effect.Effect<void> =>
  Effect.forEach(
    exports,
    ({ close }) =>
      // The SDK has logged why; its message may hold the exporter's headers
      Effect.catchAll(Effect.tryPromise(close), () => Effect.logWarning("Pending telemetry could not be sent")),
    { concurrency: "unbounded", discard: true }
  ).pipe(Effect.interruptible, Effect.timeoutOption("3 seconds"), Effect.asVoid)
