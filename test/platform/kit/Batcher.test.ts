import { Deferred, Effect, Exit, Fiber } from "effect"
import { Batcher, type BatcherOptions } from "../../../src/platform/kit/Concurrency.ts"
import { describe, expect, it } from "../../harness/Tests.ts"

interface Held extends Partial<BatcherOptions<string, string, string>> {
  readonly answer?: BatcherOptions<string, string, string>["run"]
}

/** A gathering whose batches wait to be let go and are then answered, and what it was given. */
const held = Effect.fnUntraced(function* ({
  answer = (batch) => Effect.succeed(batch.map((input) => input.toUpperCase())),
  ...options
}: Held = {}) {
  const batches: Array<ReadonlyArray<string>> = []
  const gate = yield* Deferred.make<void>()
  const gathering = yield* Batcher.make<string, string, string>({
    concurrency: 1,
    maxBatch: 3,
    keyOf: (input) => input,
    interval: () => 0,
    timeout: { millis: 60_000, error: () => "too late" },
    isOfOne: () => true,
    run: (batch) => {
      batches.push(batch)
      return Effect.zipRight(Deferred.await(gate), answer(batch))
    },
    ...options
  })
  const submitAll = Effect.fnUntraced(function* (inputs: ReadonlyArray<string>) {
    const fibers: Array<Fiber.RuntimeFiber<string, string>> = []
    for (const input of inputs) {
      fibers.push(yield* Effect.fork(gathering.submit(input)))
      yield* Effect.yieldNow()
    }
    return fibers
  })
  return { batches, gate, gathering, submitAll }
})

describe("a gathering", () => {
  it.effect("begins at once with what comes alone", function* () {
    const { batches, gate, gathering } = yield* held()
    const fiber = yield* Effect.fork(gathering.submit("a"))
    yield* Effect.yieldNow()
    expect(batches).toEqual([["a"]])
    yield* Deferred.succeed(gate, undefined)
    expect(yield* Fiber.join(fiber)).toBe("A")
  })

  it.effect("does together what came while it was busy, each with its own answer, so many at once", function* () {
    const { batches, gate, submitAll } = yield* held()
    const fibers = yield* submitAll(["a", "b", "c", "d", "e"])
    expect(batches).toEqual([["a"]])
    yield* Deferred.succeed(gate, undefined)
    expect(yield* Fiber.join(Fiber.all(fibers))).toEqual(["A", "B", "C", "D", "E"])
    expect(batches).toEqual([["a"], ["b", "c", "d"], ["e"]])
  })

  it.effect("has as many batches under way as it has concurrency", function* () {
    const { batches, gate, submitAll } = yield* held({ concurrency: 2 })
    const fibers = yield* submitAll(["a", "b", "c"])
    expect(batches).toEqual([["a"], ["b"]])
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(Fiber.all(fibers))
    expect(batches).toEqual([["a"], ["b"], ["c"]])
  })

  it.effect("never has the same key twice in a batch", function* () {
    const { batches, gate, submitAll } = yield* held()
    const fibers = yield* submitAll(["a", "b", "b", "c"])
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(Fiber.all(fibers))
    expect(batches).toEqual([["a"], ["b", "c"], ["b"]])
  })

  it.effect("tries each of a failed batch alone, so that none fails for another's sake", function* () {
    const { batches, gate, submitAll } = yield* held({
      answer: (batch) => (batch.includes("bad") ? Effect.fail("refused") : Effect.succeed([...batch]))
    })
    const fibers = yield* submitAll(["a", "b", "bad", "c"])
    yield* Deferred.succeed(gate, undefined)
    const exits = yield* Effect.forEach(fibers, Fiber.await)
    expect(exits).toEqual([Exit.succeed("a"), Exit.succeed("b"), Exit.fail("refused"), Exit.succeed("c")])
    expect(batches).toEqual([["a"], ["b", "bad", "c"], ["b"], ["bad"], ["c"]])
  })

  it.effect("fails a whole batch at once if none of it is the reason", function* () {
    const { batches, gate, submitAll } = yield* held({
      isOfOne: (error) => error !== "unavailable",
      answer: () => Effect.fail("unavailable")
    })
    const fibers = yield* submitAll(["a", "b", "c"])
    yield* Deferred.succeed(gate, undefined)
    const exits = yield* Effect.forEach(fibers, Fiber.await)
    expect(exits).toEqual([Exit.fail("unavailable"), Exit.fail("unavailable"), Exit.fail("unavailable")])
    expect(batches).toEqual([["a"], ["b", "c"]])
  })

  it.live("spaces its batches, and does together what came meanwhile", function* () {
    let interval = 0
    const { batches, gate, submitAll } = yield* held({ concurrency: 2, interval: () => interval })
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(Fiber.all(yield* submitAll(["a"])))
    interval = 250
    const together = yield* submitAll(["b", "c"])
    expect(batches).toEqual([["a"]])
    yield* Fiber.join(Fiber.all(together))
    expect(batches).toEqual([["a"], ["b", "c"]])
    // A whole batch is not worth waiting for more
    interval = 60_000
    yield* Fiber.join(Fiber.all(yield* submitAll(["d", "e", "f"])))
    expect(batches).toEqual([["a"], ["b", "c"], ["d", "e", "f"]])
  })

  it.live("fails what waits for a lane for too long, and nothing that is under way", function* () {
    const { batches, gate, submitAll } = yield* held({ timeout: { millis: 20, error: () => "too late" } })
    const [first, second, third] = yield* submitAll(["a", "b", "c"])
    if (first === undefined || second === undefined || third === undefined) return expect.unreachable()
    expect(yield* Fiber.await(second)).toEqual(Exit.fail("too late"))
    expect(yield* Fiber.await(third)).toEqual(Exit.fail("too late"))
    yield* Deferred.succeed(gate, undefined)
    expect(yield* Fiber.join(first)).toBe("A")
    expect(batches).toEqual([["a"]])
  })

  it.effect("goes on after a defect, and after an answer of the wrong length", function* () {
    const answers = [Effect.dieMessage("a bug"), Effect.succeed([]), Effect.succeed(["fine"])]
    const { gate, gathering } = yield* held({ answer: () => answers.shift() ?? Effect.succeed([]) })
    yield* Deferred.succeed(gate, undefined)
    const exits = yield* Effect.forEach(["a", "b", "c"], (input) => Effect.exit(gathering.submit(input)))
    expect(exits.map(Exit.isSuccess)).toEqual([false, false, true])
  })

  it.effect("does the work of a caller that no longer waits", function* () {
    const { batches, gate, submitAll } = yield* held()
    const [first, second] = yield* submitAll(["a", "b"])
    if (first === undefined || second === undefined) return expect.unreachable()
    yield* Fiber.interrupt(second)
    yield* Deferred.succeed(gate, undefined)
    expect(yield* Fiber.join(first)).toBe("A")
    yield* Effect.yieldNow()
    expect(batches).toEqual([["a"], ["b"]])
  })
})
