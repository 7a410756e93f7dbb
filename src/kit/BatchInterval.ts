import { performance } from "node:perf_hooks"

/** The share of the time that the event loop may be busy before batches are spaced, and from which on fully so. */
const busy = { from: 0.55, full: 0.85 }

/** The greatest distance between the starts of two batches, in milliseconds. */
const maxMillis = 15

/** How long the event loop is watched for a new look at how busy it is, in milliseconds. */
const lookMillis = 500

/**
 * The distance between batches for an event loop that is busy for this share of the time, in milliseconds: 0 as long as
 * there is room.
 */
export const batchIntervalFor = (share: number): number =>
  maxMillis * Math.min(1, Math.max(0, (share - busy.from) / (busy.full - busy.from)))

let looked = performance.eventLoopUtilization()
let lookedAt = performance.now()
let spacing = 0

/**
 * How far apart the starts of batches should be now, in milliseconds. Each statement costs this process and the database
 * the same, whatever it holds. A process whose event loop is idle for much of the time sends what it has at once; a busy
 * one does better to wait a little, and to send more with each.
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
