import { Effect, Fiber, TestClock } from "effect"
import { makeRefusalPause } from "../../src/identity/RequestAdmission.ts"
import { expect, it } from "../harness/Tests.ts"

/** Counts what has been refused of each credential. */
const counting = () => {
  const paused = makeRefusalPause()
  const refused = { greedy: 0, other: 0 }
  const refuse = (name: keyof typeof refused) =>
    paused(
      name,
      Effect.sync(() => {
        refused[name] += 1
      })
    )
  return { refuse, refused }
}

const many = (refuse: Effect.Effect<void>, count: number) =>
  Effect.fork(
    Effect.all(
      Array.from({ length: count }, () => refuse),
      { concurrency: "unbounded" }
    )
  )

it.effect("a refusal waits 100 ms, and longer the more of its credential's wait, not of others'", function* () {
  const { refuse, refused } = counting()
  yield* many(refuse("greedy"), 64)
  yield* many(refuse("other"), 1)
  yield* TestClock.adjust("99 millis")
  expect(refused).toEqual({ greedy: 0, other: 0 })
  yield* TestClock.adjust("1 millis")
  expect(refused).toEqual({ greedy: 8, other: 1 })
  yield* TestClock.adjust("300 millis")
  expect(refused).toEqual({ greedy: 32, other: 1 })
  yield* TestClock.adjust("400 millis")
  expect(refused).toEqual({ greedy: 64, other: 1 })
})

it.effect("no refusal waits longer than a second, and one that is given up makes room", function* () {
  const { refuse, refused } = counting()
  const flood = yield* many(refuse("greedy"), 100)
  yield* TestClock.adjust("1 seconds")
  expect(refused.greedy).toBe(100)
  yield* Fiber.join(flood)
  const gone = yield* many(refuse("greedy"), 100)
  yield* TestClock.adjust("50 millis")
  yield* Fiber.interrupt(gone)
  yield* many(refuse("greedy"), 1)
  yield* TestClock.adjust("100 millis")
  expect(refused.greedy).toBe(101)
})
