import { performance } from "node:perf_hooks"
import { Array, type Context, Duration, Effect, Schedule } from "effect"
import { batchIntervalMillis, turnOfEventLoop } from "../../platform/kit/Concurrency.ts"
import type { DeliveryId } from "../../platform/kit/Ids.ts"
import type { Attempts } from "../attempts/Attempts.ts"
import type { NextStep } from "../attempts/Outcome.ts"
import type { Destinations } from "../attempts/Signing.ts"
import type { ClaimedDelivery } from "../queue/Claim.ts"
import type { FinishedAttempt, Queue } from "../queue/Queue.ts"
import { Signal } from "../queue/WakeUp.ts"

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

/**
 * How long a bounded step of a loop may take, in milliseconds: two statements, each with its wait for a connection.
 * Longer than their own time limits together, so that a slow database is never taken for a stuck loop.
 */
export const patience = 60_000

/** The health of a worker's loop: what it is doing, and by when it must make progress. */
export class LoopHealth {
  #doing: string
  #goesOnBy = performance.now() + patience

  constructor(doing: string) {
    this.#doing = doing
  }

  /** What the loop is doing, to complete "the worker …". */
  get doing(): string {
    return this.#doing
  }

  /** Begins a bounded step, or a wait of `millis`. */
  begin(doing: string, millis = 0): void {
    this.#doing = doing
    this.#goesOnBy = performance.now() + millis + patience
  }

  /** Begins a wait of any length, for something to do. */
  rest(doing: string): void {
    this.#doing = doing
    this.#goesOnBy = Number.POSITIVE_INFINITY
  }

  get isResting(): boolean {
    return this.#goesOnBy === Number.POSITIVE_INFINITY
  }

  /** Whether the loop should have made progress before `now`, by `performance.now()`. */
  isStuck(now: number): boolean {
    return now > this.#goesOnBy
  }
}

/** The most attempts that one flush records. */
const maxFlush = 512

/**
 * While many attempts end, a flush waits until enough have gathered, for at most this many milliseconds: the fixed cost
 * of a statement, and of waking two processes, is then shared by more. While few end, and the process is idle, nothing
 * waits.
 */
const gather = { whileFlushedAtLeast: 32, enough: 192, forMillis: 10 }

const reconnect = Schedule.exponential("100 millis").pipe(
  Schedule.jittered,
  Schedule.union(Schedule.spaced("2 seconds"))
)

/** Records the outcomes of attempts in batches: attempts that end during one batch go into the next. */
export class Recording {
  readonly #queue: Context.Tag.Service<Queue>
  readonly #held: Held
  readonly #health: LoopHealth
  readonly #finished: Array<FinishedAttempt> = []
  #flushing: ReadonlyArray<FinishedAttempt> = []
  /** Closed when a flush fails, until all attempts that had ended by then are recorded. */
  readonly #caughtUp = Effect.unsafeMakeLatch(true)
  #isBehind = false
  readonly #news = new Signal()
  readonly #enough = new Signal()
  #lastFlushed = 0
  #closing = false

  constructor(queue: Context.Tag.Service<Queue>, held: Held, health: LoopHealth) {
    this.#queue = queue
    this.#held = held
    this.#health = health
  }

  /** Adds an attempt to record. Can be called from anywhere; returns at once. */
  add(attempt: FinishedAttempt): void {
    this.#finished.push(attempt)
    this.#news.raise()
    if (this.#finished.length === gather.enough) this.#enough.raise()
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

  /** Waits for finished attempts and records a batch of them. */
  readonly round: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#finished.length === 0) {
      this.#health.rest("has nothing to record")
      return this.#news.wait()
    }
    const gathersFor = this.#finished.length >= gather.enough ? 0 : this.#gatherMillis()
    return Effect.zipRight(
      gathersFor > 0 ? this.#enough.wait(gathersFor) : Effect.void,
      Effect.uninterruptible(this.#flush)
    )
  })

  #gatherMillis(): number {
    return this.#lastFlushed >= gather.whileFlushedAtLeast ? gather.forMillis : Math.ceil(batchIntervalMillis())
  }

  readonly #flush = Effect.suspend(() => {
    const batch = this.#finished.splice(0, maxFlush)
    this.#lastFlushed = batch.length
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
          this.#held.settle(batch.length)
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
