import { describe, expect, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber } from "effect"
import { vi } from "vitest"
import { sharedScheduler, suspend } from "../../../src/platform/fibers/Suspend.ts"

/** A wait, and what ends it. */
const waiting = () => {
  const resumes: Array<(effect: Effect.Effect<string, string>) => void> = []
  return { resumes, wait: suspend<string, string>((resume) => void resumes.push(resume)) }
}

/** As with a version of Effect that reads the operation for waiting in another form. */
const loadWithoutOperation = Effect.promise(async (): Promise<typeof suspend> => {
  vi.doMock("effect", async (original) => {
    const effect = await original<typeof import("effect")>()
    return { ...effect, Exit: { ...effect.Exit, isSuccess: () => false } }
  })
  // Loads it once more, beside the one that all others use
  const again = "../../../src/platform/fibers/Suspend.ts?without-operation"
  try {
    return (await import(again)).suspend
  } finally {
    vi.doUnmock("effect")
  }
})

describe("a suspension", () => {
  it.effect("ends, fails and dies in the same way if Effect does not know its own operation by this name", () =>
    Effect.gen(function* () {
      const other = yield* loadWithoutOperation
      const resumes: Array<(effect: Effect.Effect<string, string>) => void> = []
      const wait = other<string, string>((resume) => void resumes.push(resume))
      expect([waiting().wait.constructor.name, wait.constructor.name]).toEqual([
        "Suspension",
        Effect.async(() => {}).constructor.name
      ])
      const fibers = yield* Effect.forEach([0, 1], () => Effect.fork(Effect.exit(wait)))
      yield* Effect.yieldNow()
      resumes[0]?.(Effect.succeed("done"))
      resumes[1]?.(Effect.fail("refused"))
      expect(yield* Effect.forEach(fibers, Fiber.join)).toEqual([Exit.succeed("done"), Exit.fail("refused")])
      const bug = new Error("a bug")
      const dying = other(() => {
        throw bug
      })
      expect(yield* Effect.exit(dying)).toEqual(Exit.failCause(Cause.die(bug)))
    })
  )

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
    }).pipe(Effect.withScheduler(sharedScheduler))
  )
})
