import { describe, expect, vi } from "@effect/vitest"
import { Chunk, Duration, Effect, TestClock } from "effect"
import type { AttemptOutcome } from "../../src/engine/attempts/Outcome.ts"
import { type Claim, type ClaimOptions, queueStart } from "../../src/engine/queue/Claim.ts"
import type { WorkerOptions } from "../../src/engine/worker/Endpoints.ts"
import { anyDelivery } from "../destinations/deliveries/AnyDelivery.ts"
import { eventuallyDone, eventuallyTrue } from "../harness/Eventually.ts"
import { it } from "../harness/Tests.ts"
import { FakeQueue, workerOn } from "./FakeQueue.ts"

const place = "2026-11-26 12:00:00+00"
const nothingDue: Claim = { deliveries: [], nextDueInMillis: null, more: false, place, askedFor: new Map() }
const due = (count: number): Claim => ({ ...nothingDue, deliveries: Array.from({ length: count }, anyDelivery) })
const delivered: AttemptOutcome = { httpStatus: 204, errorCode: null, durationMs: 1, retryAfter: null }

/** A worker whose claims are recorded and answered by the test. The scope ends it. */
const started = (answer: (claim: ClaimOptions, before: number) => Claim, options: Partial<WorkerOptions> = {}) =>
  Effect.gen(function* () {
    const claims: Array<ClaimOptions> = []
    const queue = new FakeQueue()
    queue.onClaim = (claim) => {
      claims.push(claim)
      return answer(claim, claims.length - 1)
    }
    const worker = yield* workerOn(queue, { concurrency: 4, pollInterval: Duration.millis(5), ...options })
    for (const round of [worker.claimRound, worker.claimBesideRound, worker.recording.round]) {
      yield* Effect.forkScoped(Effect.forever(round))
    }
    const looking = (look: ClaimOptions["look"]) => claims.filter((claim) => claim.look === look).length
    return { claims, looking, queue, worker }
  })

const timeIs = (now: () => number) =>
  Effect.acquireRelease(
    Effect.sync(() => vi.spyOn(performance, "now").mockImplementation(now)),
    (spy) => Effect.sync(() => spy.mockRestore())
  )

describe("claims in the order of time", () => {
  it.scopedLive("wait for room, and never ask for less than one", function* () {
    const { claims, queue } = yield* started((_, before) => (before === 0 ? due(4) : nothingDue))
    yield* eventuallyTrue("the attempts", () => queue.sent.length === 4)
    yield* Effect.sleep("100 millis")
    const inOrder = () => claims.filter(({ look }) => look === undefined).map(({ limit }) => limit)
    expect(inOrder()).toEqual([4])
    queue.answer(delivered)
    yield* eventuallyTrue("the next claim", () => inOrder().length >= 2)
    expect(inOrder()[1]).toBeGreaterThanOrEqual(1)
  })

  it.scopedLive("begin where the one before ended", function* () {
    const { claims } = yield* started(() => nothingDue)
    yield* eventuallyTrue("claims from there", () => claims.some(({ from }) => from === place))
    expect(claims[0]?.from).toBe(queueStart)
  })

  it.scopedLive("find what is announced after it was due for long, without waiting for the next poll", function* () {
    const { claims, queue, worker } = yield* started(() => nothingDue, { pollInterval: Duration.minutes(5) })
    yield* Effect.forkScoped(Effect.forever(worker.listenRound))
    yield* eventuallyTrue("the first claim", () => claims.length > 0)
    queue.announced.raise()
    yield* eventuallyTrue("a claim from the start", () => claims.slice(1).some(({ from }) => from === queueStart))
    expect(claims.length).toBeLessThanOrEqual(3)
  })

  it.scopedLive(
    "look from the start again each second, the more rarely, the longer that takes: done rows may not be cleared away",
    function* () {
      let now = 0
      yield* timeIs(() => now)
      /** How much longer than the others those take, by their number. */
      const longer = [0, 0, 20, 20, 500, 500, 0]
      const fromStart: Array<number> = []
      yield* started(
        ({ from }) => {
          now += 100
          if (from === queueStart) {
            now += longer[fromStart.length] ?? 0
            fromStart.push(now)
          }
          // So that they don't rest
          return { ...nothingDue, nextDueInMillis: 0 }
        },
        { pollInterval: Duration.seconds(1) }
      )
      yield* eventuallyTrue("all of them", () => fromStart.length >= longer.length)
      const waits = fromStart.slice(1, longer.length).map((time, index) => time - (fromStart[index] ?? 0))
      // Once may be chance. Rounded up to the next claim
      expect(waits).toEqual([1100, 1120, 1120, 4600, 4600, 30_100])
    }
  )

  it.scopedLive("begin their attempts all at once", function* () {
    const { queue } = yield* started((_, before) => (before === 0 ? due(100) : nothingDue), { concurrency: 256 })
    yield* eventuallyTrue("the attempts", () => queue.sent.length === 100)
    expect(queue.turns.size).toBe(1)
  })

  it.scopedLive("begin few further attempts of an endpoint in a turn of the event loop", function* () {
    const endpoints = Array.from({ length: 25 }, () => anyDelivery().endpointId)
    const busy = endpoints.flatMap((endpointId) => Array.from({ length: 4 }, () => ({ ...anyDelivery(), endpointId })))
    const { queue } = yield* started((_, before) => (before === 0 ? { ...nothingDue, deliveries: busy } : nothingDue), {
      concurrency: 256
    })
    yield* eventuallyTrue("the attempts", () => queue.sent.length === 100)
    const first = busy.filter((_, index) => index % 4 === 0).map(({ id }) => id)
    // Before all that wait for a further turn
    expect(queue.sent.slice(0, 25 + 16)).toEqual(expect.arrayContaining(first))
    expect(queue.turns.size).toBeGreaterThan(2)
  })
})

