import { Effect } from "effect"
import { describe, expect } from "../harness/Tests.ts"
import { onEmulator, platform, until } from "./Harness.ts"

const payments = 600

describe("thousands of refused notifications", () => {
  onEmulator("are each tried meanwhile, and all arrive once they are taken", function* ({ account, emulator }) {
    const [tried, taken] = [new Set<string>(), new Set<string>()]
    let isTaking = false
    const { url } = yield* platform((received) => {
      const { id } = JSON.parse(received.at(-1)?.body ?? "{}")
      tried.add(id)
      if (isTaking) taken.add(id)
      return isTaking ? 200 : 400
    })
    yield* emulator.setWebhookUrl(url)
    const trigger = emulator.trigger({ type: "payment_intent.succeeded", account })
    yield* Effect.forEach(Array.from({ length: payments }), () => trigger, { discard: true })
    yield* until(() => tried.size >= 3 * payments)
    isTaking = true
    yield* until(() => taken.size === tried.size)
    expect(taken.size).toBeGreaterThanOrEqual(3 * payments)
  })
})
