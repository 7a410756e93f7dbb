import { describe, expect } from "@effect/vitest"
import { Duration, Effect } from "effect"
import type { ClaimedDelivery } from "../../src/engine/queue/Claim.ts"
import type { Queue } from "../../src/engine/queue/Queue.ts"
import { type BegunAs, Held, makeBegin } from "../../src/engine/worker/Held.ts"
import { anyDelivery } from "../destinations/deliveries/AnyDelivery.ts"
import { it } from "../harness/Tests.ts"

const unused = () => Effect.die("not called")

const unusedQueue: Queue["Type"] = { claim: unused, destinations: unused, finish: unused, release: unused }

/** Begins 100 deliveries; how many had begun at each turn of the event loop. */
const begunAtTurns = (as: BegunAs) =>
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
    const deliveries = Array.from({ length: 100 }, anyDelivery)
    const atTurns = new Set<number>()
    const turn = () => {
      atTurns.add(begun.length)
      if (begun.length < 100) setImmediate(turn)
    }
    setImmediate(turn)
    yield* begin(deliveries, performance.now(), as)
    expect(begun).toEqual(deliveries)
    expect(held.count).toBe(100)
    return atTurns
  })

describe("claimed deliveries", () => {
  it.live("begin all at once", function* () {
    expect([...(yield* begunAtTurns("usual"))]).toEqual([])
  })

  it.live("aside begin a few at a time, and leave the event loop to other work in between", function* () {
    expect((yield* begunAtTurns("slow")).size).toBeGreaterThan(10)
    expect((yield* begunAtTurns("newest")).size).toBeGreaterThan(2)
  })
})
