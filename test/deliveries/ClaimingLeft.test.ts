import { expect, layer } from "@effect/vitest"
import { Duration, Effect, Option } from "effect"
import { type ClaimedDelivery, queueStart } from "../../src/deliveries/sending/Claim.ts"
import { ClaimingLeft } from "../../src/deliveries/sending/ClaimingLeft.ts"
import type { EndpointId } from "../../src/kit/Ids.ts"
import { eventually } from "../harness/Eventually.ts"
import { claimFrom, idle, QueueBench } from "./QueueBench.ts"

const emptyBench = Effect.tap(QueueBench, ({ reset }) => reset)

const twoEndpoints = Effect.flatMap(QueueBench, ({ makeEndpoint }) =>
  Effect.all({ one: makeEndpoint, other: makeEndpoint })
)

/** The places of a worker that takes what was left. */
const places = 64

/** What claims what was left for a worker with room, in `claims`; `leftOut`: endpoints that hang. */
const claimingLeft = Effect.fnUntraced(function* (leftOut: ReadonlyArray<EndpointId>) {
  const { queues } = yield* QueueBench
  const begun: Array<ClaimedDelivery> = []
  let claims = 0
  const claiming = new ClaimingLeft({
    options: { lease: Duration.seconds(15), concurrency: places, concurrencyPerEndpoint: 16 },
    queue: {
      ...queues[0],
      claim: (options) =>
        Effect.tap(queues[0].claim(options), () => {
          claims += 1
        })
    },
    attempts: { *lanes() {}, caps: () => new Map() },
    begin: (deliveries) => Effect.sync(() => void begun.push(...deliveries)),
    room: () => places,
    leftOut: () => leftOut
  })
  return { begun, claiming, claims: () => claims }
})

/** What a worker takes of what was left, step after step until one finds something; `leftOut`: endpoints that hang. */
const takenOfWhatWasLeft = Effect.fnUntraced(function* (leftOut: ReadonlyArray<EndpointId>) {
  const { begun, claiming, claims } = yield* claimingLeft(leftOut)
  yield* eventually(
    "something that was left",
    Effect.map(claiming.claim, (found) => (found > 0 ? Option.some(found) : Option.none()))
  )
  return { begun: begun.map(({ id }) => id), looks: claims() }
})

layer(QueueBench.layer, { excludeTestServices: true, timeout: "60 seconds" })("claims of what is overdue", (it) => {
  it.effect("leave what came due just now, and take what was left for a second", () =>
    Effect.gen(function* () {
      const { queues, seed } = yield* emptyBench
      const { one, other } = yield* twoEndpoints
      yield* seed(one, { dueInSeconds: -5 })
      yield* seed(other)
      const [left] = yield* seed(other, { dueInSeconds: -2 })
      const claimed = yield* claimFrom(queues[0], { ...idle, look: "overdue", leftOut: [one.id], readAtMost: 10 })
      expect(claimed.map(({ id }) => id)).toEqual([left])
    })
  )

  it.effect("say where a look ended that has read as much as it may", () =>
    Effect.gen(function* () {
      const { queues, seed } = yield* emptyBench
      const { one, other } = yield* twoEndpoints
      for (let age = 20; age > 10; age--) yield* seed(one, { dueInSeconds: -age })
      const [left] = yield* seed(other, { dueInSeconds: -5 })
      let from = queueStart
      const looks: Array<number> = []
      for (let look = 0; look < 5; look++) {
        const claim = yield* queues[0].claim({ ...idle, look: "overdue", leftOut: [one.id], readAtMost: 4, from })
        looks.push(claim.deliveries.length)
        if (claim.reached === null) {
          expect(claim.deliveries.map(({ id }) => id)).toEqual([left])
          break
        }
        expect(claim.deliveries).toEqual([])
        from = claim.reached
      }
      expect(looks).toEqual([0, 0, 0, 1])
    })
  )
})

layer(QueueBench.layer, { excludeTestServices: true, timeout: "60 seconds" })("a worker with room", (it) => {
  it.effect("takes what was left behind thousands that it may not take, which came due at the same moment", () =>
    Effect.gen(function* () {
      const { seed } = yield* emptyBench
      const { one, other } = yield* twoEndpoints
      yield* seed(one, { count: 9000, dueInSeconds: -10 })
      const [left] = yield* seed(other, { dueInSeconds: -2 })
      const { begun, looks } = yield* takenOfWhatWasLeft([one.id])
      expect(begun).toEqual([left])
      expect(looks).toBeLessThanOrEqual(4)
    })
  )

  it.effect("reads a few thousand rows of what hangs in a step, and comes to what was left behind them", () =>
    Effect.gen(function* () {
      const { seed } = yield* emptyBench
      const { one, other } = yield* twoEndpoints
      for (const age of [40, 30, 20]) yield* seed(one, { count: 4000, dueInSeconds: -age })
      const [left] = yield* seed(other, { dueInSeconds: -5 })
      const { begun, looks } = yield* takenOfWhatWasLeft([one.id])
      expect(begun).toEqual([left])
      expect(looks).toBeGreaterThan(1)
      expect(looks).toBeLessThanOrEqual(6)
    })
  )

  it.effect("goes on after as long as it took while it finds as many as it has room for", () =>
    Effect.gen(function* () {
      const { makeEndpoint, seed } = yield* emptyBench
      const endpoints = yield* Effect.replicateEffect(makeEndpoint, 32)
      for (const endpoint of endpoints) yield* seed(endpoint, { count: 4, dueInSeconds: -10 })
      const { claiming, claims } = yield* claimingLeft([])
      const [took, found] = yield* Effect.timed(claiming.claim)
      expect(found).toBe(places)
      expect(claiming.foundSome).toBe(true)
      expect(claiming.nextInMillis).toBeLessThanOrEqual(Duration.toMillis(took))
      yield* eventually(
        "the others",
        Effect.map(claiming.claim, (found) => (found === places ? Option.some(found) : Option.none()))
      )
      // Nothing is left for a third one
      yield* eventually(
        "a look in vain",
        Effect.map(claiming.claim, () => (claims() > 2 ? Option.some(true) : Option.none()))
      )
      expect(claiming.foundSome).toBe(false)
    })
  )
})
