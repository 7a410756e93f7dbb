import { connect, createServer } from "node:net"
import { performance } from "node:perf_hooks"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { Deadlines, Expiring } from "../../src/deliveries/sending/Deadlines.ts"
import { until } from "./TransportServers.ts"

class Told extends Expiring {
  readonly #tell: () => void

  constructor(tell: () => void) {
    super()
    this.#tell = tell
  }

  expire(): void {
    this.#tell()
  }
}

/** Calls this when it expires. */
const expiring = (tell: () => void): Expiring => new Told(tell)

describe("deadlines", () => {
  it.live("pass in the order of the starts, each at its time", () =>
    Effect.gen(function* () {
      const deadlines = new Deadlines(50)
      const passed: Array<{ readonly index: number; readonly after: number }> = []
      for (let index = 0; index < 5; index++) {
        const startedAt = performance.now()
        deadlines.add(expiring(() => passed.push({ index, after: performance.now() - startedAt })))
        yield* Effect.sleep("15 millis")
      }
      yield* until(() => passed.length === 5)
      expect(passed.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4])
      for (const { after } of passed) expect(after).toBeGreaterThanOrEqual(50)
      expect(deadlines.size).toBe(0)
    })
  )

  it.live("do not pass for what has ended", () =>
    Effect.gen(function* () {
      const deadlines = new Deadlines(20)
      const passed: Array<string> = []
      const ended = expiring(() => passed.push("ended"))
      deadlines.add(ended)
      deadlines.add(expiring(() => passed.push("late")))
      deadlines.delete(ended)
      deadlines.delete(ended)
      yield* until(() => deadlines.size === 0)
      expect(passed).toEqual(["late"])
    })
  )

  it.live("hold for what is added when another passes, and after a pause", () =>
    Effect.gen(function* () {
      const deadlines = new Deadlines(20)
      const passed: Array<string> = []
      deadlines.add(
        expiring(() => {
          passed.push("first")
          deadlines.add(expiring(() => passed.push("added")))
        })
      )
      deadlines.add(expiring(() => passed.push("second")))
      yield* until(() => passed.length === 3)
      expect(passed).toEqual(["first", "second", "added"])
      deadlines.add(expiring(() => passed.push("after a pause")))
      yield* until(() => passed.length === 4)
    })
  )

  it.live("do not pass for what was answered in time, while the process itself was held up", () =>
    Effect.gen(function* () {
      const deadlines = new Deadlines(30)
      const passed: Array<string> = []
      const answered: Array<string> = []
      const held = expiring(() => passed.push("held up"))
      const server = createServer((socket) => {
        deadlines.add(held)
        socket.write("answer")
        const until = performance.now() + 100
        while (performance.now() < until);
      }).listen(0, "127.0.0.1")
      yield* Effect.addFinalizer(() => Effect.sync(() => server.close()))
      yield* until(() => server.listening)
      const address = server.address()
      const client = connect(typeof address === "object" ? (address?.port ?? 0) : 0, "127.0.0.1")
      client.on("data", () => {
        deadlines.delete(held)
        answered.push("answered")
      })
      yield* until(() => answered.length === 1)
      client.destroy()
      yield* until(() => deadlines.size === 0)
      expect(passed).toEqual([])
    }).pipe(Effect.scoped)
  )

  it.live("leave the event loop to other work while many pass together", () =>
    Effect.gen(function* () {
      const deadlines = new Deadlines(20)
      const passed: Array<number> = []
      for (let index = 0; index < 100; index++) deadlines.add(expiring(() => passed.push(index)))
      const passedAtTurns = new Set<number>()
      const turn = () => {
        passedAtTurns.add(passed.length)
        if (passed.length < 100) setImmediate(turn)
      }
      turn()
      yield* until(() => deadlines.size === 0)
      expect(passed).toEqual(Array.from({ length: 100 }, (_, index) => index))
      // In turns of a few each
      expect(passedAtTurns.size).toBeGreaterThan(10)
    })
  )

  it.live("are spread over the time that is given for it if many would pass together, and none passes early", () =>
    Effect.gen(function* () {
      const deadlines = new Deadlines(20, 1000)
      const passedAt: Array<number> = []
      const startedAt = performance.now()
      for (let index = 0; index < 1000; index++) {
        deadlines.add(expiring(() => passedAt.push(performance.now() - startedAt)))
      }
      yield* until(() => deadlines.size === 0)
      const [first = 0] = passedAt
      expect(first).toBeGreaterThanOrEqual(20)
      // Without the spread, a thousand such ends take a few milliseconds
      expect((passedAt.at(-1) ?? 0) - first).toBeGreaterThan(300)
      expect(passedAt).toHaveLength(1000)
    })
  )

  it.live("wait for nothing if only a few pass together, however much time they could take", () =>
    Effect.gen(function* () {
      const deadlines = new Deadlines(20, 60_000)
      for (let index = 0; index < 12; index++) deadlines.add(expiring(() => {}))
      yield* until(() => deadlines.size === 0)
    })
  )

  it.live("pass for all of many, also if some end or are added meanwhile", () =>
    Effect.gen(function* () {
      const deadlines = new Deadlines(20)
      const passed: Array<string> = []
      const last = expiring(() => passed.push("last"))
      for (let index = 0; index < 20; index++) {
        deadlines.add(
          expiring(() => {
            passed.push("one of many")
            if (index !== 0) return
            deadlines.delete(last)
            deadlines.add(expiring(() => passed.push("added")))
          })
        )
      }
      deadlines.add(last)
      yield* until(() => deadlines.size === 0)
      expect(passed).toEqual([...Array.from({ length: 20 }, () => "one of many"), "added"])
    })
  )

  it.live("cost one timer, however many there are", () =>
    Effect.gen(function* () {
      const setTimer = vi.spyOn(globalThis, "setTimeout")
      const deadlines = new Deadlines(60_000)
      for (let index = 0; index < 1000; index++) deadlines.add(expiring(() => {}))
      expect(setTimer).toHaveBeenCalledTimes(1)
      setTimer.mockRestore()
      expect(deadlines.size).toBe(1000)
    })
  )
})
