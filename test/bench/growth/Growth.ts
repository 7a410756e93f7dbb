import { Console, Effect } from "effect"
import { firstLine, startScript } from "../api/Processes.ts"
import { type Bench, type Figure, median } from "../Bench.ts"
import {
  copyDatabase,
  type Database,
  fillHistory,
  fillQueue,
  makeEndpoints,
  queueAgain,
  startDatabase
} from "../deliveries/Bed.ts"
import type { ClaimsResult } from "./Claims.ts"

/**
 * Whether a claim takes longer the more there is: waiting, or finished and kept. Each case is a database of its own on one
 * server, and all are measured in turns, so that they share what else the machine does.
 */

const batch = 128
const rounds = 7

/** Claims of a round: together, less than the smallest queue holds. */
const claims = 60

const least = 10_000

/** `npm run bench -- growth`. */
export const growthBench: Bench = {
  name: "growth",
  about: "claims with 10 thousand to 5 million waiting, and with 5 million finished",
  run: Effect.gen(function* () {
    yield* Console.error("Starting the database…")
    const own = yield* startDatabase
    const endpoints = yield* makeEndpoints(
      own,
      Array.from({ length: 64 }, (_, index) => `http://127.0.0.1:${9000 + index}/hook`)
    )
    const copyOf = (original: Database, name: string) => copyDatabase(original, `bench_${name}`)
    const [little, more, most] = [yield* copyOf(own, "little"), yield* copyOf(own, "more"), yield* copyOf(own, "most")]
    yield* Console.error("Filling…")
    yield* Effect.all(
      [
        fillHistory(most, endpoints, 5_000_000),
        fillQueue(more, endpoints, 1_000_000),
        fillQueue(little, endpoints, least)
      ],
      {
        concurrency: 2
      }
    )
    const kept = yield* copyOf(most, "kept")
    yield* Effect.all([queueAgain(most, 5_000_000), queueAgain(kept, least)], { concurrency: 2 })
    const cases = [
      { name: "10 thousand waiting", url: little.url },
      { name: "1 million waiting", url: more.url },
      { name: "5 million waiting", url: most.url },
      { name: "10 thousand waiting, 5 million finished", url: kept.url }
    ]
    yield* Console.error("Claiming…")
    const started = yield* startScript("../growth/Claims.ts", {
      args: [JSON.stringify({ databaseUrls: cases.map(({ url }) => url), batch, claims, rounds })]
    })
    // Written by our own script, in this form
    const measured: ClaimsResult = JSON.parse(yield* firstLine(started))
    const [smallest] = measured
    return cases.flatMap(({ name }, index): ReadonlyArray<Figure> => {
      const millis = measured[index] ?? []
      const ratios = millis.map((one, round) => (smallest?.[round] ?? Number.NaN) / one)
      const figure = (metric: string, value: number, unit: string) => ({
        bench: "growth",
        case: name,
        metric,
        value,
        unit
      })
      return [
        figure("claims", 1000 / median(millis), "1/s"),
        figure("claim_ms", median(millis), "ms"),
        figure(name === "5 million waiting" ? "ratio_5m_to_10k" : "ratio_to_10k", median(ratios), "")
      ]
    })
  })
}
