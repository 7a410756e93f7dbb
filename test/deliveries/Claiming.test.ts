import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { Attempts } from "../../src/deliveries/sending/Attempts.ts"
import { type Claim, queueStart } from "../../src/deliveries/sending/Claim.ts"
import { Claiming } from "../../src/deliveries/sending/Claiming.ts"
import { Destinations } from "../../src/deliveries/sending/Destinations.ts"
import { Held } from "../../src/deliveries/sending/Held.ts"
import { Pulse } from "../../src/deliveries/sending/Pulse.ts"
import type { Queue } from "../../src/deliveries/sending/Queue.ts"
import type { WorkerOptions } from "../../src/deliveries/sending/WorkerOptions.ts"
import { allShards } from "../../src/storage/Shards.ts"
import { eventuallyTrue } from "../harness/Eventually.ts"

const options: WorkerOptions = {
  lease: Duration.seconds(15),
  startWithin: Duration.seconds(5),
  concurrency: 4,
  concurrencyPerEndpoint: 4,
  pollInterval: Duration.seconds(1),
  drainTimeout: Duration.seconds(1),
  allowLocalDestinations: false,
  userAgent: "test"
}

const unused = Effect.dieMessage("No attempt is made here")

const othersHoldAll: Claim = {
  deliveries: [],
  nextDueInMillis: null,
  more: true,
  place: queueStart,
  askedFor: new Map(),
  reached: null
}

/** Claims of a worker that makes no attempts, each answered so; their limits. `onClaim` is called with each. */
const started = (onClaim: (held: Held) => void) =>
  Effect.gen(function* () {
    const limits: Array<number> = []
    const queue: Queue["Type"] = {
      claim: ({ limit }) =>
        Effect.sync(() => {
          limits.push(limit)
          onClaim(held)
          return othersHoldAll
        }),
      destinations: () => Effect.succeed(new Map()),
      finish: () => Effect.void,
      release: () => Effect.void
    }
    const held = new Held(queue, () => claiming.noteRoom())
    const destinations = new Destinations(queue, { encrypt: () => unused, decrypt: () => unused })
    const attempts = yield* Attempts.make(
      options,
      { transport: { post: () => unused, send: () => () => {} }, destinations },
      {
        onFinished: () => {},
        onUnsignable: () => {},
        onTooLate: () => {},
        onDefect: () => {},
        onSlow: () => {},
        onQuickAgain: () => {}
      }
    )
    const claiming = new Claiming({
      options,
      queue,
      wakeUp: { announce: Effect.void, await: Effect.never },
      attempts,
      held,
      begin: () => Effect.void,
      pulse: new Pulse("starts"),
      shards: () => allShards,
      onNewsAside: () => {}
    })
    yield* Effect.forkScoped(Effect.forever(claiming.round))
    return { held, limits }
  })

describe("claims", () => {
  it.scopedLive("wait for room that was taken while they rested, and never ask for less than one", () =>
    Effect.gen(function* () {
      let taken = false
      const { held, limits } = yield* started((held) => {
        // As when many attempts aside end at once: until they are recorded, they hold up claims
        if (!taken) setTimeout(() => held.add(40), 1)
        taken = true
      })
      yield* Effect.sleep("100 millis")
      expect(limits).toEqual([4])
      held.settle(40)
      yield* eventuallyTrue("the next claim", () => limits.length >= 2)
      expect(limits[1]).toBe(4)
    })
  )
})
