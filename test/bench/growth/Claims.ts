import { performance } from "node:perf_hooks"
import { Context, Duration, Effect, Layer, Redacted } from "effect"
import { type ClaimedDelivery, queueStart } from "../../../src/deliveries/sending/Claim.ts"
import { Queue } from "../../../src/deliveries/sending/Queue.ts"
import type { EndpointId } from "../../../src/kit/Ids.ts"
import { databaseLayer } from "../../../src/storage/Database.ts"

/**
 * Claims one batch after the other from each of several queues in turns, and gives all of them back at the end of a turn.
 *
 * Arguments as JSON: `{databaseUrls, batch, claims, rounds}`. Writes a `ClaimsResult`.
 */

interface Options {
  readonly databaseUrls: ReadonlyArray<string>
  readonly batch: number
  /** Claims of a round. */
  readonly claims: number
  readonly rounds: number
}

/** By database, in their order: for each round, how many milliseconds the middle one of its claims took. */
export type ClaimsResult = ReadonlyArray<ReadonlyArray<number>>

// Written by the bench that starts this process, in this form
const { batch, claims, databaseUrls, rounds }: Options = JSON.parse(process.argv[2] ?? "")

const round = (queue: Queue["Type"]) =>
  Effect.gen(function* () {
    const times: Array<number> = []
    const claimed: Array<ClaimedDelivery> = []
    // As a worker does it: each claim goes on from where the one before found the first
    let from = queueStart
    for (let number = 0; number < claims; number++) {
      const startedAt = performance.now()
      const { deliveries, place } = yield* queue.claim({
        from,
        limit: batch,
        lease: Duration.minutes(5),
        perEndpoint: batch,
        inFlight: new Map<EndpointId, number>()
      })
      times.push(performance.now() - startedAt)
      if (deliveries.length !== batch) {
        return yield* Effect.dieMessage(`${deliveries.length} were claimed, not ${batch}`)
      }
      from = place
      claimed.push(...deliveries)
    }
    yield* queue.release(claimed, Duration.zero)
    return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN
  })

const program = Effect.gen(function* () {
  const queues = yield* Effect.forEach(databaseUrls, (url) =>
    Effect.map(
      Layer.build(Layer.provide(Queue.layer, databaseLayer({ url: Redacted.make(url), poolSize: 1 }))),
      Context.get(Queue)
    )
  )
  const result = queues.map((): Array<number> => [])
  // The first round is not counted: plans are made and pages are read
  for (let number = 0; number <= rounds; number++) {
    for (const [index, queue] of queues.entries()) {
      const millis = yield* round(queue)
      if (number > 0) result[index]?.push(millis)
    }
  }
  yield* Effect.sync(() => process.stdout.write(`${JSON.stringify(result satisfies ClaimsResult)}\n`))
})

await Effect.runPromise(program.pipe(Effect.scoped, Effect.withTracerEnabled(false)))
