import { SqlError } from "@effect/sql"
import { describe, expect } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { type ClaimedDelivery, queueStart } from "../../src/engine/queue/Claim.ts"
import type { FinishedAttempt } from "../../src/engine/queue/Queue.ts"
import { LoopHealth } from "../../src/engine/worker/WorkerLife.ts"
import { anyDelivery } from "../destinations/deliveries/AnyDelivery.ts"
import { eventuallyTrue } from "../harness/Eventually.ts"
import { it } from "../harness/Tests.ts"
import { FakeQueue, workerOn } from "./FakeQueue.ts"
import { finished } from "./QueueBench.ts"

/** A worker's records, on a database that is away until `isAway` says otherwise, and what it begins of its claims. */
const started = Effect.gen(function* () {
  const database = { isAway: true, tries: 0 }
  const recorded: Array<FinishedAttempt> = []
  const fake = new FakeQueue()
  fake.onFinish = (attempts) =>
    Effect.suspend(() => {
      database.tries += 1
      if (database.isAway) return new SqlError.SqlError({ cause: new Error("away") })
      recorded.push(...attempts)
      return Effect.void
    })
  const worker = yield* workerOn(fake, { concurrency: 16 })
  const { recording } = worker
  yield* Effect.forkScoped(Effect.forever(recording.round))
  // A record is never broken off: it ends once the database takes it
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      database.isAway = false
    })
  )
  /** Begins what a claim took that was under way when records began to fail. */
  const begin = Effect.fnUntraced(function* (deliveries: ReadonlyArray<ClaimedDelivery>) {
    fake.onClaim = () => ({ deliveries, nextDueInMillis: null, more: false, place: queueStart, askedFor: new Map() })
    return yield* Effect.forkScoped(worker.claim)
  })
  return { begin, database, fake, recorded, recording }
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
    const { begin, database, fake, recording } = yield* started
    const [delivered, retried, other] = [anyDelivery(), anyDelivery(), anyDelivery()]
    recording.add(finished(delivered, 204, { state: "delivered" }))
    yield* eventuallyTrue("a try that failed", () => database.tries > 0)
    recording.add(finished(retried, 503, { state: "queued", delay: Duration.seconds(30) }))
    yield* begin([delivered, retried, other].map((one) => ({ ...one, attempt: 2, interrupted: 1 })))
    yield* eventuallyTrue("the attempt", () => fake.sent.length > 0)
    expect(fake.sent).toEqual([other.id])
    expect(fake.released).toEqual([
      [delivered.id, 1],
      [retried.id, 30]
    ])
  })
})
