import { Cause, Deferred, Effect, Exit, Fiber, Option, Scope } from "effect"
import { AttemptPool, sharedScheduler } from "../../src/engine/attempts/Attempts.ts"
import { eventuallyTrue } from "../harness/Eventually.ts"
import { describe, expect, it } from "../harness/Tests.ts"

/** A pool whose attempts wait to be ended, each by its name. */
const held = Effect.gen(function* () {
  const gates = new Map<string, Deferred.Deferred<string>>()
  const interrupted: Array<string> = []
  const ended = new Map<string, Exit.Exit<string>>()
  const pool: AttemptPool<string, string> = yield* AttemptPool.make<string, string>({
    keep: 1,
    make: (attempt) =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<string>()
        gates.set(attempt, gate)
        return yield* Deferred.await(gate)
      }).pipe(Effect.onInterrupt(() => Effect.sync(() => interrupted.push(attempt)))),
    onEnd: (attempt, exit) => void ended.set(attempt, exit)
  })
  const end = Effect.fnUntraced(function* (attempt: string, exit: Exit.Exit<string>) {
    yield* eventuallyTrue(`attempt ${attempt}`, () => gates.has(attempt))
    const gate = gates.get(attempt)
    if (gate !== undefined) yield* Deferred.done(gate, exit)
    yield* eventuallyTrue(`the end of ${attempt}`, () => ended.has(attempt))
  })
  return { end, ended, interrupted, pool }
})

describe("a pool of attempts", () => {
  it.scopedLive("tells of a bug in an attempt, and goes on", function* () {
    const { end, ended, pool } = yield* held
    pool.run("a")
    yield* end("a", Exit.die(new Error("a bug")))
    const exit = ended.get("a")
    expect(exit !== undefined && Exit.isFailure(exit) && Option.isSome(Cause.dieOption(exit.cause))).toBe(true)
    pool.run("b")
    yield* end("b", Exit.succeed("B"))
    expect(ended.get("b")).toEqual(Exit.succeed("B"))
  })

  it.live("interrupts with its scope what is in flight, and tells nobody", function* () {
    const scope = yield* Scope.make()
    const { end, ended, interrupted, pool } = yield* Scope.extend(held, scope)
    for (const attempt of ["a", "b", "c"]) pool.run(attempt)
    yield* end("b", Exit.succeed("B"))
    yield* Scope.close(scope, Exit.void)
    expect(interrupted.toSorted()).toEqual(["a", "c"])
    expect([...ended.keys()]).toEqual(["b"])
  })

  it.effect("resumes its fibers together, before what they resume", () =>
    Effect.gen(function* () {
      const steps: Array<string> = []
      const resumes: Array<() => void> = []
      const step = (name: string) =>
        Effect.gen(function* () {
          yield* Effect.async<void>((resume) => void resumes.push(() => resume(Effect.void)))
          steps.push(`${name} resumed`)
          yield* Effect.yieldNow()
          steps.push(`${name} went on`)
        })
      const fibers = yield* Effect.forEach(["a", "b"], (name) => Effect.fork(step(name)))
      yield* Effect.yieldNow()
      for (const resume of resumes) resume()
      yield* Effect.forEach(fibers, Fiber.join)
      expect(steps).toEqual(["a resumed", "b resumed", "a went on", "b went on"])
    }).pipe(Effect.withScheduler(sharedScheduler))
  )
})
