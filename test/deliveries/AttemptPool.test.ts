import { describe, expect, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, FiberId, Option, Scope } from "effect"
import { AttemptPool } from "../../src/deliveries/sending/AttemptPool.ts"
import { eventuallyTrue } from "../harness/Eventually.ts"

/** A pool whose attempts wait to be let go; each says which fiber makes it. */
const held = Effect.fnUntraced(function* (keep: number, onEnd: (attempt: string) => void = () => {}) {
  const gates = new Map<string, Deferred.Deferred<string>>()
  const fibers: Array<string> = []
  const interrupted: Array<string> = []
  const ended = new Map<string, Exit.Exit<string>>()
  const pool: AttemptPool<string, string> = yield* AttemptPool.make<string, string>({
    keep,
    make: (attempt) =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<string>()
        gates.set(attempt, gate)
        fibers.push(FiberId.threadName(yield* Effect.fiberId))
        return yield* Deferred.await(gate)
      }).pipe(Effect.onInterrupt(() => Effect.sync(() => interrupted.push(attempt)))),
    onEnd: (attempt, exit) => {
      ended.set(attempt, exit)
      onEnd(attempt)
    }
  })
  const begun = (attempt: string) => eventuallyTrue(`attempt ${attempt}`, () => gates.has(attempt))
  const letGo = (attempt: string) =>
    Effect.gen(function* () {
      yield* begun(attempt)
      const gate = gates.get(attempt)
      if (gate !== undefined) yield* Deferred.succeed(gate, attempt.toUpperCase())
      yield* eventuallyTrue(`the end of ${attempt}`, () => ended.has(attempt))
    })
  const fail = (attempt: string, defect: unknown) =>
    Effect.gen(function* () {
      yield* begun(attempt)
      const gate = gates.get(attempt)
      if (gate !== undefined) yield* Deferred.die(gate, defect)
      yield* eventuallyTrue(`the end of ${attempt}`, () => ended.has(attempt))
    })
  return { begun, ended, fail, fibers, interrupted, letGo, pool }
})

describe("a pool of attempts", () => {
  it.scopedLive("makes as many at once as it is given, each in a fiber of its own", () =>
    Effect.gen(function* () {
      const { begun, ended, fibers, letGo, pool } = yield* held(2)
      for (const attempt of ["a", "b", "c"]) pool.run(attempt)
      yield* Effect.forEach(["a", "b", "c"], begun)
      expect(new Set(fibers).size).toBe(3)
      yield* Effect.forEach(["c", "a", "b"], letGo)
      expect(ended).toEqual(
        new Map([
          ["c", Exit.succeed("C")],
          ["a", Exit.succeed("A")],
          ["b", Exit.succeed("B")]
        ])
      )
    })
  )

  it.scopedLive("makes one attempt after another in the same fiber", () =>
    Effect.gen(function* () {
      const { fibers, letGo, pool } = yield* held(1)
      for (const attempt of ["a", "b", "c"]) {
        pool.run(attempt)
        yield* letGo(attempt)
        yield* Effect.yieldNow()
      }
      expect(new Set(fibers).size).toBe(1)
    })
  )

  it.scopedLive("hands what is begun as an attempt ends to that attempt's fiber", () =>
    Effect.gen(function* () {
      const { fibers, letGo, pool } = yield* held(0, (attempt) => {
        if (attempt === "a") for (const next of ["b", "c"]) pool.run(next)
      })
      pool.run("a")
      yield* letGo("a")
      yield* Effect.forEach(["b", "c"], letGo)
      expect(fibers[1] === fibers[0] || fibers[2] === fibers[0]).toBe(true)
      expect(new Set(fibers).size).toBe(2)
    })
  )

  it.scopedLive("keeps no more idle fibers than it is told to", () =>
    Effect.gen(function* () {
      const { begun, fibers, letGo, pool } = yield* held(1)
      const first = ["a", "b", "c"]
      for (const attempt of first) pool.run(attempt)
      yield* Effect.forEach(first, letGo)
      yield* Effect.yieldNow()
      for (const attempt of ["d", "e"]) pool.run(attempt)
      yield* Effect.forEach(["d", "e"], begun)
      const reused = fibers.slice(3).filter((fiber) => fibers.slice(0, 3).includes(fiber))
      expect(reused).toHaveLength(1)
    })
  )

  it.scopedLive("tells of a bug in an attempt, whose fiber goes on", () =>
    Effect.gen(function* () {
      const { ended, fail, fibers, letGo, pool } = yield* held(1)
      pool.run("a")
      yield* fail("a", new Error("a bug"))
      const exit = ended.get("a")
      expect(exit !== undefined && Exit.isFailure(exit) && Option.isSome(Cause.dieOption(exit.cause))).toBe(true)
      yield* Effect.yieldNow()
      pool.run("b")
      yield* letGo("b")
      expect(fibers[1]).toBe(fibers[0])
    })
  )

  it.live("interrupts with its scope what is in flight, and tells nobody", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { begun, ended, interrupted, letGo, pool } = yield* Scope.extend(held(4), scope)
      for (const attempt of ["a", "b", "c"]) pool.run(attempt)
      yield* Effect.forEach(["a", "b", "c"], begun)
      yield* letGo("b")
      const closing = yield* Effect.fork(Scope.close(scope, Exit.void))
      yield* Fiber.join(closing)
      expect(interrupted.toSorted()).toEqual(["a", "c"])
      expect([...ended.keys()]).toEqual(["b"])
    })
  )
})
