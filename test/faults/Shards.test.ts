import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { shardCount } from "../../src/storage/Shards.ts"
import { allDelivered, duplicates, expectNoOverlap, expectNothingLost, millisToDelivery } from "./History.ts"
import { type Installation, installation, ofRole } from "./Installation.ts"
import { makeProvider } from "./Provider.ts"
import { Randomness, seed } from "./Randomness.ts"
import { makeReceiver } from "./Receiver.ts"
import { eventuallyDone, timed } from "./Waiting.ts"

const lease = 6000
const settings = { DELIVERY_TIMEOUT: "1 second", DELIVERY_LEASE_MARGIN: "5 seconds" }
const kills = 2
const killEvery = 10_000

/** How many shards each worker holds, by its address in the cluster. */
const holders = ({ query }: Installation) =>
  Effect.map(
    query<{ address: string; shards: number }>(
      "SELECT address, count(*)::int AS shards FROM payments.cluster_locks GROUP BY address ORDER BY address"
    ),
    (rows) => new Map(rows.map(({ address, shards }) => [address, shards]))
  )

const sum = (counts: Iterable<number>) => [...counts].reduce((total, count) => total + count, 0)

/** All shards are held by so many workers, each of which has its part. */
const sharedBy = (service: Installation, workers: number) =>
  eventuallyDone(
    `shards that ${workers} workers share`,
    Effect.map(
      holders(service),
      (held) =>
        held.size === workers &&
        sum(held.values()) === shardCount &&
        [...held.values()].every((shards) => shards >= shardCount / workers / 2)
    )
  )

/** How long it takes from now until one of those that hold shards has none left, all being held, in milliseconds. */
const takenOver = (service: Installation) =>
  Effect.flatMap(holders(service), (before) =>
    timed(
      eventuallyDone(
        "the shards of one worker, with the others",
        Effect.map(
          holders(service),
          (held) => sum(held.values()) === shardCount && [...before.keys()].some((address) => !held.has(address))
        )
      )
    )
  )

describe("four workers that share the endpoints", () => {
  it.scopedLive(
    `lose nothing while one is killed every ten seconds and another one is frozen for longer than its lease (seed ${seed})`,
    () =>
      Effect.gen(function* () {
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
        yield* sharedBy(service, 4)

        const [frozen] = ofRole(service, "worker")
        if (frozen === undefined) return yield* Effect.dieMessage("No worker runs")
        const mortal = () => ofRole(service, "worker").filter((one) => one !== frozen)
        const tookOver: Array<number> = []
        const successors: Array<Fiber.RuntimeFiber<unknown>> = []
        const kill = Effect.gen(function* () {
          const [first, ...others] = mortal()
          if (first === undefined) return yield* Effect.dieMessage("No worker is left")
          const measured = yield* Effect.fork(takenOver(service))
          yield* service.kill(random.oneOf([first, ...others]))
          successors.push(yield* Effect.fork(service.start(worker)))
          tookOver.push(yield* Fiber.join(measured))
        })
        yield* provider.loading(
          15,
          Effect.gen(function* () {
            for (let number = 0; number < kills; number++) {
              // After the last one, only until its shards are others'
              const rest = yield* Effect.fork(Effect.sleep(number < kills - 1 ? killEvery : 0))
              yield* kill
              if (number === 0) {
                // Its connections stay open, and its sessions live: only its heart has stopped
                frozen.child.kill("SIGSTOP")
                yield* Effect.sleep(lease + 1000).pipe(
                  Effect.zipLeft(
                    Effect.flatMap(takenOver(service), (millis) => Effect.sync(() => tookOver.push(millis))),
                    {
                      concurrent: true
                    }
                  ),
                  Effect.ensuring(Effect.sync(() => frozen.child.kill("SIGCONT")))
                )
              }
              yield* Fiber.join(rest)
            }
          })
        )
        yield* Fiber.joinAll(successors)
        yield* allDelivered(service)

        const deliveries = yield* expectNothingLost(service, provider, receiver, endpointIds)
        expect(deliveries.length).toBeGreaterThan(1000)
        expectNoOverlap(receiver)
        // Each repetition is an attempt of its own in the history, which `expectNothingLost` has checked. There are as
        // few as were under way when their workers fell silent
        expect(duplicates(receiver).size).toBeLessThan((kills + 1) * 48)
        // Each time the shards were others' within the lease
        expect(tookOver).toHaveLength(kills + 1)
        for (const millis of tookOver) expect(millis).toBeLessThan(lease)
        // All of them are back, the frozen one too
        yield* sharedBy(service, 4)
        expect(yield* millisToDelivery(provider, receiver, endpointIds.length)).toBeLessThan(5000)
      }),
    120_000
  )
})
