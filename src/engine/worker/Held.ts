import { performance } from "node:perf_hooks"
import { Array, type Context, Duration, Effect } from "effect"
import { turnOfEventLoop } from "../../platform/kit/Fibers.ts"
import type { DeliveryId } from "../../platform/kit/Ids.ts"
import type { Attempts } from "../attempts/Attempts.ts"
import type { NextStep } from "../attempts/Outcome.ts"
import type { Destinations } from "../attempts/Signing.ts"
import type { ClaimedDelivery } from "../queue/Claim.ts"
import type { Queue } from "../queue/Queue.ts"

/** How long a delivery that was claimed but could not be begun waits. */
const notBegunDelay = Duration.seconds(1)

/**
 * How attempts begin: in places of the `concurrency`, or aside, because their endpoint is slow or they are newly due.
 * See `Attempts`.
 */
export type BegunAs = "usual" | "slow" | "newest"

/**
 * How many attempts begin before the event loop gets to other work. Claims aside find hundreds due at once, most to
 * hanging endpoints, and newly due deliveries to others must not wait for them.
 */
const beginAtOnce: Readonly<Record<BegunAs, number>> = { usual: Number.POSITIVE_INFINITY, slow: 8, newest: 32 }

/**
 * The deliveries that a worker has claimed and not yet recorded or released, whether or not their attempts have begun.
 */
export class Held {
  readonly #queue: Context.Tag.Service<Queue>
  readonly #onSettled: () => void
  #count = 0
  #movedAt = 0

  /** `onSettled` is called when some have been recorded or released. */
  constructor(queue: Context.Tag.Service<Queue>, onSettled: () => void) {
    this.#queue = queue
    this.#onSettled = onSettled
  }

  get count(): number {
    return this.#count
  }

  /** When one was last added or removed, by `performance.now()`. */
  get movedAt(): number {
    return this.#movedAt
  }

  /** Adds deliveries that were claimed. */
  add(count: number): void {
    this.#count += count
    this.#movedAt = performance.now()
  }

  /** Removes deliveries that were recorded or released, or whose leases are left to expire. */
  settle(count: number): void {
    this.#count -= count
    this.#movedAt = performance.now()
    this.#onSettled()
  }

  /** Releases deliveries without an attempt into the queue, due after the delay. */
  giveBack(deliveries: ReadonlyArray<ClaimedDelivery>, delay: Duration.Duration): Effect.Effect<void> {
    return (deliveries.length === 0 ? Effect.void : this.#queue.release(deliveries, delay)).pipe(
      Effect.catchAll((error) => Effect.logWarning("Deliveries could not be given back; their leases will end", error)),
      Effect.ensuring(Effect.sync(() => this.settle(deliveries.length)))
    )
  }
}

/** Begins the deliveries claimed at `claimedAt` (by `performance.now()`), or releases them. */
export type Begin = (deliveries: ReadonlyArray<ClaimedDelivery>, claimedAt: number, as: BegunAs) => Effect.Effect<void>

interface BeginParts {
  readonly held: Held
  readonly attempts: Pick<Attempts, "start">
  readonly destinations: Pick<Destinations, "load">
  readonly recording: {
    /** The next step of each delivery whose outcome is not recorded yet, by id. */
    readonly unrecorded: (deliveries: ReadonlyArray<ClaimedDelivery>) => ReadonlyMap<DeliveryId, NextStep>
  }
  /** How long after its claim an attempt may still begin. */
  readonly startWithin: Duration.Duration
}

/** See `Begin`. Releases deliveries that this process has already sent but not yet recorded. */
export const makeBegin =
  ({ attempts, destinations, held, recording, startWithin }: BeginParts): Begin =>
  (claimed, claimedAt, as) => {
    held.add(claimed.length)
    const sent = recording.unrecorded(claimed)
    const deliveries = sent.size === 0 ? claimed : claimed.filter(({ id }) => !sent.has(id))
    const giveBackSent = Effect.forEach(
      claimed.filter(({ id }) => sent.has(id)),
      (delivery) => {
        const next = sent.get(delivery.id)
        return held.giveBack([delivery], next?.state === "queued" ? next.delay : notBegunDelay)
      },
      { discard: true }
    )
    const begin = destinations.load(deliveries).pipe(
      Effect.matchEffect({
        onSuccess: () => {
          const startBefore = claimedAt + Duration.toMillis(startWithin)
          const start = (some: ReadonlyArray<ClaimedDelivery>) => {
            for (const delivery of some) attempts.start(delivery, startBefore, as !== "usual")
          }
          return deliveries.length <= beginAtOnce[as]
            ? Effect.sync(() => start(deliveries))
            : Effect.forEach(
                Array.chunksOf(deliveries, beginAtOnce[as]),
                (some) =>
                  Effect.zipRight(
                    Effect.sync(() => start(some)),
                    turnOfEventLoop
                  ),
                { discard: true }
              )
        },
        onFailure: (error) =>
          Effect.zipRight(
            Effect.logWarning("The destinations of deliveries can't be read", error),
            held.giveBack(deliveries, notBegunDelay)
          )
      })
    )
    return sent.size === 0 ? begin : Effect.zipRight(giveBackSent, begin)
  }
