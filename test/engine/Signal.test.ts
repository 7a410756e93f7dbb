import { Effect, Fiber } from "effect"
import { Signal } from "../../src/engine/queue/WakeUp.ts"
import { eventuallyTrue } from "../harness/Eventually.ts"
import { describe, expect, it } from "../harness/Tests.ts"

const waiting = (signal: Signal) =>
  Effect.tap(Effect.fork(signal.wait()), () => eventuallyTrue("a fiber waits", () => signal.isAwaited))

describe("a signal", () => {
  it.live("is remembered once if nobody waits, and can be taken back", function* () {
    const signal = new Signal()
    signal.raise()
    signal.raise()
    expect(signal.isAwaited).toBe(false)
    yield* signal.wait()
    yield* Fiber.interrupt(yield* waiting(signal))
    signal.raise()
    signal.reset()
    yield* Fiber.interrupt(yield* waiting(signal))
  })

  it.live("that a fiber waited for when it was interrupted comes to the next one", function* () {
    const signal = new Signal()
    yield* Fiber.interrupt(yield* waiting(signal))
    expect(signal.isAwaited).toBe(false)
    signal.raise()
    yield* signal.wait()
  })

  it.live("is not waited for longer than that many milliseconds, by the one who says so", function* () {
    const signal = new Signal()
    yield* signal.wait(5)
    yield* Fiber.interrupt(yield* Effect.fork(signal.wait(5)))
    const next = yield* waiting(signal)
    yield* Effect.sleep("20 millis")
    expect(next.unsafePoll()).toBeNull()
    signal.raise()
    yield* Fiber.join(next)
  })
})
