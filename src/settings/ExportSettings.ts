import { Config, Effect, type Layer } from "effect"
import type { SettingRow } from "./Setting.ts"

/** What the exporters of OpenTelemetry's SDK have in common. */

/** A standard variable of milliseconds; as the standard says, one that is no number above 0 counts as absent. */
export const exporterMillis = (name: string, fallback: number): Effect.Effect<number> =>
  Config.string(name).pipe(
    Effect.map((text) => (/^\d{1,9}$/.test(text.trim()) && Number(text) > 0 ? Number(text) : fallback)),
    Effect.orElseSucceed(() => fallback)
  )

/** The protocols that are spoken, the default first. OTLP has a third, gRPC, which every collector that takes it takes HTTP beside. */
export const protocols = ["http/protobuf", "http/json"] as const

export type Protocol = (typeof protocols)[number]

/** Where everything is exported to, unless a signal has an address of its own. */
export const endpointRow: SettingRow = {
  name: "OTEL_EXPORTER_OTLP_ENDPOINT",
  fallback: "off",
  about: "where traces, metrics and logs are sent; the other standard `OTEL_*` variables are read too",
  bounds: ""
}

/** By which protocol everything is exported, unless a signal has one of its own. */
export const protocolRow: SettingRow = {
  name: "OTEL_EXPORTER_OTLP_PROTOCOL",
  fallback: `\`${protocols[0]}\``,
  about: `${protocols.map((protocol) => `\`${protocol}\``).join(" or ")}; any other stops the start, \`grpc\` included`,
  bounds: ""
}

/** What the table of settings says about the standard variables, which are read as their standard says. */
export const exporterRows: ReadonlyArray<SettingRow> = [endpointRow, protocolRow]

/** By which protocol each signal is exported; null where it is not. */
export type Signals = Readonly<Record<"traces" | "metrics" | "logs", Protocol | null>>

/** A signal that is exported: what the program gets of it, and how what is pending is sent at the end. */
export interface Export {
  readonly layer: Layer.Layer<never>
  readonly close: () => Promise<unknown>
}

/** The exports' end: what is pending is sent, for so long; a collector that is gone must not hold the process. */
export const closing = (exports: ReadonlyArray<Export>): Effect.Effect<void> =>
  Effect.forEach(
    exports,
    ({ close }) =>
      // The SDK has said why; its message may hold the exporter's headers
      Effect.catchAll(Effect.tryPromise(close), () => Effect.logWarning("Pending telemetry could not be sent")),
    { concurrency: "unbounded", discard: true }
  ).pipe(Effect.interruptible, Effect.timeoutOption("3 seconds"), Effect.asVoid)
