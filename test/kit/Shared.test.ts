import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { makeShared } from "../../src/kit/Shared.ts"
import { YieldingAt } from "../harness/YieldingAt.ts"

/** All fibers have gone as far as they can. */
const settled = Effect.repeatN(Effect.yieldNow(), 20)

describe("a shared answer", () => {
  it.effect("is found once for all who ask meanwhile, by key, and anew for who asks later", () =>
    Effect.gen(function* () {
      const share = makeShared<number, string>()
      const gate = yield* Deferred.make<void>()
      let times = 0
      const find = Effect.zipRight(
        Effect.suspend(() => {
          times += 1
          return Deferred.await(gate)
        }),
        Effect.sync(() => times)
      )
      const asking = yield* Effect.forEach(["a", "a", "b", "a"], (key) => Effect.fork(share(key, find)))
      yield* settled
      expect(times).toBe(2)
      yield* Deferred.succeed(gate, undefined)
      yield* Effect.forEach(asking, Fiber.join)
      expect(times).toBe(2)
      yield* share("a", find)
      expect(times).toBe(3)
    })
  )

  it.effect("goes on if who asked first is gone, and fails for all alike", () =>
    Effect.gen(function* () {
      const share = makeShared<number, string>()
      const gate = yield* Deferred.make<number, string>()
      const first = yield* Effect.fork(share("a", Deferred.await(gate)))
      yield* settled
      const second = yield* Effect.fork(share("a", Effect.die("is not asked")))
      yield* settled
      yield* Fiber.interrupt(first)
      yield* Deferred.fail(gate, "no database")
      expect(yield* Fiber.await(second)).toEqual(Exit.fail("no database"))
      expect(yield* share("a", Effect.succeed(1))).toBe(1)
    })
  )

  it.live("is found for later ones wherever the first was interrupted", () =>
    Effect.gen(function* () {
      const share = makeShared<number, string>()
      for (let step = 1; step <= 40; step += 1) {
        const key = String(step)
        const first = yield* Effect.fork(Effect.withScheduler(share(key, Effect.succeed(1)), new YieldingAt(step)))
        yield* Effect.yieldNow()
        yield* Fiber.interrupt(first)
        const later = yield* Effect.timeoutOption(share(key, Effect.succeed(2)), "1 second")
        expect([step, later._tag]).toEqual([step, "Some"])
      }
    })
  )
})
