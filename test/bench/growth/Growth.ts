import { Console, Effect } from "effect"
import { answerOf } from "../api/Processes.ts"
import { type Bench, figuresOfCases, ratioToFirst } from "../Bench.ts"
import {
  copyDatabase,
  type Database,
  fillHistory,
  fillQueue,
  makeEndpoints,
  queueAgain,
  startDatabase
} from "../deliveries/Bed.ts"
import { share } from "../sizes.ts"
import type { ClaimsResult, ClaimsRound } from "./Claims.ts"

/**
 * Whether a claim, and the insert of new events meanwhile, takes longer the more there is: waiting, or finished and kept.
 * All events are distinct. Each case is a database of its own on one
 * server, and all are measured in turns, so that they share what else the machine does.
 */

const batch = 128
const rounds = 7

/** Claims of a round: together, less than the smallest queue holds. */
const claims = 60

const least = 10_000
const many = 1_000_000 * share
const most = 10_000_000 * share

const inMillions = (count: number): string => `${count / 1_000_000} million`

export const growthBench: Bench = {
  name: "growth",
  about: "claims and inserts with 10 thousand to 10 million waiting, and with 10 million finished",
  run: Effect.gen(function* () {
    const own = yield* startDatabase
    const endpoints = yield* makeEndpoints(
      own,
      Array.from({ length: 64 }, (_, index) => `http://127.0.0.1:${9000 + index}/hook`)
    )
    const copyOf = (original: Database, name: string) => copyDatabase(original, `bench_${name}`)
    const [little, more, full] = [yield* copyOf(own, "little"), yield* copyOf(own, "more"), yield* copyOf(own, "full")]
    yield* Console.error("Filling…")
    yield* Effect.all(
      [fillHistory(full, endpoints, most), fillQueue(more, endpoints, many), fillQueue(little, endpoints, least)],
      {
        concurrency: 2
      }
    )
    const kept = yield* copyOf(full, "kept")
    yield* Effect.all([queueAgain(full, most), queueAgain(kept, least)], { concurrency: 2 })
    const cases = [
      { name: "10 thousand waiting", url: little.url },
      { name: `${inMillions(many)} waiting`, url: more.url },
      { name: `${inMillions(most)} waiting`, url: full.url },
      { name: `10 thousand waiting, ${inMillions(most)} finished`, url: kept.url }
    ]
    yield* Console.error("Claiming…")
    const measured = yield* answerOf<ClaimsResult>(new URL("./Claims.ts", import.meta.url), {
      databaseUrls: cases.map(({ url }) => url),
      batch,
      claims,
      rounds
    })
    return figuresOfCases<ClaimsRound>(
      "growth",
      cases.map(({ name }) => name),
      measured,
      [
        ["claim_ms", "ms", ({ claim }) => claim],
        ratioToFirst("claim_ratio_to_10k", ({ claim }) => claim),
        ["insert_ms", "ms", ({ insert }) => insert],
        ratioToFirst("insert_ratio_to_10k", ({ insert }) => insert)
      ]
    )
  })
}
