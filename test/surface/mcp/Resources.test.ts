import { Effect, Fiber } from "effect"
import { makeResources } from "../../../src/surface/mcp/Resources.ts"
import { expect, it } from "../../harness/Tests.ts"

it.live("the guide to errors is there for others if the first agent that asks for it leaves meanwhile", function* () {
  const text = (yield* makeResources).get("connected-payments://docs/errors")?.text ?? Effect.die("It is not listed")
  // Its files are being read
  const first = yield* Effect.fork(text)
  yield* Effect.yieldNow()
  yield* Fiber.interrupt(first)
  expect(yield* Fiber.join(yield* Effect.fork(text))).toContain("idempotency_key_reused")
})
