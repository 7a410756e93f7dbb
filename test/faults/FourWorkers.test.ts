import { Effect, Fiber } from "effect"
import { describe, expect, it } from "../harness/Tests.ts"
import { allDelivered, duplicates, expectNoOverlap, expectNothingLost, oneMoreDelivered } from "./History.ts"
import { installation, ofRole } from "./Installation.ts"
import { makeProvider } from "./Provider.ts"
import { Randomness, seed } from "./Randomness.ts"
import { makeReceiver } from "./Receiver.ts"

const lease = 6000
const settings = { DELIVERY_TIMEOUT: "1 second", DELIVERY_LEASE_MARGIN: "5 seconds" }
const kills = 2
/** Notifications: ten seconds of the load. */
const killEvery = 150

describe("four workers on one queue", () => {
  it.scopedLive(`lose nothing while each is killed, and one is frozen beyond its lease (seed ${seed})`, function* () {
    const random = new Randomness()
    const worker = { role: "worker", settings } as const
    const service = yield* installation([{ role: "api", settings }, worker, worker, worker, worker])
    const receiver = yield* makeReceiver(random, 60)
    const endpointIds = yield* Effect.forEach(
      Array.from({ length: 10 }, (_, index) => `endpoint-${index}`),
      (path) => service.subscribe(receiver.url(path)),
      { concurrency: 4 }
    )
    const provider = makeProvider(service, random)
    const [frozen] = ofRole(service, "worker")
    if (frozen === undefined) return yield* Effect.dieMessage("No worker runs")
    const mortal = () => ofRole(service, "worker").filter((one) => one !== frozen)
    const successors: Array<Fiber.RuntimeFiber<unknown>> = []
    const kill = Effect.gen(function* () {
      const [first, ...others] = mortal()
      if (first === undefined) return yield* Effect.dieMessage("No worker is left")
      yield* service.kill(random.oneOf([first, ...others]))
      successors.push(yield* Effect.fork(service.start(worker)))
    })
    yield* provider.loading(
      15,
      Effect.gen(function* () {
        for (let number = 0; number < kills; number++) {
          const rest = yield* Effect.fork(provider.more(killEvery))
          yield* kill
          if (number === 0) {
            // Its connections stay open, and its sessions live: only its heart has stopped
            frozen.child.kill("SIGSTOP")
            yield* Effect.sleep(lease + 1000).pipe(Effect.ensuring(Effect.sync(() => frozen.child.kill("SIGCONT"))))
          }
          yield* Fiber.join(rest)
        }
      })
    )
    yield* Fiber.joinAll(successors)
    yield* allDelivered(service)

    expect((yield* expectNothingLost(service, provider, receiver, endpointIds)).length).toBeGreaterThan(1000)
    expectNoOverlap(receiver)
    // Each repetition is an attempt of its own in the history, which `expectNothingLost` has checked. There are as
    // few as were under way when their workers fell silent
    expect(duplicates(receiver).size).toBeLessThan((kills + 1) * 48)
    yield* oneMoreDelivered(provider, receiver, endpointIds.length)
  })
})
