import { performance } from "node:perf_hooks"
import type { SqlError } from "@effect/sql"
import { type Context, Effect } from "effect"
import { Signal } from "../../publishing/Signal.ts"
import type { Attempts } from "./Attempts.ts"
import type { ClaimOptions } from "./Claim.ts"
import { orRest } from "./Claiming.ts"
import type { Begin } from "./Held.ts"
import type { LoopHealth } from "./LoopHealth.ts"
import type { Queue } from "./Queue.ts"
import type { Recording } from "./Recording.ts"
import { newestPerEndpoint, newestRoom, slowRooms, usualCap } from "./Shares.ts"
import { maxClaim, type WorkerOptions } from "./WorkerOptions.ts"

/**
 * The pause between two claims of a kind: in milliseconds, and as a multiple of the previous claim's duration. It
 * doubles, up to `most`, after claims that found nothing.
 */
const every = {
  slow: { millis: 200, most: 200, cost: 5 },
  // While the worker is behind, this is the only wait of a new delivery to an endpoint that keeps up
  newest: { millis: 15, most: 60, cost: 1 }
} as const

interface ClaimingAsideParts {
  readonly options: Pick<WorkerOptions, "lease" | "concurrency" | "concurrencyPerEndpoint">
  readonly queue: Pick<Context.Tag.Service<Queue>, "claim">
  readonly recording: Pick<Recording, "caughtUp">
  readonly attempts: Pick<Attempts, "aside" | "caps" | "held" | "lanes" | "pace">
  readonly begin: Begin
  readonly health: LoopHealth
  /** Whether more may be due than the worker's other claims have reached. */
  readonly isBehind: () => boolean
}

/**
 * Claims whose attempts take no place of the `concurrency`: due deliveries of slow endpoints, within their shares, at
 * most five times per second; and, while the worker is behind, newly due ones, at most some sixty times per second.
 */
export class ClaimingAside {
  readonly #parts: ClaimingAsideParts
  readonly #news = new Signal()
  /** The earliest time of the next claim of each kind, by `performance.now()`, and the pause before it. */
  readonly #notBefore = { slow: 0, newest: 0 }
  readonly #rest: Record<keyof typeof every, number> = { slow: every.slow.millis, newest: every.newest.millis }

  constructor(parts: ClaimingAsideParts) {
    this.#parts = parts
  }

  /** Signals that there may be something to claim. Can be called from anywhere; returns at once. */
  noteNews(): void {
    this.#news.raise()
  }

  /** Waits for a signal, claims, and pauses. */
  readonly round: Effect.Effect<void> = Effect.gen(this, function* () {
    this.#parts.health.rest("has nothing to claim aside")
    yield* this.#news.wait()
    yield* this.#parts.recording.caughtUp(this.#parts.health)
    const leavesSlow = performance.now() < this.#notBefore.slow
    // Uninterruptible: a claim whose attempts do not follow would stay leased until the lease expires
    const claimed = yield* Effect.zipWith(this.#claimNewest, this.#claimSlow, (newest, slow) => newest + slow).pipe(
      Effect.uninterruptible,
      orRest(0)
    )
    const isBehind = this.#parts.isBehind()
    if (isBehind || claimed > 0 || leavesSlow) this.#news.raise()
    const next = isBehind ? Math.min(this.#notBefore.newest, this.#notBefore.slow) : this.#notBefore.slow
    const rest = Math.max(every.newest.millis, next - performance.now())
    this.#parts.health.begin("rests between claims aside", rest)
    yield* Effect.sleep(rest)
  })

  readonly #claimSlow = Effect.suspend(() => {
    const { attempts, options } = this.#parts
    const { pace } = attempts
    if (performance.now() < this.#notBefore.slow) return Effect.succeed(0)
    pace.forgetOld(performance.now(), (endpointId) => attempts.held(endpointId) > 0)
    const askedFor = slowRooms(pace.slow, attempts.lanes(), attempts.aside, options)
    pace.noteAsked(askedFor.map(({ endpointId }) => endpointId))
    const limit = Math.min(
      maxClaim,
      askedFor.reduce((sum, { room }) => sum + room, 0)
    )
    return this.#claim("slow", { look: "asked", limit, askedFor }, usualCap(options))
  })

  readonly #claimNewest = Effect.suspend(() =>
    this.#parts.isBehind() && performance.now() >= this.#notBefore.newest
      ? this.#claim("newest", { look: "newest", limit: newestRoom(this.#parts.attempts.aside) }, newestPerEndpoint)
      : Effect.succeed(0)
  )

  /** Claims and begins deliveries. Returns how many. */
  #claim(
    kind: keyof typeof every,
    wanted: Pick<ClaimOptions, "look" | "limit" | "askedFor">,
    mostPerEndpoint: number
  ): Effect.Effect<number, SqlError.SqlError> {
    const { attempts, begin, options, health, queue } = this.#parts
    const claimedAt = performance.now()
    const { cost, millis, most } = every[kind]
    this.#notBefore[kind] = claimedAt + millis
    if (wanted.limit < 1) return Effect.succeed(0)
    health.begin("claims aside")
    const claimed = queue.claim({
      lease: options.lease,
      perEndpoint: Math.min(mostPerEndpoint, options.concurrencyPerEndpoint),
      inFlight: new Map(Array.from(attempts.lanes(), ([endpointId, { held }]) => [endpointId, held])),
      caps: new Map(Array.from(attempts.caps(), ([endpointId, cap]) => [endpointId, Math.min(mostPerEndpoint, cap)])),
      leftOut: [...attempts.pace.slow.keys()],
      ...wanted
    })
    return Effect.flatMap(claimed, ({ deliveries }) => {
      const now = performance.now()
      const rest = deliveries.length > 0 ? millis : Math.min(most, this.#rest[kind] * 2)
      this.#rest[kind] = rest
      this.#notBefore[kind] = now + Math.max(rest, cost * (now - claimedAt))
      return Effect.as(begin(deliveries, claimedAt, kind), deliveries.length)
    })
  }
}
