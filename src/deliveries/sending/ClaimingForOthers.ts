import { performance } from "node:perf_hooks"
import type { SqlError } from "@effect/sql"
import { type Context, Effect } from "effect"
import type { EndpointId } from "../../kit/Ids.ts"
import { allShards, type Shards } from "../../storage/Shards.ts"
import type { Attempts } from "./Attempts.ts"
import { queueStart } from "./Claim.ts"
import type { Begin } from "./Held.ts"
import type { Queue } from "./Queue.ts"
import { firstAttempts } from "./Shares.ts"
import { Walk } from "./Walk.ts"
import type { WorkerOptions } from "./WorkerOptions.ts"

/**
 * The rest after a look that came to the queue's end with nothing, or any other one, in milliseconds; and as a multiple of
 * the time it took: helping must not cost the others what it saves them.
 */
const rest = { inVain: 1000, otherwise: 250, cost: 20 }

interface ClaimingForOthersParts {
  readonly options: Pick<WorkerOptions, "lease" | "concurrency" | "concurrencyPerEndpoint">
  readonly queue: Context.Tag.Service<Queue>
  readonly attempts: Pick<Attempts, "lanes" | "caps">
  readonly begin: Begin
  /** The shards of the endpoints that this worker looks after itself. */
  readonly shards: () => Shards
  readonly room: () => number
  /** Endpoints that are looked up separately. */
  readonly leftOut: () => ReadonlyArray<EndpointId>
}

/**
 * Claims what other workers look after but have left for a second: there is more of it than they have room for, or they
 * have died. So nothing waits for its shard's holder for long, and no worker is idle while others are behind. A look
 * reads a bounded number of rows, and the next one goes on behind them, up to the queue's end.
 */
export class ClaimingForOthers {
  readonly #parts: ClaimingForOthersParts
  readonly #walk = new Walk()
  #notBefore = 0
  #wasInVain = true

  constructor(parts: ClaimingForOthersParts) {
    this.#parts = parts
  }

  /** How long until the next look is worthwhile, in milliseconds; infinite if the last one found that nothing is left. */
  get nextInMillis(): number {
    return this.#wasInVain ? Number.POSITIVE_INFINITY : Math.max(1, this.#notBefore - performance.now())
  }

  /** Looks if there is room and it is time to; answers how many deliveries it claimed. */
  readonly claim: Effect.Effect<number, SqlError.SqlError> = Effect.suspend(() => {
    const { attempts, begin, leftOut, options, queue, room, shards } = this.#parts
    const own = shards()
    const limit = room()
    const claimedAt = performance.now()
    if (own === allShards) this.#wasInVain = true
    if (own === allShards || limit < 1 || claimedAt < this.#notBefore) return Effect.succeed(0)
    const step = this.#walk.next(queueStart)
    return queue
      .claim({
        look: "overdue",
        shards: ~own,
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
          this.#wasInVain = claim.deliveries.length === 0 && !this.#walk.isUnderWay
          this.#notBefore =
            now + Math.max(this.#wasInVain ? rest.inVain : rest.otherwise, rest.cost * (now - claimedAt))
          return claim.deliveries.length
        })
      )
  })
}
