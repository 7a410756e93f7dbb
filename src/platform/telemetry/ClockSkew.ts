import { Context, Effect } from "effect"
import { Metrics } from "./Metrics.ts"

/** How far this process's clock is off: the provider's notifications are refused beyond five minutes (contract 8.3). */

/** Another clock that this process's own is compared with. */
export type OtherClock = "database" | "provider"

/** From here on, each comparison is worth a warning. */
const warnFromMillis = 30_000

/** From here on, the process is not ready. */
const refuseFromMillis = 240_000

/** How often the log warns of the same clock. */
const warnEveryMillis = 600_000

/** How long the provider's time is known without a further call; while a machine is suspended, it is not kept. */
const knownForMillis = 3_600_000

interface Compared {
  /** The other clock's time when `performance.now()`, which nobody sets, was 0. */
  readonly origin: number
  readonly at: number
  readonly warnedAt: number
}

export class ClockComparisons {
  readonly #compared = new Map<OtherClock, Compared>()

  /** Notes another clock's present time. Returns by how much ours is ahead, and whether it is time for a warning. */
  note(other: OtherClock, theirs: number): { readonly ahead: number; readonly warns: boolean } {
    const at = performance.now()
    const ahead = Date.now() - theirs
    const warnedAt = this.#compared.get(other)?.warnedAt ?? Number.NEGATIVE_INFINITY
    const warns = Math.abs(ahead) >= warnFromMillis && at - warnedAt >= warnEveryMillis
    this.#compared.set(other, { origin: theirs - at, at, warnedAt: warns ? at : warnedAt })
    return { ahead, warns }
  }

  /** Why the process is not ready; undefined if it is. The provider's clock decides, the database's if that is unknown. */
  get unfit(): string | undefined {
    const now = performance.now()
    const provider = this.#compared.get("provider")
    const other = provider !== undefined && now - provider.at < knownForMillis ? "provider" : "database"
    const compared = this.#compared.get(other)
    if (compared === undefined) return undefined
    const ahead = Date.now() - now - compared.origin
    return Math.abs(ahead) < refuseFromMillis ? undefined : `This process's clock is ${offText(ahead, other)}.`
  }
}

const offText = (ahead: number, other: OtherClock): string =>
  `${Math.round(Math.abs(ahead) / 1000)} seconds ${ahead > 0 ? "ahead of" : "behind"} the ${other}'s`

/** The comparisons of this process's clock. */
export class ClockSkew extends Context.Reference<ClockSkew>()("connected-payments/telemetry/ClockSkew", {
  defaultValue: () => new ClockComparisons()
}) {}

/** Compares this process's clock with another one's present time, in Unix milliseconds. */
export const compareClock = (other: OtherClock, theirs: number): Effect.Effect<void> =>
  Effect.flatMap(Effect.all([ClockSkew, Metrics]), ([clock, metrics]) => {
    const { ahead, warns } = clock.note(other, theirs)
    metrics?.set("connected_payments.clock.offset", ahead / 1000, [other])
    return warns
      ? Effect.logWarning(
          `This machine's clock is ${offText(ahead, other)}: synchronize it. Beyond five minutes, every notification of the provider is refused`
        )
      : Effect.void
  })
