import type { EventEmitter } from "node:events"
import { monitorEventLoopDelay } from "node:perf_hooks"
import { Effect, Layer } from "effect"
import { Metrics, observeMetrics } from "./Metrics.ts"

/** Metrics of the process itself, observed when metrics are exported. */

/** A pool of connections, as `pg.Pool` counts them. */
interface Pool extends EventEmitter {
  readonly totalCount: number
  readonly idleCount: number
  readonly waitingCount: number
}

/** The event by which a pool reports how long a connection was waited for, in milliseconds. */
export const waitedEvent = "connected-payments waited"

const longWaitMillis = 1000

/** Reports a pool's use until the scope closes. */
export const observePool = (pool: Pool) =>
  observeMetrics((metrics) => {
    // Exported from the start: an alert on an increase needs a previous value
    metrics.count("db.client.connection.long_wait.count", [], 0)
    pool.on(waitedEvent, (millis: number) => {
      if (millis >= longWaitMillis) metrics.count("db.client.connection.long_wait.count", [])
    })
    return Effect.sync(() => {
      metrics.set("db.client.connection.count", pool.totalCount - pool.idleCount, ["used"])
      metrics.set("db.client.connection.count", pool.idleCount, ["idle"])
      metrics.set("db.client.connection.pending_requests", pool.waitingCount, [])
    })
  })

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
