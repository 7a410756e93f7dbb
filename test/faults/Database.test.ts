import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  allDelivered,
  duplicates,
  expectDuplicatesOfCrashes,
  expectNoOverlap,
  expectNothingLost,
  millisToDelivery,
  storedDeliveries
} from "./History.ts"
import { type Installation, installation } from "./Installation.ts"
import { makeProvider, type Provider } from "./Provider.ts"
import { Randomness, seed } from "./Randomness.ts"
import { makeReceiver, type Receiver } from "./Receiver.ts"
import { timed } from "./Waiting.ts"

/** How much longer a lease is than an attempt: an outage below it must not repeat anything. */
const margin = 5000

/** An API and two workers under load. */
const loaded = Effect.gen(function* () {
  const random = new Randomness()
  const service = yield* installation([{ role: "api" }, { role: "worker" }, { role: "worker" }], {
    DELIVERY_LEASE_MARGIN: `${margin} millis`
  })
  const receiver = yield* makeReceiver(random, 60)
  const endpointIds = yield* Effect.forEach(["a", "b", "c"], (path) => service.subscribe(receiver.url(path)))
  return { random, service, receiver, endpointIds, provider: makeProvider(service, random) }
})

interface Loaded {
  readonly service: Installation
  readonly receiver: Receiver
  readonly provider: Provider
  readonly endpointIds: ReadonlyArray<string>
}

/** Under load, with a little time before and after. Answers how long the fault lasted, in milliseconds. */
const during = <E, R>({ provider }: Loaded, fault: Effect.Effect<unknown, E, R>) =>
  provider.loading(
    40,
    Effect.gen(function* () {
      yield* Effect.sleep("700 millis")
      const lasted = yield* timed(fault)
      yield* Effect.sleep("700 millis")
      return lasted
    })
  )

/** Everything that must hold after a fault of the database. Answers the deliveries that were repeated. */
const expectWhole = Effect.fnUntraced(function* ({ endpointIds, provider, receiver, service }: Loaded) {
  // Nobody lends the engine a hand: what comes now is delivered promptly, what was cut off when its lease ends
  expect(yield* millisToDelivery(provider, receiver, endpointIds.length)).toBeLessThan(10_000)
  yield* allDelivered(service)
  const deliveries = yield* expectNothingLost(service, provider, receiver, endpointIds)
  expectNoOverlap(receiver)
  return [...duplicates(receiver).keys()].length === 0 ? [] : expectDuplicatesOfCrashes(deliveries, receiver)
})

/** While the server is away, no attempt that was answered may be made again, unless its lease ended meanwhile. */
const expectNoneRepeated = (repeated: ReadonlyArray<string>, lasted: number) => {
  if (lasted < margin - 1500) expect(repeated).toEqual([])
}

describe("while its database", () => {
  it.scopedLive(
    `is restarted, crashes, is frozen, or cuts connections, the service loses nothing (seed ${seed})`,
    () =>
      Effect.gen(function* () {
        const all = yield* loaded
        const { provider, random, receiver, service } = all
        const { server } = service

        const restarted = yield* during(all, Effect.zipRight(server.stop, server.start))
        expectNoneRepeated(yield* expectWhole(all), restarted)

        const crashed = yield* during(all, Effect.zipRight(server.crash, server.start))
        expectNoneRepeated(yield* expectWhole(all), Math.max(restarted, crashed))

        const frozen = yield* during(all, server.frozen(Effect.sleep("2 seconds")))
        expectNoneRepeated(yield* expectWhole(all), Math.max(restarted, crashed, frozen))

        const cut = service.query(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'connected-payments%'"
        )
        const terminated = yield* during(all, Effect.repeatN(Effect.delay(cut, "300 millis"), 4))
        expectNoneRepeated(yield* expectWhole(all), Math.max(restarted, crashed, frozen, terminated / 5))

        const before = service.proxy.cuts()
        yield* during(all, service.proxy.cutting({ probability: 0.02, random }, Effect.sleep("3 seconds")))
        expect(service.proxy.cuts()).toBeGreaterThan(before)
        expectNoneRepeated(yield* expectWhole(all), Math.max(restarted, crashed, frozen))

        // Every fault reached the callers as a request to come again, if at all
        expect([...provider.answers.keys()].filter((status) => ![200, 503, 0].includes(status))).toEqual([])
        expect(receiver.exchanges.length).toBeGreaterThan(500)
      }),
    180_000
  )

  it.scopedLive(
    "is frozen for longer than a lease, the attempts of that time alone may be repeated, each at most once",
    () =>
      Effect.gen(function* () {
        const all = yield* loaded
        const { provider, receiver, service } = all
        let from = 0
        let to = 0
        yield* during(
          all,
          service.server
            .frozen(
              Effect.zipRight(
                Effect.sync(() => {
                  from = performance.now()
                }),
                Effect.sleep(margin + 3000)
              )
            )
            .pipe(
              Effect.tap(() =>
                Effect.sync(() => {
                  to = performance.now()
                })
              )
            )
        )
        expect(yield* millisToDelivery(provider, receiver, all.endpointIds.length)).toBeLessThan(10_000)
        yield* allDelivered(service)
        yield* expectNothingLost(service, provider, receiver, all.endpointIds)
        expectNoOverlap(receiver)
        for (const [id, moments] of duplicates(receiver)) {
          expect([id, moments.length]).toEqual([id, 1])
          for (const moment of moments) {
            expect(moment).toBeGreaterThan(from - 1000)
            expect(moment).toBeLessThan(to + 1000)
          }
        }
        const stored = yield* storedDeliveries(service)
        expect(Math.max(...stored.map(({ attemptCount }) => attemptCount))).toBeLessThanOrEqual(2)
      }),
    120_000
  )
})
