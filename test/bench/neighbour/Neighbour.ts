import { setTimeout as sleep } from "node:timers/promises"
import { Console, Effect } from "effect"
import { answerOf, BenchFailed } from "../api/Processes.ts"
import { type Bench, figuresOf, figuresOfCases, inRounds, percentile } from "../Bench.ts"
import {
  addDeliveries,
  addTimedDelivery,
  type BenchEndpoint,
  type Database,
  emptyQueue,
  makeEndpoints,
  payloadBytes,
  startDatabase,
  startReceiver,
  startService
} from "../deliveries/Bed.ts"
import type { RawResult } from "../deliveries/RawPosts.ts"
import { roundsOf } from "../sizes.ts"

/**
 * What 50 healthy endpoints notice of one, of 32 and of 500 that hang, with 20,000 due to them all together; and of 32
 * that answer at once, with 180,000 due, which take all that the machine has. They have a receiver of their own: what one
 * that is flooded lets its callers wait is its own.
 *
 * How much of that is the machine's share shows in two figures: the same beside raw POSTs of a process that is no part of
 * the service; and how long the bench's own statements take, which store and announce an event.
 */

const healthyCount = 50

/** The endpoints beside the healthy ones: how many, and how many deliveries they have due, which came over the last minutes. */
interface Case {
  readonly name: string
  readonly hangs: boolean
  /** Whether another process sends to them, and the service has nothing for them. */
  readonly isRaw: boolean
  readonly count: number
  readonly due: number
  readonly since: string
}

const hanging = (count: number): Case => ({
  name: `beside ${count}`,
  hangs: true,
  isRaw: false,
  count,
  due: 20_000,
  since: "now() - n * interval '20 milliseconds'"
})

const flooding = { hangs: false, count: 32, since: "now() - n * interval '2 milliseconds'" }

const allCases: ReadonlyArray<Case> = [
  hanging(1),
  hanging(32),
  hanging(500),
  { ...flooding, name: "beside 32 flooding", isRaw: false, due: 180_000 },
  { ...flooding, name: "beside raw POSTs", isRaw: true, due: 0 }
]
/** `BENCH_CASES=flooding` takes those whose name has this in it. */
const cases = allCases.filter(({ name }) => name.includes(process.env["BENCH_CASES"] ?? ""))
const mostOf = (hangs: boolean): number =>
  Math.max(...allCases.filter((one) => one.hangs === hangs).map(({ count }) => count))
const rate = 200
const rounds = roundsOf(5)
/** In its first seconds, a process waits for its compiler. */
const warmUpMillis = 5000
const millis = 6000

const offer = (database: Database, endpoints: ReadonlyArray<BenchEndpoint>, forMillis: number) =>
  Effect.gen(function* () {
    const startedAt = performance.now()
    const took: Array<number> = []
    while (performance.now() - startedAt < forMillis) {
      const endpoint = endpoints[took.length % endpoints.length]
      const begunAt = performance.now()
      if (endpoint !== undefined) yield* addTimedDelivery(database, endpoint)
      took.push(performance.now() - begunAt)
      const wait = (took.length / rate) * 1000 - (performance.now() - startedAt)
      if (wait > 1) yield* Effect.promise(() => sleep(wait))
    }
    return took
  })

export const neighbourBench: Bench = {
  name: "neighbour",
  about: "50 healthy endpoints at 200 events per second, beside 1, 32 and 500 that hang, 32 that flood, and raw POSTs",
  run: Effect.gen(function* () {
    const database = yield* startDatabase
    const [mostHanging, mostFlooding] = [mostOf(true), mostOf(false)]
    const receiver = yield* startReceiver(healthyCount)
    const receiverOfOthers = yield* startReceiver(mostHanging + mostFlooding, mostHanging)
    const healthy = yield* makeEndpoints(database, receiver.urls)
    const endpoints = yield* makeEndpoints(database, receiverOfOthers.urls)
    const measure = Effect.gen(function* () {
      yield* offer(database, healthy, warmUpMillis)
      yield* receiver.look
      const others = yield* receiverOfOthers.look
      const took = yield* offer(database, healthy, millis)
      const count = (yield* receiverOfOthers.look).received - others.received
      yield* Effect.promise(() => sleep(2000))
      const { latencies } = yield* receiver.look
      if (latencies.length < took.length * 0.98) {
        return yield* new BenchFailed({ message: `${latencies.length} of ${took.length} events arrived` })
      }
      return {
        p50: percentile(latencies, 0.5),
        p99: percentile(latencies, 0.99),
        own: percentile(took, 0.5),
        others: (count / millis) * 1000
      }
    })
    const posts = (ports: ReadonlyArray<number>) =>
      answerOf<RawResult>(new URL("../deliveries/RawPosts.ts", import.meta.url), {
        ports,
        inFlight: 256,
        payload: `{"id":"svc_evt_1","pad":"${"x".repeat(payloadBytes - 26)}"}`,
        warmUpMillis,
        millis: millis + 2000
      })
    // What came to be due in the past is looked for now and then
    const begun = Effect.flatMap(receiverOfOthers.look, ({ received }) => receiverOfOthers.until(received + 1000)).pipe(
      Effect.timeoutFail({ duration: "40 seconds", onTimeout: () => new BenchFailed({ message: "No flood came" }) })
    )
    const round = Effect.fnUntraced(function* ({ count, due, hangs, isRaw, name, since }: Case) {
      yield* emptyQueue(database)
      yield* startService(database, "worker", { SHUTDOWN_TIMEOUT: "1 second" })
      const alone = yield* measure
      const first = hangs ? 0 : mostHanging
      yield* addDeliveries(database, endpoints.slice(first, first + count), due, { due: since })
      if (isRaw) yield* Effect.forkScoped(posts(receiverOfOthers.ports.slice(first, first + count)))
      if (!hangs) yield* begun
      const beside = yield* measure
      const told = (one: string, { own, p50, p99 }: typeof alone) =>
        `${one}: p50 ${p50.toFixed(1)}, p99 ${p99.toFixed(1)} ms, of it ${own.toFixed(1)} its storing`
      yield* Console.error(
        `  ${told("alone", alone)}; ${told(name, beside)}; ${beside.others.toFixed(0)}/s to the others`
      )
      return { alone, beside }
    }, Effect.scoped)
    const results = yield* inRounds(rounds, () => Effect.forEach(cases, round))
    const alone = figuresOf(
      "neighbour",
      results.flatMap((measured) => measured.map(({ alone }) => alone))
    )
    return [
      alone("without any", "p50_ms", "ms", ({ p50 }) => p50),
      alone("without any", "p99_ms", "ms", ({ p99 }) => p99),
      ...figuresOfCases<(typeof results)[number][number]>(
        "neighbour",
        cases.map(({ name }) => name),
        results,
        [
          ["p50_ms", "ms", ({ beside }) => beside.p50],
          ["p99_ms", "ms", ({ beside }) => beside.p99],
          ["p50_ratio", "", ({ alone, beside }) => beside.p50 / alone.p50],
          ["p99_ratio", "", ({ alone, beside }) => beside.p99 / alone.p99],
          ["storing_ratio", "", ({ alone, beside }) => beside.own / alone.own],
          ["to_the_others", "1/s", ({ beside }) => beside.others]
        ]
      )
    ]
  })
}
