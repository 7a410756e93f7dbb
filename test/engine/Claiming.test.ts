import { SqlError } from "@effect/sql"
import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { Attempts } from "../../src/engine/attempts/Attempts.ts"
import { Destinations } from "../../src/engine/attempts/Destinations.ts"
import type { ClaimNew, LaneShare, LanesClaim, NewClaim } from "../../src/engine/queue/Claim.ts"
import { queueStart } from "../../src/engine/queue/Claim.ts"
import type { Queue } from "../../src/engine/queue/Queue.ts"
import { Claiming } from "../../src/engine/worker/Claiming.ts"
import { Held } from "../../src/engine/worker/Held.ts"
import type { WorkerOptions } from "../../src/engine/worker/Limits.ts"
import { EndpointId, OrganizationId } from "../../src/platform/kit/Ids.ts"
import { eventuallyTrue } from "../harness/Eventually.ts"

const options: WorkerOptions = {
  lease: Duration.seconds(15),
  startWithin: Duration.seconds(5),
  concurrency: 4,
  concurrencyPerEndpoint: 4,
  pollInterval: Duration.millis(20),
  drainTimeout: Duration.seconds(1),
  allowLocalDestinations: false,
  userAgent: "test"
}

const unused = Effect.dieMessage("No attempt is made here")

const endpoint = () => EndpointId.make(crypto.randomUUID())

const nothingNew: NewClaim = { deliveries: [], next: "later", waiting: [], isFull: false, nextDueInMillis: null }

/** Each lane has as much as it is asked for, and others hold it. */
const allFull = (lanes: ReadonlyArray<LaneShare>): LanesClaim => ({
  deliveries: [],
  found: lanes.map(({ endpointId, room }) => ({ endpointId, first: "where the rest begins", count: room }))
})

const noneFound: LanesClaim = { deliveries: [], found: [] }

interface Answers {
  readonly claimNew?: (claim: ClaimNew, number: number) => NewClaim
  readonly claimOfLanes?: (
    lanes: ReadonlyArray<LaneShare>,
    number: number
  ) => Effect.Effect<LanesClaim, SqlError.SqlError>
  readonly sweep?: () => ReadonlyArray<EndpointId>
}

/** Claims of a worker that makes no attempts, and what it asks for. The scope ends it. */
const started = (answers: Answers) =>
  Effect.gen(function* () {
    const news: Array<ClaimNew> = []
    const served: Array<ReadonlyArray<LaneShare>> = []
    const queue: Queue["Type"] = {
      claimNew: (claim) =>
        Effect.sync(() => {
          const number = news.push(claim)
          return answers.claimNew?.(claim, number) ?? nothingNew
        }),
      claimOfLanes: ({ lanes }) =>
        Effect.suspend(() => {
          const number = served.push(lanes)
          return answers.claimOfLanes?.(lanes, number) ?? Effect.succeed(noneFound)
        }),
      sweep: () => Effect.sync(() => ({ last: null, due: answers.sweep?.() ?? [] })),
      destinations: () => Effect.succeed(new Map()),
      finish: () => Effect.void,
      release: () => Effect.void
    }
    const held = new Held(queue, () => claiming.noteRoom())
    const destinations = new Destinations(queue, { encrypt: () => unused, decrypt: () => unused })
    const ignore = () => {}
    const attempts = yield* Attempts.make(
      options,
      { transport: { send: () => Effect.never }, destinations },
      { onFinished: ignore, onUnsignable: ignore, onTooLate: ignore, onDefect: ignore, onSlow: ignore }
    )
    const claiming = new Claiming({
      options,
      queue,
      recording: { caughtUp: () => Effect.void },
      wakeUp: { announce: Effect.void, announceToOthers: Effect.void, await: Effect.never },
      attempts,
      held,
      begin: () => Effect.void,
      run: ignore
    })
    for (const round of claiming.rounds) yield* Effect.forkScoped(Effect.forever(round))
    return { attempts, claiming, held, news, served }
  })

describe("claims of what is new", () => {
  it.scopedLive("begin where the one before ended", () =>
    Effect.gen(function* () {
      const { held, news } = yield* started({})
      // Else they rest for longer
      held.add(1)
      yield* eventuallyTrue("the next one", () => news.length >= 2)
      expect(news[0]).toMatchObject({ since: queueStart, limit: 4, perEndpoint: 4 })
      expect(news[1]?.since).toBe("later")
    })
  )

  it.scopedLive("take two of each endpoint while others wait in line, and none of those", () =>
    Effect.gen(function* () {
      const flooding = endpoint()
      const { claiming, news } = yield* started({ claimOfLanes: (lanes) => Effect.succeed(allFull(lanes)) })
      claiming.enterLine(flooding)
      expect(claiming.isInLine(flooding)).toBe(true)
      yield* eventuallyTrue("such a claim", () => news.some(({ perEndpoint }) => perEndpoint === 2))
      const claim = news.find(({ perEndpoint }) => perEndpoint === 2)
      expect(claim?.limit).toBe(256)
      expect(claim?.leftOut).toContain(flooding)
    })
  )

  it.scopedLive("give those a lane whose deliveries they saw and did not take", () =>
    Effect.gen(function* () {
      const busy = endpoint()
      const { served } = yield* started({
        claimNew: (_, number) => (number === 1 ? { ...nothingNew, waiting: [busy] } : nothingNew)
      })
      yield* eventuallyTrue("its turn", () => served.length > 0)
      expect(served).toEqual([[{ endpointId: busy, from: queueStart, room: 1 }]])
    })
  )
})

