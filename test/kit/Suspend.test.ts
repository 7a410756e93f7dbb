import { describe, expect, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber } from "effect"
import { oneQueue } from "../../src/kit/OneQueue.ts"
import { suspend } from "../../src/kit/Suspend.ts"

/** A wait, and what ends it. */
const waiting = () => {
  const resumes: Array<(effect: Effect.Effect<string, string>) => void> = []
  return { resumes, wait: suspend<string, string>((resume) => void resumes.push(resume)) }
}

describe("a suspension", () => {
  it.effect("ends with what it is resumed with, now or later, and only once", () =>
    Effect.gen(function* () {
      expect(yield* suspend<string>((resume) => resume(Effect.succeed("now")))).toBe("now")
      const { resumes, wait } = waiting()
      const fiber = yield* Effect.fork(wait)
      yield* Effect.yieldNow()
      resumes[0]?.(Effect.succeed("later"))
      resumes[0]?.(Effect.succeed("again"))
      expect(yield* Fiber.join(fiber)).toBe("later")
    })
  )

  it.effect("can be run again, and fails with the error that it is resumed with", () =>
    Effect.gen(function* () {
      const { resumes, wait } = waiting()
      const fibers = yield* Effect.forEach([0, 1], () => Effect.fork(Effect.exit(wait)))
      yield* Effect.yieldNow()
      resumes[1]?.(Effect.fail("refused"))
      resumes[0]?.(Effect.succeed("done"))
      expect(yield* Effect.forEach(fibers, Fiber.join)).toEqual([Exit.succeed("done"), Exit.fail("refused")])
    })
  )

  it.effect("is interrupted with its fiber", () =>
    Effect.gen(function* () {
      const { resumes, wait } = waiting()
      const fiber = yield* Effect.fork(wait)
      yield* Effect.yieldNow()
      const exit = yield* Fiber.interrupt(fiber)
      expect(Exit.isInterrupted(exit)).toBe(true)
      resumes[0]?.(Effect.succeed("too late"))
    })
  )

  it.effect("dies of what its beginning throws", () =>
    Effect.gen(function* () {
      const bug = new Error("a bug")
      const exit = yield* Effect.exit(
        suspend(() => {
          throw bug
        })
      )
      expect(exit).toEqual(Exit.failCause(Cause.die(bug)))
    })
  )
})

describe("one queue for all fibers", () => {
  it.effect("runs all that are resumed together before what they resume", () =>
    Effect.gen(function* () {
      const steps: Array<string> = []
      const { resumes, wait } = waiting()
      const step = (name: string) =>
        Effect.gen(function* () {
          yield* wait
          steps.push(`${name} resumed`)
          yield* Effect.yieldNow()
          steps.push(`${name} went on`)
        })
      const fibers = yield* Effect.forEach(["a", "b"], (name) => Effect.fork(step(name)))
      yield* Effect.yieldNow()
      for (const resume of resumes) resume(Effect.succeed("go"))
      yield* Effect.forEach(fibers, Fiber.join)
      expect(steps).toEqual(["a resumed", "b resumed", "a went on", "b went on"])
    }).pipe(Effect.withScheduler(oneQueue))
  )
})
