import { performance } from "node:perf_hooks"
import { describe, expect, it } from "@effect/vitest"
import { LoopHealth, stuckAfterMillis } from "../../src/engine/worker/WorkerLife.ts"

describe("a loop's health", () => {
  it("is stuck if a step has not ended long after its limit, a wait included, and goes on with the next step", () => {
    const health = new LoopHealth("starts")
    const now = performance.now()
    expect([health.isStuck(now), health.isStuck(now + stuckAfterMillis + 1000)]).toEqual([false, true])
    health.begin("waits", 3_600_000)
    expect(health.doing).toBe("waits")
    expect([health.isStuck(now + 3_600_000), health.isStuck(now + 3_600_000 + stuckAfterMillis + 1000)]).toEqual([
      false,
      true
    ])
    health.begin("claims")
    expect(health.isStuck(performance.now())).toBe(false)
  })

  it("is never stuck while there is nothing to do", () => {
    const health = new LoopHealth("starts")
    health.rest("has nothing to record")
    expect([health.isStuck(Number.MAX_VALUE), health.isResting]).toEqual([false, true])
    health.begin("records")
    expect(health.isResting).toBe(false)
  })
})
