import { Console, Effect } from "effect"
import { firstLine, startScript } from "../api/Processes.ts"
import { type Bench, type Figure, median } from "../Bench.ts"
import { emptyQueue, fillQueue, makeEndpoints, startDatabase } from "../deliveries/Bed.ts"
import type { ClaimsResult } from "./Claims.ts"

/** Whether the queue's statements take longer the more there is in the table: waiting, or finished and kept. */

const batch = 128
const rounds = 3

/** Claims of a round: together, what the smallest queue holds. */
const claims = 70

interface Case {
  readonly name: string
  readonly waiting: number
  readonly finished: number
}

/** Each adds to the one before; the last begins anew. */
const cases: ReadonlyArray<Case> = [
  { name: "10 thousand waiting", waiting: 10_000, finished: 0 },
  { name: "1 million waiting", waiting: 1_000_000, finished: 0 },
  { name: "5 million waiting", waiting: 5_000_000, finished: 0 },
  { name: "10 thousand waiting, 5 million finished", waiting: 10_000, finished: 5_000_000 }
]

/** `npm run bench -- growth`. */
export const growthBench: Bench = {
  name: "growth",
  about: "claims with 10 thousand to 5 million waiting, and with 5 million finished",
  run: Effect.gen(function* () {
    yield* Console.error("Starting the database…")
    const database = yield* startDatabase
    const urls = Array.from({ length: 64 }, (_, index) => `http://127.0.0.1:${9000 + index}/hook`)
    const endpoints = yield* makeEndpoints(database, urls)
    const measure = Effect.gen(function* () {
      // Else it would matter how often a page was written before
      yield* database.query("CHECKPOINT")
      const started = yield* startScript("../growth/Claims.ts", {
        args: [JSON.stringify({ databaseUrl: database.url, batch, claims })]
      })
      // Written by our own script, in this form
      const result: ClaimsResult = JSON.parse(yield* firstLine(started))
      return { rate: 1000 / result.millis, claim: result.millis }
    }).pipe(Effect.scoped)
    const results: Array<{ readonly name: string; readonly rate: number; readonly claim: number }> = []
    let waiting = 0
    for (const one of cases) {
      yield* Console.error(`Filling: ${one.name}…`)
      if (one.waiting < waiting) {
        yield* emptyQueue(database)
        waiting = 0
      }
      yield* fillQueue(database, endpoints, one.waiting - waiting, one.finished)
      waiting = one.waiting
      const measured: Array<Effect.Effect.Success<typeof measure>> = []
      for (let round = 1; round <= rounds; round++) measured.push(yield* measure)
      const rate = median(measured.map((result) => result.rate))
      const claim = median(measured.map((result) => result.claim))
      yield* Console.error(`  ${rate.toFixed(0)} claims/s, ${claim.toFixed(2)} ms each`)
      results.push({ name: one.name, rate, claim })
    }
    const [least, , most] = results
    return [
      ...results.flatMap(
        ({ claim, name, rate }): ReadonlyArray<Figure> => [
          { bench: "growth", case: name, metric: "claims", value: rate, unit: "1/s" },
          { bench: "growth", case: name, metric: "claim_ms", value: claim, unit: "ms" }
        ]
      ),
      {
        bench: "growth",
        case: "5 million waiting",
        metric: "ratio_5m_to_10k",
        value: (most?.rate ?? Number.NaN) / (least?.rate ?? Number.NaN),
        unit: ""
      }
    ]
  })
}
