import { performance } from "node:perf_hooks"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Pulse, patience } from "../../src/deliveries/sending/Pulse.ts"
import { WorkerLife } from "../../src/deliveries/sending/WorkerLife.ts"

describe("a loop's pulse", () => {
  it("is stuck if a step has not ended long after its limit, a wait included, and goes on with the next step", () => {
    const pulse = new Pulse("starts")
    const now = performance.now()
    expect([pulse.isStuck(now), pulse.isStuck(now + patience + 1000)]).toEqual([false, true])
    pulse.begin("waits", 3_600_000)
    expect(pulse.doing).toBe("waits")
    expect([pulse.isStuck(now + 3_600_000), pulse.isStuck(now + 3_600_000 + patience + 1000)]).toEqual([false, true])
    pulse.begin("claims")
    expect(pulse.isStuck(performance.now())).toBe(false)
  })

  it("is never stuck while there is nothing to do", () => {
    const pulse = new Pulse("starts")
    pulse.rest("has nothing to record")
    expect([pulse.isStuck(Number.MAX_VALUE), pulse.isResting]).toEqual([false, true])
    pulse.begin("records")
    expect(pulse.isResting).toBe(false)
  })
})

describe("the life of a worker", () => {
  it.scoped("is known from its registration to its end, and told by the worker at each question", () =>
    Effect.gen(function* () {
      const life = Context.get(yield* Layer.build(WorkerLife.layer), WorkerLife)
      expect(life.state()).toBeUndefined()
      let asked = 0
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* life.register(() => ({ doing: `claims ${++asked}`, isStuck: false, isStopping: false }))
          expect(life.state()?.doing).toBe("claims 1")
          expect(life.state()?.doing).toBe("claims 2")
        })
      )
      expect(life.state()).toBeUndefined()
    })
  )
})
