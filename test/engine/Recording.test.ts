import { SqlError } from "@effect/sql"
import { describe, expect } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import type { ClaimedDelivery } from "../../src/engine/queue/Claim.ts"
import type { FinishedAttempt, Queue } from "../../src/engine/queue/Queue.ts"
import { Held, LoopHealth, makeBegin, Recording } from "../../src/engine/worker/Held.ts"
import { anyDelivery } from "../destinations/deliveries/AnyDelivery.ts"
import { eventuallyTrue } from "../harness/Eventually.ts"
import { it } from "../harness/Tests.ts"
import { finished } from "./QueueBench.ts"

const unused = () => Effect.die("not called")

/** A worker's records, on a database that is away until `isAway` says otherwise, and what it begins of its claims. */
const started = Effect.gen(function* () {
  const database = { isAway: true, tries: 0 }
  const recorded: Array<FinishedAttempt> = []
  const released: Array<readonly [id: string, seconds: number]> = []
  const begun: Array<ClaimedDelivery> = []
  const queue: Queue["Type"] = {
    claim: unused,
    destinations: unused,
    finish: (attempts) =>
      Effect.suspend(() => {
        database.tries += 1
        if (database.isAway) return new SqlError.SqlError({ cause: new Error("away") })
        recorded.push(...attempts)
        return Effect.void
      }),
    release: (deliveries, delay) =>
      Effect.sync(() => void released.push(...deliveries.map(({ id }) => [id, Duration.toSeconds(delay)] as const)))
  }
  const held = new Held(queue, () => {})
  const recording = new Recording(queue, held, new LoopHealth("starts"))
  yield* Effect.forkScoped(Effect.forever(recording.round))
  // A record is never broken off: it ends once the database takes it
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      database.isAway = false
    })
  )
  const begin = makeBegin({
    held,
    attempts: { start: (delivery) => void begun.push(delivery) },
    destinations: { load: () => Effect.void },
    recording,
    startWithin: Duration.seconds(5)
  })
  return {
    database,
    recording,
    recorded,
    released,
    begun,
    begin: (all: ReadonlyArray<ClaimedDelivery>) => begin(all, performance.now(), "usual")
  }
})

const confirmed = () => finished(anyDelivery(), 204, { state: "delivered" })

describe("a worker that can't record its attempts", () => {
  it.scopedLive("claims nothing until all that had ended is recorded", function* () {
    const { database, recorded, recording } = yield* started
    const health = new LoopHealth("starts")
    yield* recording.caughtUp(health)
    recording.add(confirmed())
    yield* eventuallyTrue("a try that failed", () => database.tries > 0)
    // These end while the first is tried again
    for (let more = 0; more < 3; more += 1) recording.add(confirmed())
    const countAtClaim = yield* Effect.fork(Effect.map(recording.caughtUp(health), () => recorded.length))
    const tries = database.tries
    yield* eventuallyTrue("another try", () => database.tries > tries)
    expect(countAtClaim.unsafePoll()).toBeNull()
    expect(health.doing).toBe("waits until attempts that were made are recorded")
    database.isAway = false
    expect(yield* Fiber.join(countAtClaim)).toBe(4)
  })

  it.scopedLive("gives back what it has sent if a claim under way takes it again, and begins the rest", function* () {
    const { begin, begun, database, recording, released } = yield* started
    const [delivered, retried, other] = [anyDelivery(), anyDelivery(), anyDelivery()]
    recording.add(finished(delivered, 204, { state: "delivered" }))
    yield* eventuallyTrue("a try that failed", () => database.tries > 0)
    recording.add(finished(retried, 503, { state: "queued", delay: Duration.seconds(30) }))
    const again = [delivered, retried, other].map((one) => ({ ...one, attempt: 2, interrupted: 1 }))
    yield* begin(again)
    expect(begun).toEqual(again.slice(2))
    expect(released).toEqual([
      [delivered.id, 1],
      [retried.id, 30]
    ])
  })
})
