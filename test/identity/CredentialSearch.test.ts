import { Deferred, Effect, Fiber } from "effect"
import { makeCredentialSearch } from "../../src/identity/keys/CredentialLimitsStatements.ts"
import { turnOfEventLoop } from "../../src/platform/kit/Concurrency.ts"
import { eventuallyTrue } from "../harness/Eventually.ts"
import { expect, it } from "../harness/Tests.ts"

const real = Buffer.from("real")

it.scopedLive("a flood of made-up credentials and a real one among them are looked up in one statement", function* () {
  const statements: Array<number> = []
  const answers = yield* Deferred.make<void>()
  const exists = yield* makeCredentialSearch((hashes) => {
    statements.push(hashes.length)
    return Effect.as(
      Deferred.await(answers),
      hashes.flatMap((hash) => (hash.equals(real) ? [{ hash }] : []))
    )
  })
  const first = yield* Effect.fork(exists(Buffer.from("first")))
  yield* eventuallyTrue("the first statement", () => statements.length === 1)
  const flood = yield* Effect.fork(
    Effect.all(
      Array.from({ length: 400 }, (_, n) => exists(Buffer.from(`made up ${n}`))),
      { concurrency: "unbounded" }
    )
  )
  const known = yield* Effect.fork(exists(real))
  // By then, all of them wait
  yield* Effect.repeatN(turnOfEventLoop, 3)
  yield* Deferred.succeed(answers, undefined)
  expect(yield* Fiber.join(known)).toBe(true)
  expect(yield* Fiber.join(first)).toBe(false)
  expect(new Set(yield* Fiber.join(flood))).toEqual(new Set([false]))
  expect(statements).toEqual([1, 401])
})
