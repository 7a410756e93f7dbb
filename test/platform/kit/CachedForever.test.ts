import { Deferred, Effect, Fiber } from "effect"
import { cachedForever } from "../../../src/platform/kit/Concurrency.ts"
import { describe, expect, it } from "../../harness/Tests.ts"

describe("what is kept", () => {
  it.effect("is made once, for whoever asks at the same time or later", function* () {
    let times = 0
    const ask = yield* cachedForever(
      Effect.zipRight(
        Effect.yieldNow(),
        Effect.sync(() => ++times)
      )
    )
    const asking = yield* Effect.fork(Effect.all([ask, ask, ask], { concurrency: "unbounded" }))
    yield* Effect.yieldNow()
    expect(yield* Fiber.join(asking)).toEqual([1, 1, 1])
    expect(yield* ask).toBe(1)
  })

  it.effect("is there for others if the first who asks is interrupted meanwhile", function* () {
    const begun = yield* Deferred.make<void>()
    const goOn = yield* Deferred.make<void>()
    const ask = yield* cachedForever(
      Effect.as(Effect.zipRight(Deferred.succeed(begun, undefined), Deferred.await(goOn)), "made")
    )
    const first = yield* Effect.fork(Effect.interruptible(ask))
    yield* Deferred.await(begun)
    yield* Fiber.interruptFork(first)
    const second = yield* Effect.fork(ask)
    yield* Deferred.succeed(goOn, undefined)
    expect(yield* Fiber.join(second)).toBe("made")
    expect(yield* ask).toBe("made")
  })
})
