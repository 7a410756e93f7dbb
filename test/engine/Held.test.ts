import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import type { ClaimedDelivery } from "../../src/engine/queue/Claim.ts"
import type { Queue } from "../../src/engine/queue/Queue.ts"
import { Held, makeBegin } from "../../src/engine/worker/Held.ts"
import { anyDelivery } from "../destinations/deliveries/AnyDelivery.ts"

const unused = () => Effect.die("not called")

const unusedQueue: Queue["Type"] = {
  claimNew: unused,
  claimOfLanes: unused,
  sweep: unused,
  destinations: unused,
  finish: unused,
  release: unused
}

/** Begins as many deliveries; how many had begun at each turn of the event loop. */
const begunAtTurns = (count: number) =>
  Effect.gen(function* () {
    const begun: Array<ClaimedDelivery> = []
    const held = new Held(unusedQueue, () => {})
    const begin = makeBegin({
      held,
      attempts: { start: (delivery) => void begun.push(delivery) },
      destinations: { load: () => Effect.void },
      recording: { unrecorded: () => new Map() },
      startWithin: Duration.seconds(5)
    })
    const deliveries = Array.from({ length: count }, anyDelivery)
    const atTurns = new Set<number>()
    const turn = () => {
      atTurns.add(begun.length)
      if (begun.length < count) setImmediate(turn)
    }
    setImmediate(turn)
    yield* begin(deliveries, performance.now(), false)
    expect(begun).toEqual(deliveries)
    expect(held.count).toBe(count)
    return atTurns
  })

describe("claimed deliveries", () => {
  it.live("begin all at once if they are few", () =>
    Effect.gen(function* () {
      expect([...(yield* begunAtTurns(32))]).toEqual([])
    })
  )

  it.live("begin some at a time if they are many, and leave the event loop to other work in between", () =>
    Effect.gen(function* () {
      expect((yield* begunAtTurns(100)).size).toBeGreaterThan(2)
    })
  )
})
