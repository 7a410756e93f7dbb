import { setTimeout as sleep } from "node:timers/promises"
import { Console, Effect } from "effect"
import { BenchFailed } from "../api/Processes.ts"
import { type Bench, figuresOf, figuresOfCases, inRounds, percentile } from "../Bench.ts"
import {
  addDeliveries,
  addTimedDelivery,
  type BenchEndpoint,
  type Database,
  emptyQueue,
  makeEndpoints,
  startDatabase,
  startReceiver,
  startService
} from "../deliveries/Bed.ts"
import { roundsOf } from "../sizes.ts"

/**
 * What 50 healthy endpoints notice of one, of 32 and of 500 that hang, with 20,000 due to them all together; and of 32
 * that answer at once, with 180,000 due, which take all that the machine has.
 */

const healthyCount = 50

/** The endpoints beside the healthy ones: how many, and how many deliveries they have due, which came over the last minutes. */
interface Case {
  readonly name: string
  readonly hangs: boolean
  readonly count: number
  readonly due: number
  readonly since: string
}

const hanging = (count: number): Case => ({
  name: `beside ${count}`,
  hangs: true,
  count,
  due: 20_000,
  since: "now() - n * interval '20 milliseconds'"
})

const cases: ReadonlyArray<Case> = [
  hanging(1),
  hanging(32),
  hanging(500),
  { name: "beside 32 flooding", hangs: false, count: 32, due: 180_000, since: "now() - n * interval '2 milliseconds'" }
]
const mostOf = (hangs: boolean): number =>
  Math.max(...cases.filter((one) => one.hangs === hangs).map(({ count }) => count))
/** `BENCH_CASES=flooding` takes those alone whose name has this in it. */
const chosen = cases.filter(({ name }) => name.includes(process.env["BENCH_CASES"] ?? ""))
const rate = 200
const rounds = roundsOf(5)
/** In its first seconds, a process waits for its compiler. */
const warmUpMillis = 5000
const millis = 6000

const offer = (database: Database, endpoints: ReadonlyArray<BenchEndpoint>, forMillis: number) =>
  Effect.gen(function* () {
    const startedAt = performance.now()
    let added = 0
    while (performance.now() - startedAt < forMillis) {
      const endpoint = endpoints[added % endpoints.length]
      if (endpoint !== undefined) yield* addTimedDelivery(database, endpoint)
      added++
      const wait = (added / rate) * 1000 - (performance.now() - startedAt)
      if (wait > 1) yield* Effect.promise(() => sleep(wait))
    }
    return added
  })

export const neighbourBench: Bench = {
  name: "neighbour",
  about: "50 healthy endpoints at 200 events per second, beside 1, 32 and 500 that hang, and 32 that flood",
  run: Effect.gen(function* () {
    yield* Console.error("Starting the database and the receiver…")
    const database = yield* startDatabase
    const [mostHanging, mostFlooding] = [mostOf(true), mostOf(false)]
    const receiver = yield* startReceiver(healthyCount)
    const receiverOfOthers = yield* startReceiver(mostHanging + mostFlooding, mostHanging)
    const endpoints = yield* makeEndpoints(database, receiverOfOthers.urls)
    const healthy = yield* makeEndpoints(database, receiver.urls)
    const measure = Effect.gen(function* () {
      yield* offer(database, healthy, warmUpMillis)
      yield* receiver.look
      const added = yield* offer(database, healthy, millis)
      yield* Effect.promise(() => sleep(2000))
      const { latencies } = yield* receiver.look
      if (latencies.length < added * 0.98) {
        return yield* new BenchFailed({ message: `${latencies.length} of ${added} events arrived` })
      }
      return { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) }
    })
    // What came to be due in the past is looked for now and then
    const begun = Effect.flatMap(receiverOfOthers.look, ({ received }) => receiverOfOthers.until(received + 1000)).pipe(
      Effect.timeoutFail({ duration: "40 seconds", onTimeout: () => new BenchFailed({ message: "No flood came" }) })
    )
    const round = Effect.fnUntraced(function* ({ count, due, hangs, name, since }: Case) {
      yield* emptyQueue(database)
      yield* startService(database, "worker", { SHUTDOWN_TIMEOUT: "1 second" })
      const alone = yield* measure
      const others = hangs ? endpoints.slice(0, count) : endpoints.slice(mostHanging, mostHanging + count)
      yield* addDeliveries(database, others, due, { due: since })
      if (!hangs) yield* begun
      const beside = yield* measure
      yield* Console.error(
        `  alone: p50 ${alone.p50.toFixed(1)}, p99 ${alone.p99.toFixed(1)} ms; ${name}: p50 ${beside.p50.toFixed(1)}, p99 ${beside.p99.toFixed(1)} ms`
      )
      return { alone, beside }
    }, Effect.scoped)
    const results = yield* inRounds(rounds, () => Effect.forEach(chosen, round))
    const alone = figuresOf(
      "neighbour",
      results.flatMap((measured) => measured.map(({ alone }) => alone))
    )
    return [
      alone("without any", "p50_ms", "ms", ({ p50 }) => p50),
      alone("without any", "p99_ms", "ms", ({ p99 }) => p99),
      ...figuresOfCases<(typeof results)[number][number]>(
        "neighbour",
        chosen.map(({ name }) => name),
        results,
        [
          ["p50_ms", "ms", ({ beside }) => beside.p50],
          ["p99_ms", "ms", ({ beside }) => beside.p99],
          ["p99_ratio", "", ({ alone, beside }) => beside.p99 / alone.p99]
        ]
      )
    ]
  })
}
