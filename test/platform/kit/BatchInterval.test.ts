import { FastCheck } from "effect"
import { batchIntervalFor, batchIntervalMillis } from "../../../src/platform/kit/Concurrency.ts"
import { eventuallyTrue } from "../../harness/Eventually.ts"
import { describe, expect, it } from "../../harness/Tests.ts"

const share = FastCheck.double({ min: 0, max: 1, noNaN: true })

describe("the distance between batches", () => {
  it("is none for a process that has time, and at most 15 ms for one that has none", () => {
    expect([0, 0.3, 0.55].map(batchIntervalFor)).toEqual([0, 0, 0])
    expect([0.85, 1].map(batchIntervalFor)).toEqual([15, 15])
  })

  it("never falls as the process gets busier", () => {
    FastCheck.assert(
      FastCheck.property(share, share, (a, b) => batchIntervalFor(Math.min(a, b)) <= batchIntervalFor(Math.max(a, b)))
    )
  })

  it.live("follows the event loop: it grows while that is busy, and is gone when it has time again", function* () {
    const until = performance.now() + 700
    batchIntervalMillis()
    while (performance.now() < until);
    expect(batchIntervalMillis()).toBeGreaterThan(0)
    yield* eventuallyTrue("batches are no longer spaced", () => batchIntervalMillis() === 0)
  })
})
