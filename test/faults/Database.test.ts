import { Duration, Effect } from "effect"
import { describe, expect, it } from "../harness/Tests.ts"
import { allDelivered, duplicates, expectNoOverlap, expectNothingLost, oneMoreDelivered } from "./History.ts"
import { type Installation, installation } from "./Installation.ts"
import { makeProvider, type Provider } from "./Provider.ts"
import { Randomness, seed } from "./Randomness.ts"
import { makeReceiver, type Receiver } from "./Receiver.ts"

/** How much longer a lease is than an attempt: an outage below it must not repeat anything. */
const margin = 5000

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

/** Under load, with some notifications before and after. Answers how long the fault lasted, in milliseconds. */
const during = <E, R>({ provider }: Loaded, fault: Effect.Effect<unknown, E, R>) =>
  provider.loading(
    40,
    Effect.gen(function* () {
      yield* provider.more(30)
      const [lasted] = yield* Effect.timed(fault)
      yield* provider.more(30)
      return Duration.toMillis(lasted)
    })
  )

/** Everything that must hold after a fault of the database, however long. */
const expectWhole = Effect.fnUntraced(function* ({ endpointIds, provider, receiver, service }: Loaded) {
  // Nobody lends the engine a hand: what comes now is delivered promptly, what was cut off when its lease ends
  yield* oneMoreDelivered(provider, receiver, endpointIds.length)
  yield* allDelivered(service)
  yield* expectNothingLost(service, provider, receiver, endpointIds)
  expectNoOverlap(receiver)
})

/** Frozen for longer than a lease: the attempts of that time alone may be repeated, each at most once. */
const expectWindow = Effect.fnUntraced(function* (all: Loaded) {
  const known = duplicates(all.receiver)
  const window = { from: 0, to: 0 }
  const pause = Effect.suspend(() => {
    window.from = performance.now()
    return Effect.sleep(margin + 3000)
  })
  yield* during(all, Effect.scoped(Effect.zipRight(all.service.server.freeze, pause)))
  window.to = performance.now()
  yield* expectWhole(all)
  for (const [id, moments] of duplicates(all.receiver)) {
    if (known.has(id)) continue
    expect([id, moments.length]).toEqual([id, 1])
    for (const moment of moments) {
      expect(moment).toBeGreaterThan(window.from - 1000)
      expect(moment).toBeLessThan(window.to + 1000)
    }
  }
})

describe("while its database", () => {
  it.scopedLive(`restarts, crashes, cuts connections or freezes, nothing is lost (seed ${seed})`, function* () {
    const all = yield* loaded
    const { provider, random, receiver, service } = all
    const { server } = service

    const cut = service.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'connected-payments%'"
    )
    const before = service.proxy.cuts()
    const faults = [
      Effect.zipRight(server.stop, server.start),
      Effect.zipRight(server.crash, server.start),
      Effect.scoped(Effect.zipRight(server.freeze, Effect.sleep("2 seconds"))),
      Effect.repeatN(Effect.delay(cut, "300 millis"), 4),
      service.proxy.cutting({ probability: 0.02, random }, Effect.sleep("2 seconds"))
    ]
    let longest = 0
    for (const fault of faults) {
      longest = Math.max(longest, yield* during(all, fault))
      yield* expectWhole(all)
      // No process died, and none was kept from recording for as long as a lease: so nothing was repeated
      if (longest < margin - 2000) expect([...duplicates(receiver)]).toEqual([])
    }
    expect(service.proxy.cuts()).toBeGreaterThan(before)
    yield* expectWindow(all)

    // Every fault reached the callers as a request to come again, if at all
    expect([...provider.answers.keys()].filter((status) => ![200, 503, 0].includes(status))).toEqual([])
    expect(receiver.exchanges.length).toBeGreaterThan(500)
  })
})
