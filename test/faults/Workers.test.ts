import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import {
  allDelivered,
  expectDuplicatesOfCrashes,
  expectNoOverlap,
  expectNothingLost,
  millisToDelivery
} from "./History.ts"
import { installation, ofRole } from "./Installation.ts"
import { makeProvider } from "./Provider.ts"
import { Randomness, seed } from "./Randomness.ts"
import { makeReceiver } from "./Receiver.ts"

const rounds = 5

describe("four workers and two APIs on one database", () => {
  it.scopedLive(
    `lose nothing and never meet at a delivery, though they are killed under load (seed ${seed})`,
    () =>
      Effect.gen(function* () {
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
        expect(yield* millisToDelivery(provider, receiver, endpointIds.length)).toBeLessThan(10_000)
      }),
    400_000
  )
})
