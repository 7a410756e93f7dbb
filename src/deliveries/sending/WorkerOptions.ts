import { Duration } from "effect"
import type { DestinationSettings } from "../../endpoints/DestinationUrl.ts"

export interface WorkerOptions extends DestinationSettings {
  /** The transport's timeout for one exchange, plus the time to record its outcome. */
  readonly lease: Duration.Duration
  /** How long after its claim an attempt may still begin, so that it ends within its lease. */
  readonly startWithin: Duration.Duration
  /**
   * Attempts in flight in this process, except those that have waited more than a moment for their answer: see
   * `Attempts`.
   */
  readonly concurrency: number
  /** Attempts in flight per endpoint in this process. */
  readonly concurrencyPerEndpoint: number
  /** How often to look for due deliveries when nothing wakes the worker. */
  readonly pollInterval: Duration.Duration
  /** How long a shutdown waits for attempts in flight. */
  readonly drainTimeout: Duration.Duration
  readonly userAgent: string
}

/** The most deliveries that one claim takes. */
export const maxClaim = 256

/**
 * Derives the times of a claimed delivery so that its attempt, however late it begins and however late its timeout ends
 * it, ends within its lease: another process may claim the delivery afterwards.
 *
 * @param timeout of one exchange
 * @param margin how much longer than that the lease lasts
 */
export const leaseTimes = (timeout: Duration.Duration, margin: Duration.Duration) => {
  const timeoutSpread = Duration.min(Duration.times(timeout, 0.1), Duration.times(margin, 0.5))
  return {
    lease: Duration.sum(timeout, margin),
    startWithin: Duration.subtract(margin, timeoutSpread),
    timeoutSpread
  }
}
