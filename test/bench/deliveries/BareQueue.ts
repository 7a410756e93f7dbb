import { performance } from "node:perf_hooks"
import { PgClient } from "@effect/sql-pg"
import { Duration, Effect, Layer, Redacted } from "effect"
import { type ClaimedDelivery, queueStart } from "../../../src/engine/queue/Claim.ts"
import { Queue } from "../../../src/engine/queue/Queue.ts"
import type { EndpointId } from "../../../src/platform/kit/Ids.ts"
import { databaseLayer } from "../../../src/platform/storage/Database.ts"

/**
 * The other ceiling: the queue's own claim and finish, in batches, with nothing sent in between. While one batch is
 * recorded the next is claimed, as the worker does it.
 *
 * Arguments as JSON: `{databaseUrl, client, batch, warmUpMillis, millis}`. Writes `{moved, seconds}`.
 */

export interface BareOptions {
  readonly databaseUrl: string
  /** The service's, or the plain one of an embedding team. */
  readonly client: "databaseLayer" | "PgClient"
  readonly batch: number
  readonly warmUpMillis: number
  readonly millis: number
}

export interface BareResult {
  readonly moved: number
  readonly seconds: number
  readonly claimMillis: number
  readonly finishMillis: number
}

// Written by the bench that starts this process, in this form
const options: BareOptions = JSON.parse(process.argv[2] ?? "")

const timed = <A, E>(times: Array<number>, effect: Effect.Effect<A, E>) =>
  Effect.suspend(() => {
    const startedAt = performance.now()
    return Effect.tap(effect, () => Effect.sync(() => times.push(performance.now() - startedAt)))
  })

const average = (times: ReadonlyArray<number>) => times.reduce((sum, time) => sum + time, 0) / times.length

const program = Effect.gen(function* () {
  const queue = yield* Queue
  const idle = new Map<EndpointId, number>()
  let moved = 0
  const claims: Array<number> = []
  const finishes: Array<number> = []
  const lease = Duration.seconds(15)
  // As a worker does it: each claim goes on from where the one before found the first
  let from = queueStart
  const claim = timed(
    claims,
    Effect.suspend(() => queue.claim({ from, limit: options.batch, lease, perEndpoint: options.batch, inFlight: idle }))
  ).pipe(
    Effect.map(({ deliveries, place }) => {
      from = place
      return deliveries
    })
  )
  const finish = (deliveries: ReadonlyArray<ClaimedDelivery>) =>
    deliveries.length === 0
      ? Effect.void
      : timed(
          finishes,
          queue.finish(
            deliveries.map((delivery) => ({
              delivery,
              startedAt: Date.now(),
              outcome: { httpStatus: 204, errorCode: null, durationMs: 1, retryAfter: null },
              next: { state: "delivered" }
            }))
          )
        ).pipe(Effect.tap(() => Effect.sync(() => (moved += deliveries.length))))
  const turn = (held: ReadonlyArray<ClaimedDelivery>): Effect.Effect<ReadonlyArray<ClaimedDelivery>, unknown> =>
    Effect.map(Effect.all([claim, finish(held)], { concurrency: 2 }), ([claimed]) => claimed)
  const until = (endsAt: number) =>
    Effect.iterate([] as ReadonlyArray<ClaimedDelivery>, { while: () => performance.now() < endsAt, body: turn })
  yield* Effect.flatMap(until(performance.now() + options.warmUpMillis), finish)
  moved = 0
  claims.length = 0
  finishes.length = 0
  const startedAt = performance.now()
  yield* Effect.flatMap(until(startedAt + options.millis), finish)
  const seconds = (performance.now() - startedAt) / 1000
  const result: BareResult = { moved, seconds, claimMillis: average(claims), finishMillis: average(finishes) }
  yield* Effect.sync(() => process.stdout.write(`${JSON.stringify(result)}\n`))
})

const url = Redacted.make(options.databaseUrl)
const database =
  options.client === "PgClient" ? PgClient.layer({ url, maxConnections: 5 }) : databaseLayer({ url, poolSize: 4 })
await Effect.runPromise(
  program.pipe(Effect.provide(Layer.provide(Queue.layer, database)), Effect.withTracerEnabled(false))
)
