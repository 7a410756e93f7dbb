import { type Context, Effect, Schedule } from "effect"
import type { DeliveryId } from "../../platform/kit/Ids.ts"
import type { NextStep } from "../attempts/Outcome.ts"
import type { ClaimedDelivery } from "../queue/Claim.ts"
import type { FinishedAttempt, Queue } from "../queue/Queue.ts"
import { Signal } from "../queue/WakeUp.ts"
import { gatherMillis, maxClaim } from "./Endpoints.ts"
import type { LoopHealth } from "./WorkerLife.ts"

const maxFlush = 2 * maxClaim

const reconnect = Schedule.exponential("100 millis").pipe(
  Schedule.jittered,
  Schedule.union(Schedule.spaced("2 seconds"))
)

/** Records the outcomes of attempts in batches: attempts that end during one batch go into the next. */
export class Recording {
  readonly #queue: Pick<Context.Tag.Service<Queue>, "finish">
  readonly #onRecorded: (count: number) => void
  readonly #health: LoopHealth
  readonly #finished: Array<FinishedAttempt> = []
  #flushing: ReadonlyArray<FinishedAttempt> = []
  /** Closed when a flush fails, until all attempts that had ended by then are recorded. */
  readonly #caughtUp = Effect.unsafeMakeLatch(true)
  #isBehind = false
  readonly #signal = new Signal()
  readonly #enough = new Signal()
  #closing = false

  /** `onRecorded` is called when some are recorded, or given up. */
  constructor(
    queue: Pick<Context.Tag.Service<Queue>, "finish">,
    onRecorded: (count: number) => void,
    health: LoopHealth
  ) {
    this.#queue = queue
    this.#onRecorded = onRecorded
    this.#health = health
  }

  /** Adds an attempt to record. Can be called from anywhere; returns at once. */
  add(attempt: FinishedAttempt): void {
    this.#finished.push(attempt)
    this.#signal.raise()
    if (this.#finished.length === maxFlush) this.#enough.raise()
  }

  /** Stops retrying failed flushes from now on: the leases of their deliveries will expire. */
  close(): void {
    this.#closing = true
  }

  /**
   * Waits until claiming may continue. It pauses while outcomes can't be recorded: deliveries whose leases expired
   * meanwhile would be claimed, and sent, again.
   */
  readonly caughtUp = (claiming: LoopHealth): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (!this.#isBehind) return Effect.void
      claiming.rest("waits until attempts that were made are recorded")
      return this.#caughtUp.await
    })

  /**
   * The next steps, by id, of those of these deliveries whose outcome is not recorded yet: their leases expired, and
   * they were claimed again.
   */
  unrecorded(deliveries: ReadonlyArray<ClaimedDelivery>): ReadonlyMap<DeliveryId, NextStep> {
    const found = new Map<DeliveryId, NextStep>()
    if (!deliveries.some(({ interrupted }) => interrupted > 0)) return found
    const ids = new Set(deliveries.map(({ id }) => id))
    for (const { delivery, next } of [...this.#flushing, ...this.#finished])
      if (ids.has(delivery.id)) found.set(delivery.id, next)
    return found
  }

  readonly round: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#finished.length === 0) {
      this.#health.rest("has nothing to record")
      return this.#signal.wait()
    }
    const gather = this.#finished.length >= maxFlush ? Effect.void : this.#enough.wait(gatherMillis)
    return Effect.zipRight(gather, Effect.uninterruptible(this.#flush))
  })

  readonly #flush = Effect.suspend(() => {
    const batch = this.#finished.splice(0, maxFlush)
    this.#flushing = batch
    let hasFailed = false
    const record = Effect.suspend(() => {
      this.#health.begin("records attempts")
      return this.#queue.finish(batch)
    })
    return record.pipe(
      Effect.tapError((error) =>
        Effect.zipRight(
          Effect.sync(() => {
            hasFailed = true
            this.#noteBehind(true)
          }),
          Effect.logWarning("Attempts could not be recorded yet", error)
        )
      ),
      Effect.retry({ schedule: reconnect, while: () => !this.#closing }),
      Effect.catchAll((error) => Effect.logError("Attempts were not recorded; their leases will end", error)),
      Effect.zipRight(
        Effect.sync(() => {
          this.#flushing = []
          // Attempts that gathered during the retries are in the next batch
          if (this.#finished.length === 0 || (!hasFailed && batch.length < maxFlush)) this.#noteBehind(false)
          this.#onRecorded(batch.length)
        })
      )
    )
  })

  #noteBehind(isBehind: boolean): void {
    if (this.#isBehind === isBehind) return
    this.#isBehind = isBehind
    if (isBehind) this.#caughtUp.unsafeClose()
    else this.#caughtUp.unsafeOpen()
  }
}
