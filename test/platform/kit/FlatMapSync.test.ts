import { Cause, Effect, Exit, TestClock } from "effect"
import { flatMapSync, millisNow } from "../../../src/platform/kit/Concurrency.ts"
import { describe, expect, it } from "../../harness/Tests.ts"

describe("flatMapSync", () => {
  it("calls the next function at once with what is a value", () => {
    const called: Array<number> = []
    flatMapSync(Effect.succeed(7), (value) => {
      called.push(value)
      return Effect.void
    })
    expect(called).toEqual([7])
  })

  it.effect("waits for what is no value yet", function* () {
    const called: Array<number> = []
    const program = flatMapSync(
      Effect.sync(() => 7),
      (value) => Effect.sync(() => called.push(value))
    )
    expect(called).toEqual([])
    yield* program
    expect(called).toEqual([7])
  })

  it.effect("does not go on after a failure or a defect", function* () {
    const next = () => Effect.dieMessage("must not be called")
    expect(yield* Effect.exit(flatMapSync(Effect.fail("no"), next))).toEqual(Exit.fail("no"))
    expect(yield* Effect.exit(flatMapSync(Effect.die("bug"), next))).toEqual(Exit.die("bug"))
  })

  it.effect("leaves what the next function throws to the effect around it, as a defect", function* () {
    const bug = new Error("bug")
    const exit = yield* Effect.exit(
      Effect.suspend(() =>
        flatMapSync(Effect.succeed(7), (): Effect.Effect<void> => {
          throw bug
        })
      )
    )
    expect(exit).toEqual(Exit.failCause(Cause.die(bug)))
  })
})

it.effect("millisNow tells the time of the fiber's own clock", function* () {
  yield* TestClock.setTime(1_234)
  expect(yield* Effect.withFiberRuntime((fiber) => Effect.succeed(millisNow(fiber)))).toBe(1_234)
})
