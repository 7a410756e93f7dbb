import { createServer } from "node:net"
import { Effect, Fiber, Redacted, TestClock } from "effect"
import { listening } from "../../harness/Listening.ts"
import { createMigratedDatabase } from "../../harness/TestDatabase.ts"
import { describe, expect, it } from "../../harness/Tests.ts"
import { YieldingAt } from "../../harness/YieldingAt.ts"
import { connected } from "./ReplicatedBed.ts"

/** A replica that ends each connection at once, and how many there have been. */
const brokenReplica = Effect.gen(function* () {
  let tries = 0
  const server = createServer((socket) => {
    tries += 1
    socket.destroy()
  })
  return { url: `postgres://reader@127.0.0.1:${yield* listening(server)}/none`, tries: () => tries }
})

describe("a read replica that is away", () => {
  it.scoped("is tried again after its rest, wherever the read that tried it before was interrupted", function* () {
    const replica = yield* brokenReplica
    const { prefer, sql } = yield* connected(Redacted.value((yield* createMigratedDatabase).url), replica.url)
    const read = prefer(sql`SELECT 1 AS one`)
    expect(yield* read).toEqual([{ one: 1 }])
    expect(replica.tries()).toBe(1)
    // It rests now
    expect(yield* read).toEqual([{ one: 1 }])
    expect(replica.tries()).toBe(1)
    for (let operation = 1; operation <= 40; operation += 1) {
      yield* TestClock.adjust("5 seconds")
      const interrupted = yield* Effect.fork(Effect.withScheduler(read, new YieldingAt(operation)))
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(interrupted)
      yield* TestClock.adjust("5 seconds")
      const before = replica.tries()
      expect(yield* read).toEqual([{ one: 1 }])
      expect([operation, replica.tries() > before]).toEqual([operation, true])
    }
  })
})
