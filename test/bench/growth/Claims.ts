import { performance } from "node:perf_hooks"
import { Duration, Effect, Layer, Redacted } from "effect"
import type { ClaimedDelivery } from "../../../src/deliveries/Claim.ts"
import { Queue } from "../../../src/deliveries/Queue.ts"
import type { EndpointId } from "../../../src/kit/Ids.ts"
import { databaseLayer } from "../../../src/storage/Database.ts"

/**
 * Claims one batch after the other, and gives all of them back at the end.
 *
 * Arguments as JSON: `{databaseUrl, batch, claims}`. Writes a `ClaimsResult`.
 */

interface Options {
  readonly databaseUrl: string
  readonly batch: number
  readonly claims: number
}

/** How long claims took. */
export interface ClaimsResult {
  /** Of the middle one. */
  readonly millis: number
}

// Written by the bench that starts this process, in this form
const { batch, claims, databaseUrl }: Options = JSON.parse(process.argv[2] ?? "")

const program = Effect.gen(function* () {
  const queue = yield* Queue
  const times: Array<number> = []
  const claimed: Array<ClaimedDelivery> = []
  for (let number = 0; number < claims; number++) {
    const startedAt = performance.now()
    const { deliveries } = yield* queue.claim({
      limit: batch,
      lease: Duration.minutes(5),
      perEndpoint: batch,
      inFlight: new Map<EndpointId, number>()
    })
    times.push(performance.now() - startedAt)
    if (deliveries.length !== batch) return yield* Effect.dieMessage(`${deliveries.length} were claimed, not ${batch}`)
    claimed.push(...deliveries)
  }
  yield* queue.release(claimed, Duration.zero)
  const result: ClaimsResult = { millis: times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN }
  yield* Effect.sync(() => process.stdout.write(`${JSON.stringify(result)}\n`))
})

const database = databaseLayer({ url: Redacted.make(databaseUrl), poolSize: 1 })
await Effect.runPromise(
  program.pipe(Effect.provide(Layer.provide(Queue.layer, database)), Effect.withTracerEnabled(false))
)
