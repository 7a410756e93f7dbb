import { Effect, Fiber, Option } from "effect"
import { eventually } from "../harness/Eventually.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import {
  allDelivered,
  expectDuplicatesOfCrashes,
  expectNoOverlap,
  expectNothingLost,
  oneMoreDelivered,
  storedDeliveries
} from "./History.ts"
import { installation, ofRole, type Running } from "./Installation.ts"
import { makeProvider } from "./Provider.ts"
import { Randomness, seed } from "./Randomness.ts"
import { makeReceiver } from "./Receiver.ts"

const rounds = 5

const times = { DELIVERY_TIMEOUT: "10 seconds", DELIVERY_LEASE_MARGIN: "5 seconds" }

describe("four workers and two APIs on one database", () => {
  it.scopedLive(`lose nothing and never meet at a delivery, though killed under load (seed ${seed})`, function* () {
    const random = new Randomness()
    const service = yield* installation([
      { role: "api" },
      { role: "api" },
      { role: "worker" },
      { role: "worker" },
      { role: "worker" },
      { role: "worker" }
    ])
    const receiver = yield* makeReceiver(random, 60)
    const endpointIds = yield* Effect.forEach(["a", "b", "c"], (path) => service.subscribe(receiver.url(path)))
    const provider = makeProvider(service, random)

    const successors: Array<Fiber.RuntimeFiber<unknown>> = []
    yield* provider.loading(
      60,
      Effect.gen(function* () {
        for (let round = 0; round < rounds; round++) {
          yield* provider.more(random.between(30, 150))
          // One in the last round is an API: its callers come again
          const role = round === rounds - 1 ? "api" : "worker"
          const [first, ...others] = ofRole(service, role)
          if (first === undefined) return yield* Effect.dieMessage(`No ${role} is left`)
          yield* service.kill(random.oneOf([first, ...others]))
          if (round % 2 === 0) successors.push(yield* Effect.fork(service.start({ role })))
        }
        yield* provider.more(60)
      })
    )
    yield* Fiber.joinAll(successors)
    yield* allDelivered(service)

    const deliveries = yield* expectNothingLost(service, provider, receiver, endpointIds)
    expect(deliveries.length).toBeGreaterThan(500)
    expectNoOverlap(receiver)
    const repeated = expectDuplicatesOfCrashes(deliveries, receiver)
    // The kills hit: attempts were cut off, and made again without anybody's asking
    expect(deliveries.filter(({ attemptCount }) => attemptCount > 1).length).toBeGreaterThan(0)
    expect(repeated.length).toBeLessThan(rounds * 48)
    yield* oneMoreDelivered(provider, receiver, endpointIds.length)
  })
})

describe("a delivery whose workers die at each claim for two minutes", () => {
  it.scopedLive("arrives by itself afterwards, as its first attempt, and once", function* () {
    const random = new Randomness()
    const service = yield* installation([{ role: "api", settings: times }])
    const receiver = yield* makeReceiver(random, 60)
    yield* service.subscribe(receiver.url("a"))
    yield* makeProvider(service, random).notify

    const waiting = service.query<{ lease: string | null; abandoned: number; seconds: number }>(`
          SELECT lease, abandoned,
            greatest(0, extract(epoch FROM coalesce(leased_until, next_attempt_at) - now()))::float AS seconds
          FROM payments.delivery_queue`)
    /** Time passes for what waits. */
    const pass = (seconds: number) =>
      service.query(
        `UPDATE payments.delivery_queue SET next_attempt_at = next_attempt_at - $1 * interval '1 second',
              leased_until = leased_until - $1 * interval '1 second'`,
        [seconds]
      )
    const worker = service.start({ role: "worker", settings: times })

    let kills = 0
    yield* service.proxy.holdingBack(
      "svc_evt_",
      Effect.gen(function* () {
        let running: Running | undefined
        for (let passed = 0; ; ) {
          const [before] = yield* waiting
          if (before === undefined) return yield* Effect.dieMessage("Nothing waits any more")
          passed += before.seconds
          if (passed > 120) return
          yield* pass(before.seconds)
          running ??= yield* worker
          const { lease } = yield* eventually(
            "a claim",
            Effect.map(waiting, ([row]) =>
              row?.lease !== before.lease || row?.abandoned !== before.abandoned
                ? Option.fromNullable(row)
                : Option.none()
            )
          )
          if (lease === null) continue
          yield* service.kill(running)
          running = undefined
          kills += 1
        }
      })
    )
    // At once, when the first lease ended, and after the first rest
    expect(kills).toBe(3)
    expect(receiver.exchanges).toEqual([])

    // The last worker found it resting, and lives
    yield* Effect.flatMap(waiting, ([row]) => pass(row?.seconds ?? 0))
    yield* allDelivered(service)
    expect(receiver.exchanges).toHaveLength(1)
    expect(yield* storedDeliveries(service)).toMatchObject([
      { state: "delivered", attemptCount: 1, attempts: [{ number: 1, httpStatus: 204, errorCode: null }] }
    ])
  })
})
