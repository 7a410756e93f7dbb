import { Effect, Exit, Fiber, Scope, TestClock } from "effect"
import { makeFairSemaphore } from "../../../src/platform/kit/Concurrency.ts"
import { expect, it } from "../../harness/Tests.ts"

const turns = Effect.map(
  makeFairSemaphore({
    concurrency: 8,
    share: 2,
    timeout: "10 seconds",
    onShareTaken: () => "share taken",
    onAllTaken: () => "all taken"
  }),
  (takePermit) => (owner: string) =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const waiting = yield* Effect.fork(Effect.either(Scope.extend(takePermit(owner), scope)))
      return {
        giveBack: Scope.close(scope, Exit.void),
        isTaken: Effect.map(
          Effect.zipRight(TestClock.adjust("1 millis"), Fiber.poll(waiting)),
          (exit) => exit._tag === "Some"
        ),
        outcome: Effect.zipRight(
          TestClock.adjust("11 seconds"),
          Effect.map(Fiber.join(waiting), (either) => (either._tag === "Left" ? either.left : "taken"))
        )
      }
    })
)

it.effect("an owner has its share of the turns at most, whoever else is there, and is told so", function* () {
  const take = yield* turns
  const [first, second] = [yield* take("one"), yield* take("one")]
  expect([yield* first.isTaken, yield* second.isTaken]).toEqual([true, true])
  const third = yield* take("one")
  expect(yield* third.isTaken).toBe(false)
  expect(yield* (yield* take("another")).isTaken).toBe(true)
  yield* first.giveBack
  expect(yield* third.isTaken).toBe(true)
  expect(yield* (yield* take("one")).outcome).toBe("share taken")
})

it.effect("if all turns are taken, the next one waits, and is then told so", function* () {
  const take = yield* turns
  const taken = yield* Effect.forEach([..."aabbccdd"], take)
  expect(yield* Effect.forEach(taken, ({ isTaken }) => isTaken)).not.toContain(false)
  const refused = yield* take("e")
  expect(yield* refused.outcome).toBe("all taken")
  yield* refused.giveBack
  const next = yield* take("f")
  yield* taken[0]?.giveBack ?? Effect.void
  expect(yield* next.isTaken).toBe(true)
})

it.effect("a turn that was given up is nobody's: the next one gets it", function* () {
  const take = yield* turns
  const held = yield* Effect.forEach(["a", "a"], take)
  const waiting = yield* take("a")
  expect(yield* waiting.isTaken).toBe(false)
  yield* waiting.giveBack
  for (const { giveBack } of held) yield* giveBack
  for (const turn of yield* Effect.forEach(["a", "a"], take)) expect(yield* turn.isTaken).toBe(true)
})
