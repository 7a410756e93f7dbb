import { performance } from "node:perf_hooks"

/** The event loop utilization at which batches begin to be spaced, and at which they are spaced fully. */
const busy = { from: 0.55, full: 0.85 }

/** The maximum interval between the starts of two batches, in milliseconds. */
const maxMillis = 15

/** How often the event loop's utilization is measured, in milliseconds. */
const lookMillis = 500

/** The interval between batches at this event loop utilization, in milliseconds: 0 up to `busy.from`. */
export const batchIntervalFor = (share: number): number =>
  maxMillis * Math.min(1, Math.max(0, (share - busy.from) / (busy.full - busy.from)))

let looked = performance.eventLoopUtilization()
let lookedAt = performance.now()
let spacing = 0

/**
 * The interval between the starts of batches now, in milliseconds. A statement costs this process and the database the
 * same, whatever its size: a mostly idle process sends at once, a busy one waits a little and sends more per statement.
 */
export const batchIntervalMillis = (): number => {
  const now = performance.now()
  if (now - lookedAt >= lookMillis) {
    const { utilization } = performance.eventLoopUtilization(looked)
    looked = performance.eventLoopUtilization()
    lookedAt = now
    spacing = batchIntervalFor(utilization)
  }
  return spacing
}