describe("the line", () => {
  it.scopedLive("is served from its front, each lane its part of the room; whoever has more goes to its end", () =>
    Effect.gen(function* () {
      const six = Array.from({ length: 6 }, endpoint)
      const { claiming, served } = yield* started({ claimOfLanes: (lanes) => Effect.succeed(allFull(lanes)) })
      for (const endpointId of six) claiming.enterLine(endpointId)
      yield* eventuallyTrue("three turns", () => served.length >= 3)
      expect(served.slice(0, 3).map((lanes) => lanes.map(({ endpointId }) => six.indexOf(endpointId)))).toEqual([
        [0, 1, 2, 3],
        [4, 5, 0, 1],
        [2, 3, 4, 5]
      ])
      expect(new Set(served.flat().map(({ room }) => room))).toEqual(new Set([1]))
      expect(served[1]?.map(({ from }) => from)).toEqual([
        queueStart,
        queueStart,
        "where the rest begins",
        "where the rest begins"
      ])
    })
  )

  it.scopedLive(
    "is left by whoever has nothing due any more, unless it has entered again while that was found out",
    () =>
      Effect.gen(function* () {
        const [done, again] = [endpoint(), endpoint()]
        const { claiming, served } = yield* started({
          claimOfLanes: (_, number) =>
            Effect.sync(() => {
              if (number === 1) claiming.enterLine(again)
              return noneFound
            })
        })
        claiming.enterLine(done)
        claiming.enterLine(again)
        yield* eventuallyTrue("the second turn", () => served.length >= 2)
        expect(served[1]?.map(({ endpointId }) => endpointId)).toEqual([again])
        yield* eventuallyTrue("an empty line", () => !claiming.isInLine(again))
        expect(served).toHaveLength(2)
      })
  )

  it.scopedLive("waits for room that is taken by attempts not recorded yet", () =>
    Effect.gen(function* () {
      const { claiming, held, news, served } = yield* started({})
      // As when many attempts aside end at once
      held.add(40)
      claiming.enterLine(endpoint())
      // Meanwhile what is new goes aside
      yield* eventuallyTrue("claims", () => news.filter(({ perEndpoint }) => perEndpoint === 2).length >= 2)
      expect(served).toEqual([])
      held.settle(40)
      yield* eventuallyTrue("its turn", () => served.length === 1)
      expect(served[0]).toMatchObject([{ room: 1 }])
    })
  )

  it.scopedLive("is kept while the database does not answer", () =>
    Effect.gen(function* () {
      const waiting = endpoint()
      const { claiming, served } = yield* started({
        claimOfLanes: (_, number) =>
          number === 1 ? new SqlError.SqlError({ cause: new Error("away") }) : Effect.succeed(noneFound)
      })
      claiming.enterLine(waiting)
      yield* eventuallyTrue("the second turn", () => served.length >= 2)
      expect(served[1]).toEqual(served[0])
    })
  )

  it.scopedLive("is entered by whoever a sweep finds, again from the start of its deliveries", () =>
    Effect.gen(function* () {
      const found = endpoint()
      const { served } = yield* started({
        claimOfLanes: (lanes) => Effect.succeed(allFull(lanes)),
        sweep: () => [found]
      })
      const places = () => served.flat().map(({ from }) => from)
      yield* eventuallyTrue("a turn after that", () =>
        places().slice(places().indexOf("where the rest begins")).includes(queueStart)
      )
    })
  )

  it.scopedLive(
    "lets slow lanes pass what takes no place, five times a second, and does not crowd others for them",
    () =>
      Effect.gen(function* () {
        const slow = endpoint()
        const { attempts, claiming, served } = yield* started({
          claimOfLanes: (lanes) => Effect.succeed(allFull(lanes))
        })
        attempts.pace.noteSlow(slow, OrganizationId.make(crypto.randomUUID()), performance.now())
        claiming.enterLine(slow)
        yield* eventuallyTrue("two turns", () => served.length >= 2)
        expect(served[0]).toEqual([{ endpointId: slow, from: queueStart, room: 4 }])
        expect(claiming.isCrowded).toBe(false)
      })
  )
})
