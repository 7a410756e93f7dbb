import { performance } from "node:perf_hooks"
import type { SqlError } from "@effect/sql"
import { type Context, Effect } from "effect"
import { Signal } from "../../publishing/Signal.ts"
import type { Shards } from "../../storage/Shards.ts"
import type { Attempts } from "./Attempts.ts"
import type { ClaimOptions } from "./Claim.ts"
import { orRest } from "./Claiming.ts"
import type { Begin } from "./Held.ts"
import type { Pulse } from "./Pulse.ts"
import type { Queue } from "./Queue.ts"
import { newestPerEndpoint, newestRoom, slowRooms, usualCap } from "./Shares.ts"
import { maxClaim, type WorkerOptions } from "./WorkerOptions.ts"

/** The rest between two rounds, in milliseconds, and as a multiple of the time the previous round took. */
const every = { millis: 200, cost: 5 }

interface ClaimingAsideParts {
  readonly options: Pick<WorkerOptions, "lease" | "concurrency" | "concurrencyPerEndpoint">
  readonly queue: Context.Tag.Service<Queue>
  readonly attempts: Attempts
  readonly begin: Begin
  readonly pulse: Pulse
  /** The shards whose newest deliveries it takes. */
  readonly shards: () => Shards
  /** Whether more may be due than the worker's other claims have reached. */
  readonly isBehind: () => boolean
}

/**
 * Claims whose attempts take no place of the `concurrency`: what slow endpoints have due, as far as their shares go,
 * and, while the worker is behind, what came due just now. At most five rounds per second.
 */
export class ClaimingAside {
  readonly #parts: ClaimingAsideParts
  readonly #news = new Signal()

  constructor(parts: ClaimingAsideParts) {
    this.#parts = parts
  }

  /** There may be something to do. May be called from anywhere; returns at once. */
  noteNews(): void {
    this.#news.raise()
  }

  /** Waits for news, claims, and rests. */
  readonly round: Effect.Effect<void> = Effect.gen(this, function* () {
    this.#parts.pulse.rest("has nothing to claim aside")
    yield* this.#news.wait()
    const startedAt = performance.now()
    // One step: a claim that is not followed by its attempts would have to wait for its lease to run out
    const claimed = yield* Effect.zipWith(this.#claimNewest, this.#claimSlow, (newest, slow) => newest + slow).pipe(
      Effect.uninterruptible,
      orRest(0)
    )
    if (this.#parts.isBehind() || claimed > 0) this.#news.raise()
    const rest = Math.max(every.millis, every.cost * (performance.now() - startedAt))
    this.#parts.pulse.begin("rests between claims aside", rest)
    yield* Effect.sleep(rest)
  })

  readonly #claimSlow = Effect.suspend(() => {
    const { attempts, options } = this.#parts
    const { pace } = attempts
    pace.forgetOld(performance.now(), (endpointId) => attempts.held(endpointId) > 0)
    const askedFor = slowRooms(pace.slow, attempts.lanes(), attempts.aside, options)
    pace.noteAsked(askedFor.map(({ endpointId }) => endpointId))
    const room = askedFor.reduce((sum, { room }) => sum + room, 0)
    return this.#claim({ look: "asked", limit: Math.min(maxClaim, room), askedFor }, usualCap(options))
  })

  readonly #claimNewest = Effect.suspend(() =>
    this.#parts.isBehind()
      ? this.#claim({ look: "newest", limit: newestRoom(this.#parts.attempts.aside) }, newestPerEndpoint)
      : Effect.succeed(0)
  )

  /** Returns how many deliveries. */
  #claim(
    wanted: Pick<ClaimOptions, "look" | "limit" | "askedFor">,
    mostPerEndpoint: number
  ): Effect.Effect<number, SqlError.SqlError> {
    const { attempts, begin, options, pulse, queue } = this.#parts
    if (wanted.limit < 1) return Effect.succeed(0)
    pulse.begin("claims aside")
    const claimedAt = performance.now()
    const claimed = queue.claim({
      lease: options.lease,
      perEndpoint: Math.min(mostPerEndpoint, options.concurrencyPerEndpoint),
      inFlight: new Map(Array.from(attempts.lanes(), ([endpointId, { held }]) => [endpointId, held])),
      caps: new Map(Array.from(attempts.caps(), ([endpointId, cap]) => [endpointId, Math.min(mostPerEndpoint, cap)])),
      leftOut: [...attempts.pace.slow.keys()],
      shards: this.#parts.shards(),
      ...wanted
    })
    return Effect.flatMap(claimed, ({ deliveries }) => Effect.as(begin(deliveries, claimedAt, true), deliveries.length))
  }
}
