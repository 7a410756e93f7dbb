import { connect, createServer } from "node:net"
import { performance } from "node:perf_hooks"
import { Effect } from "effect"
import { Deadlines, Expiring } from "../../src/engine/transport/Connections.ts"
import { describe, expect, it } from "../harness/Tests.ts"
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

const expiring = (tell: () => void): Expiring => new Told(tell)

describe("deadlines", () => {
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

  it.live("leave the event loop to other work while many pass together", function* () {
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

  it.live(
    "are spread over the time that is given for it if many would pass together, and none passes early",
    function* () {
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
    }
  )
})