describe("a worker that stood still after a claim for longer than an attempt may wait", () => {
  it.scopedLive("sends nothing, since another may have the lease by then, and gives all of it back", function* () {
    let now = 0
    yield* timeIs(() => now)
    const claim = due(3)
    const { queue } = yield* started((_, before) => {
      if (before > 0) return nothingDue
      now += 6000
      return claim
    })
    yield* eventuallyTrue("the release", () => queue.released.length === 3)
    expect(queue.released).toEqual(expect.arrayContaining(claim.deliveries.map(({ id }) => [id, 0])))
    expect(queue.sent).toEqual([])
  })
})

describe("claims beside the order of time", () => {
  it.scopedLive("take the newest, a few of each endpoint, while more is due than the others reach", function* () {
    let behind = true
    const { claims, looking } = yield* started(() => ({ ...nothingDue, more: behind }), { concurrency: 64 })
    yield* eventuallyTrue("claims of the newest", () => looking("newest") >= 3)
    // As many again as there are places, of which none is taken
    expect(claims.find(({ look }) => look === "newest")).toMatchObject({ limit: 128, perNewcomer: 4, perEndpoint: 4 })
    behind = false
    const before = looking("newest")
    const others = looking(undefined)
    yield* eventuallyTrue("further claims", () => looking(undefined) >= others + 20)
    expect(looking("newest")).toBeLessThanOrEqual(before + 2)
    expect(looking("asked")).toBe(0)
  })

  it.scoped("find what is announced after half of the pause that follows one, and no sooner", function* () {
    let now = 0
    yield* timeIs(() => now)
    const { looking, queue, worker } = yield* started(({ look }) => {
      if (look === "newest") now += 20 * 60_000
      return { ...nothingDue, more: true }
    })
    yield* Effect.forkScoped(Effect.forever(worker.listenRound))
    yield* eventuallyDone("a pause", Effect.map((yield* TestClock.testClock()).sleeps, Chunk.isNonEmpty))
    queue.announced.raise()
    yield* eventuallyTrue("that it is heard", () => queue.announced.isAwaited)
    expect(looking("newest")).toBe(1)
    yield* TestClock.adjust("10 minutes")
    yield* eventuallyTrue("another claim", () => looking("newest") === 2)
  })

  it.scopedLive("leave what is stored meanwhile to be taken over, one of each endpoint", function* () {
    const { looking, worker } = yield* started(() => ({ ...nothingDue, more: true }))
    yield* eventuallyTrue("a claim of the newest", () => looking("newest") > 0)
    const [first, other] = [anyDelivery(), anyDelivery()]
    const again = { ...anyDelivery(), endpointId: first.endpointId }
    expect([first, again, other].map((delivery) => worker.reserve(delivery))).toEqual([true, false, true])
  })

  it.scopedLive("ask again and again for an endpoint that is slow, but less often than others claim", function* () {
    const { claims, looking } = yield* started((_, before) =>
      before === 0 ? due(1) : { ...nothingDue, nextDueInMillis: 0 }
    )
    yield* eventuallyTrue("claims for it", () => looking("asked") >= 3)
    expect(looking(undefined)).toBeGreaterThan(2 * looking("asked"))
    expect(claims.find(({ look }) => look === "asked")).toMatchObject({ limit: 3, askedFor: [{ room: 3 }] })
  })

  it.scopedLive("begin a few attempts at a time, and leave the event loop to other work in between", function* () {
    const first = due(40)
    const again = { ...first, deliveries: first.deliveries.map((delivery) => ({ ...delivery, id: anyDelivery().id })) }
    let asked = 0
    const { queue } = yield* started(
      ({ look }, before) => {
        if (before === 0) return first
        if (look === "asked") asked += 1
        // By the second time, all of them are slow
        return look === "asked" && asked > 1 ? again : nothingDue
      },
      { concurrency: 256 }
    )
    yield* eventuallyTrue("the attempts", () => queue.sent.length >= 80)
    expect(queue.turns.size).toBeGreaterThan(5)
  })
})
