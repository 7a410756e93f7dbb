import { Config, Effect } from "effect"

/** What the exporters of OpenTelemetry's SDK have in common. */

/** A standard variable of milliseconds; as the standard says, one that is no number above 0 counts as absent. */
export const exporterMillis = (name: string, fallback: number): Effect.Effect<number> =>
  Config.string(name).pipe(
    Effect.map((text) => (/^\d{1,9}$/.test(text.trim()) && Number(text) > 0 ? Number(text) : fallback)),
    Effect.orElseSucceed(() => fallback)
  )

/** An exporter's end: what is pending is sent, for so long; a collector that is gone must not hold the process. */
export const closing = (close: () => Promise<unknown>): Effect.Effect<void> =>
  Effect.tryPromise(close).pipe(
    // The SDK has said why; its message may hold the exporter's headers
    Effect.catchAll(() => Effect.logWarning("Pending telemetry could not be sent")),
    Effect.interruptible,
    Effect.timeoutOption("3 seconds"),
    Effect.asVoid
  )
