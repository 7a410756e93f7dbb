import { Deferred, Effect, Either, Fiber } from "effect"
import { BoundedSemaphore, maxPermitWaiters } from "../../../src/platform/kit/Concurrency.ts"
import { describe, expect, it } from "../../harness/Tests.ts"

/** An effect that runs until it is let go, and whether it has begun. */
const makeWork = Effect.gen(function* () {
  const begun = yield* Deferred.make<void>()
  const letGo = yield* Deferred.make<void>()
  return {
    begun: Deferred.await(begun),
    hasBegun: Deferred.isDone(begun),
    letGo: Deferred.succeed(letGo, undefined),
    effect: Effect.zipRight(Deferred.succeed(begun, undefined), Deferred.await(letGo))
  }
})

const works = (count: number) => Effect.replicateEffect(makeWork, count)

describe("a line", () => {
  it.effect("runs so many at a time, in their order", function* () {
    const line = new BoundedSemaphore(2)
    const all = yield* works(5)
    const fibers = yield* Effect.forEach(all, ({ effect }) => Effect.fork(line.turn(effect)))
    for (const [n, work] of all.entries()) {
      yield* work.begun
      expect(yield* Effect.forEach(all, ({ hasBegun }) => hasBegun)).toEqual(all.map((_, m) => m <= Math.max(n, 1)))
      if (n > 0) yield* all[n - 1]?.letGo ?? Effect.void
    }
    yield* all.at(-1)?.letGo ?? Effect.void
    yield* Fiber.joinAll(fibers)
  })

  it.effect("goes on after who leaves it, whether before its turn, in it, or by a failure", function* () {
    const line = new BoundedSemaphore(1)
    const [running, waiting, last] = yield* Effect.all([makeWork, makeWork, makeWork])
    const first = yield* Effect.fork(line.turn(running.effect))
    yield* running.begun
    const second = yield* Effect.fork(line.turn(waiting.effect))
    const failing = yield* Effect.fork(Effect.either(line.turn(Effect.fail("refused"))))
    const third = yield* Effect.fork(line.turn(last.effect))
    yield* Effect.yieldNow()
    yield* Fiber.interrupt(second)
    expect(yield* last.hasBegun).toBe(false)
    yield* Fiber.interrupt(first)
    expect(yield* Fiber.join(failing)).toEqual(Either.left("refused"))
    yield* last.begun
    expect(yield* waiting.hasBegun).toBe(false)
    yield* last.letGo
    yield* Fiber.join(third)
    expect(yield* line.turn(Effect.succeed("free"))).toBe("free")
  })

  it.live("refuses who has been in it for too long, also if it is its turn by then", function* () {
    const line = new BoundedSemaphore(1, 500)
    const [running, hanging] = yield* works(2)
    yield* Effect.fork(line.turn(running?.effect ?? Effect.void))
    yield* running?.begun ?? Effect.void
    const waiting = yield* Effect.fork(line.turn(Effect.uninterruptible(hanging?.effect ?? Effect.void)))
    yield* Effect.yieldNow()
    yield* running?.letGo ?? Effect.void
    yield* hanging?.begun ?? Effect.void
    expect((yield* Effect.flip(Fiber.join(waiting)))._tag).toBe("ServiceUnavailable")
    expect(yield* line.turn(Effect.succeed("free"))).toBe("free")
  })

  it.effect("refuses who finds it full, at once", function* () {
    const line = new BoundedSemaphore(1)
    const work = yield* makeWork
    yield* Effect.fork(line.turn(work.effect))
    yield* work.begun
    const waiting = yield* Effect.forEach(Array.from({ length: maxPermitWaiters }), () =>
      Effect.fork(line.turn(Effect.void))
    )
    yield* Effect.yieldNow()
    expect((yield* Effect.flip(line.turn(Effect.void)))._tag).toBe("ServiceUnavailable")
    yield* work.letGo
    yield* Fiber.joinAll(waiting)
    yield* line.turn(Effect.void)
  })
})
