import { Effect, FastCheck } from "effect"
import { vi } from "vitest"
import { batchIntervalFor, batchIntervalMillis } from "../../../src/platform/kit/Concurrency.ts"
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

  it.scopedLive(
    "follows the event loop: it grows while that is busy, and is gone when it has time again",
    function* () {
      const until = performance.now() + 700
      batchIntervalMillis()
      while (performance.now() < until);
      expect(batchIntervalMillis()).toBeGreaterThan(0)
      // On a busy machine it may not have time for long
      yield* Effect.addFinalizer(() => Effect.sync(() => vi.restoreAllMocks()))
      vi.spyOn(performance, "eventLoopUtilization").mockReturnValue({ active: 100, idle: 900, utilization: 0.1 })
      const later = performance.now() + 500
      vi.spyOn(performance, "now").mockReturnValue(later)
      expect(batchIntervalMillis()).toBe(0)
    }
  )
})
