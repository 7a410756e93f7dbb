import { monitorEventLoopDelay } from "node:perf_hooks"
import { Effect, Layer } from "effect"
import { Metrics, observeMetrics } from "./Metrics.ts"

/** Metrics of the process itself, observed when metrics are exported. */

interface Pool {
  readonly totalCount: number
  readonly idleCount: number
  readonly waitingCount: number
}

export const observePool = (pool: Pool) =>
  observeMetrics((metrics) =>
    Effect.sync(() => {
      metrics.set("db.client.connection.count", pool.totalCount - pool.idleCount, ["used"])
      metrics.set("db.client.connection.count", pool.idleCount, ["idle"])
      metrics.set("db.client.connection.pending_requests", pool.waitingCount, [])
    })
  )

/** The event loop's sampling interval, in milliseconds; shorter delays are artefacts of sampling. */
const resolution = 10

/** Converts a sampled delay from nanoseconds to seconds, less the sampling interval; 0 without samples. */
const seconds = (nanoseconds: number): number =>
  Number.isFinite(nanoseconds) ? Math.max(0, nanoseconds / 1e9 - resolution / 1000) : 0

/** Reports the event loop's delay since the last export. If metrics are off, nothing is sampled. */
export const eventLoopMetrics: Layer.Layer<never> = Layer.scopedDiscard(
  Effect.gen(function* () {
    if ((yield* Metrics) === null) return
    const delay = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const histogram = monitorEventLoopDelay({ resolution })
        histogram.enable()
        return histogram
      }),
      (histogram) => Effect.sync(() => histogram.disable())
    )
    yield* observeMetrics((metrics) =>
      Effect.sync(() => {
        metrics.set("nodejs.eventloop.delay.mean", seconds(delay.mean), [])
        metrics.set("nodejs.eventloop.delay.p99", seconds(delay.percentile(99)), [])
        // Without a sample the maximum is 0
        metrics.set("nodejs.eventloop.delay.max", seconds(delay.max), [])
        delay.reset()
      })
    )
  })
)
