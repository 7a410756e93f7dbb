import { performance } from "node:perf_hooks"
import { type Context, Effect } from "effect"
import type { Signal } from "../../publishing/Signal.ts"
import type { Attempts } from "./Attempts.ts"
import type { ClaimedDelivery, ClaimOptions } from "./Claim.ts"
import type { Queue } from "./Queue.ts"
import { newestPerEndpoint, newestRoom, slowRooms } from "./Shares.ts"

/** Between two rounds, in milliseconds, and as a multiple of what the one before took. */
const every = { millis: 200, cost: 5 }

/** Most deliveries that one claim takes. */
const maxClaim = 256

interface ClaimsAside {
  readonly queue: Context.Tag.Service<Queue>
  readonly attempts: Attempts
  readonly options: Pick<ClaimOptions, "lease"> & {
    readonly concurrency: number
    readonly concurrencyPerEndpoint: number
  }
  /** Begins what was claimed at that time (by `performance.now()`), or gives it back. */
  readonly start: (deliveries: ReadonlyArray<ClaimedDelivery>, claimedAt: number, aside: boolean) => Effect.Effect<void>
  /** Raised when there may be something to do. */
  readonly news: Signal
  /** Whether more may be due than the worker's other claims have come to. */
  readonly isBehind: () => boolean
}

/**
 * One round of claims whose attempts take no place of the `concurrency`: what slow endpoints have due, as far as their
 * shares go, and, while the worker is behind, what came due just now. At most five rounds per second.
 */
export const makeClaimsAside = ({ attempts, isBehind, news, options, queue, start }: ClaimsAside) => {
  const { pace } = attempts

  /** Answers how many deliveries. */
  const claim = (wanted: Pick<ClaimOptions, "look" | "limit" | "askedFor">, mostPerEndpoint: number) => {
    if (wanted.limit < 1) return Effect.succeed(0)
    const claimedAt = performance.now()
    const claimed = queue.claim({
      lease: options.lease,
      perEndpoint: Math.min(mostPerEndpoint, options.concurrencyPerEndpoint),
      inFlight: new Map(Array.from(attempts.lanes(), ([endpointId, { held }]) => [endpointId, held])),
      caps: new Map(Array.from(attempts.caps(), ([endpointId, cap]) => [endpointId, Math.min(mostPerEndpoint, cap)])),
      leftOut: [...pace.slow.keys()],
      ...wanted
    })
    return Effect.flatMap(claimed, ({ deliveries }) => Effect.as(start(deliveries, claimedAt, true), deliveries.length))
  }

  const claimSlow = Effect.suspend(() => {
    pace.forgetOld(performance.now(), (endpointId) => attempts.held(endpointId) > 0)
    const askedFor = slowRooms(pace.slow, attempts.lanes(), attempts.aside, options)
    pace.noteAsked(askedFor.map(({ endpointId }) => endpointId))
    const room = askedFor.reduce((sum, { room }) => sum + room, 0)
    return claim({ look: "asked", limit: Math.min(maxClaim, room), askedFor }, options.concurrencyPerEndpoint)
  })

  const claimNewest = Effect.suspend(() =>
    isBehind() ? claim({ look: "newest", limit: newestRoom(attempts.aside) }, newestPerEndpoint) : Effect.succeed(0)
  )

  return Effect.gen(function* () {
    yield* news.wait()
    const startedAt = performance.now()
    // One step: a claim that is not followed by its attempts would have to wait for its lease to end
    const claimed = yield* Effect.zipWith(claimNewest, claimSlow, (newest, slow) => newest + slow).pipe(
      Effect.uninterruptible,
      Effect.catchAll((error) =>
        Effect.logWarning("Deliveries can't be claimed", error).pipe(
          Effect.zipRight(Effect.sleep("1 second")),
          Effect.as(0)
        )
      )
    )
    if (isBehind() || claimed > 0) news.raise()
    yield* Effect.sleep(Math.max(every.millis, every.cost * (performance.now() - startedAt)))
  })
}
