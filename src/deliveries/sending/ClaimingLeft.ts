import { performance } from "node:perf_hooks"
import type { SqlError } from "@effect/sql"
import { type Context, Effect } from "effect"
import type { EndpointId } from "../../kit/Ids.ts"
import type { Attempts } from "./Attempts.ts"
import { type Claim, queueStart } from "./Claim.ts"
import type { Begin } from "./Held.ts"
import type { Queue } from "./Queue.ts"
import { firstAttempts } from "./Shares.ts"
import { Walk } from "./Walk.ts"
import type { WorkerOptions } from "./WorkerOptions.ts"

/**
 * The rest between two looks through the queue, and between the steps of one, in milliseconds; and as a multiple of the time
 * that they took: it must cost the others less than it saves them.
 */
const rest = {
  looks: { least: 1000, most: 30_000, cost: 200 },
  steps: { least: 20, most: 1000, cost: 20 },
  /**
   * After something was found: there may be more of it. After as many as there was room for it is as good as certain, and
   * the rest is as long as the step.
   */
  found: 250
}

interface ClaimingLeftParts {
  readonly options: Pick<WorkerOptions, "lease" | "concurrency" | "concurrencyPerEndpoint">
  readonly queue: Context.Tag.Service<Queue>
  readonly attempts: Pick<Attempts, "lanes" | "caps">
  readonly begin: Begin
  readonly room: () => number
  /** Endpoints that are looked up separately. */
  readonly leftOut: () => ReadonlyArray<EndpointId>
}

/**
 * Claims what has been due for a second and was left: what a worker held that has died, what was stored by
 * a transaction that took long, and what other workers have no room for. So nothing waits for long,
 * and no worker is idle while others are behind.
 *
 * Before that may be any number of rows that can't be taken, as those of endpoints that hang. So a step reads a bounded number
 * of rows, and the next one goes on behind them, up to the queue's end: what has just come due never waits for all of it.
 */
export class ClaimingLeft {
  readonly #parts: ClaimingLeftParts
  readonly #walk = new Walk()
  #notBefore = 0
  #wasInVain = true
  #foundSome = false
  /** When the look began whose steps are being made, and how long they have taken together. */
  #beganAt = 0
  #tookMillis = 0
  #lookedAt = Number.NEGATIVE_INFINITY

  constructor(parts: ClaimingLeftParts) {
    this.#parts = parts
  }

  /** How long until the next step is worthwhile, in milliseconds; infinite if the last look found that nothing is left. */
  get nextInMillis(): number {
    return this.#wasInVain ? Number.POSITIVE_INFINITY : Math.max(1, this.#notBefore - performance.now())
  }

  /** Whether the last step found something: there may be more of it among what other claims have passed by. */
  get foundSome(): boolean {
    return this.#foundSome
  }

  /** When the last look began that came to the queue's end, by `performance.now()`. */
  get lookedAt(): number {
    return this.#lookedAt
  }

  /** Another claim has looked through all of the queue. */
  noteLooked(now: number): void {
    if (this.#walk.isUnderWay) return
    this.#lookedAt = now
    this.#notBefore = Math.max(this.#notBefore, now + rest.looks.least)
  }

  /** Looks if there is room and it is time to; answers how many deliveries it claimed. */
  readonly claim: Effect.Effect<number, SqlError.SqlError> = Effect.suspend(() => {
    const { attempts, begin, leftOut, options, queue, room } = this.#parts
    const limit = room()
    const claimedAt = performance.now()
    if (limit < 1 || claimedAt < this.#notBefore) return Effect.succeed(0)
    if (!this.#walk.isUnderWay) {
      this.#beganAt = claimedAt
      this.#tookMillis = 0
    }
    const step = this.#walk.next(queueStart)
    return queue
      .claim({
        look: "overdue",
        ...step,
        limit,
        lease: options.lease,
        perEndpoint: options.concurrencyPerEndpoint,
        perNewcomer: firstAttempts(options),
        inFlight: new Map(Array.from(attempts.lanes(), ([endpointId, { held }]) => [endpointId, held])),
        caps: attempts.caps(),
        leftOut: leftOut()
      })
      .pipe(
        Effect.tap(({ deliveries }) => begin(deliveries, claimedAt, "usual")),
        Effect.map((claim) => {
          const now = performance.now()
          this.#walk.note(step.from, claim)
          this.#noteStep(now, now - claimedAt, claim, limit)
          return claim.deliveries.length
        })
      )
  })

  #noteStep(
    now: number,
    tookMillis: number,
    { deliveries, more }: Pick<Claim, "deliveries" | "more">,
    limit: number
  ): void {
    const found = deliveries.length
    this.#tookMillis += tookMillis
    const goesOn = this.#walk.isUnderWay
    this.#wasInVain = found === 0 && !goesOn
    if (!goesOn && !more) this.#lookedAt = this.#beganAt
    const { cost, least, most } = goesOn ? rest.steps : rest.looks
    const resting = Math.min(most, Math.max(least, cost * (goesOn ? tookMillis : this.#tookMillis)))
    this.#foundSome = found > 0
    const atMost = found >= limit ? tookMillis : this.#foundSome ? rest.found : most
    this.#notBefore = now + Math.min(atMost, resting)
  }
}
