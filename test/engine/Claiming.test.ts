import { describe, expect } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { Attempts } from "../../src/engine/attempts/Attempts.ts"
import { Destinations } from "../../src/engine/attempts/Signing.ts"
import { type Claim, type ClaimOptions, queueStart } from "../../src/engine/queue/Claim.ts"
import type { Queue } from "../../src/engine/queue/Queue.ts"
import { Claiming } from "../../src/engine/worker/Claiming.ts"
import { Held, LoopHealth } from "../../src/engine/worker/Held.ts"
import type { WorkerOptions } from "../../src/engine/worker/Limits.ts"
import { eventuallyTrue } from "../harness/Eventually.ts"
import { it } from "../harness/Tests.ts"

const options: WorkerOptions = {
  lease: Duration.seconds(15),
  startWithin: Duration.seconds(5),
  concurrency: 4,
  concurrencyPerEndpoint: 4,
  pollInterval: Duration.millis(100),
  drainTimeout: Duration.seconds(1),
  allowLocalDestinations: false,
  userAgent: "test"
}

const unused = Effect.dieMessage("No attempt is made here")

const nothingDue: Claim = {
  deliveries: [],
  nextDueInMillis: null,
  more: false,
  place: "2026-11-26 12:00:00+00",
  askedFor: new Map()
}

const othersHoldAll: Claim = { ...nothingDue, more: true, place: queueStart }

/** Claims of a worker that makes no attempts; `answer` is called with each, and answers it. */
const started = (answer: (claim: ClaimOptions, held: Held) => Claim) =>
  Effect.gen(function* () {
    const claims: Array<ClaimOptions> = []
    const queue: Queue["Type"] = {
      claim: (claim) =>
        Effect.sync(() => {
          claims.push(claim)
          return answer(claim, held)
        }),
      destinations: () => Effect.succeed(new Map()),
      finish: () => Effect.void,
      release: () => Effect.void
    }
    const held = new Held(queue, () => claiming.noteRoom())
    const destinations = new Destinations(queue, { encrypt: () => unused, decrypt: () => unused })
    const attempts = yield* Attempts.make(
      options,
      { transport: { send: () => Effect.never }, destinations },
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
      recording: { caughtUp: () => Effect.void },
      wakeUp: { announce: Effect.void, await: Effect.never },
      attempts,
      held,
      begin: () => Effect.void,
      health: new LoopHealth("starts"),
      onNewsAside: () => {}
    })
    yield* Effect.forkScoped(Effect.forever(claiming.round))
    return { held, claims }
  })

describe("claims", () => {
  it.scopedLive("wait for room that was taken while they rested, and never ask for less than one", function* () {
    let taken = false
    const { held, claims } = yield* started((_, held) => {
      // As when many attempts aside end at once: until they are recorded, they hold up claims
      if (!taken) setTimeout(() => held.add(40), 1)
      taken = true
      return othersHoldAll
    })
    yield* Effect.sleep("100 millis")
    expect(claims.map(({ limit }) => limit)).toEqual([4])
    held.settle(40)
    yield* eventuallyTrue("the next claim", () => claims.length >= 2)
    expect(claims[1]?.limit).toBe(4)
  })

  it.scopedLive("begin where the one before ended", function* () {
    const { claims, held } = yield* started(() => nothingDue)
    // Else they rest for longer each time
    held.add(1)
    yield* eventuallyTrue("claims from there", () => claims.some(({ from }) => from === nothingDue.place))
    expect(claims[0]?.from).toBe(queueStart)
  })
})
