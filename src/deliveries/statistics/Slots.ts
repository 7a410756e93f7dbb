import { Duration } from "effect"
import { deliveryWindow } from "../RetryPolicy.ts"

/**
 * How time is divided for counting. Rows belong to the time in their ids, a UUIDv7. A slot is counted twice, each time
 * by reading it once: soon, for whoever looks now, and again when it is certain that nothing more is being stored in it.
 * The second count replaces the first one, so that a late row is never missed and none is counted twice.
 */

/** How long a slot is, in milliseconds. Slots divide UTC days evenly. */
export const slotMillis = 5 * 60 * 1000

/** How long after its time a row is counted first, in milliseconds: by then most statements have ended. */
export const firstAfter = 15 * 1000

/**
 * How long after its end a slot is counted again, in milliseconds: longer than any statement takes, and than the clocks
 * of processes differ.
 */
export const settledAfter = 15 * 60 * 1000

/**
 * Further behind than this, the first count skips to what the second one will not have settled soon, in milliseconds: the
 * second one fills the gap.
 */
export const skippedFrom = 30 * 60 * 1000

/** As long as this after its slot, a failed delivery may be re-sent, in milliseconds: its window, and some time to commit. */
export const resentWithin = Duration.toMillis(deliveryWindow) + Duration.toMillis("1 hour")

/** How many days are kept: as many as can be asked for. */
export const keptDays = 90

/** The beginning of the slot of a time, both in Unix milliseconds. */
export const slotOf = (millis: number): number => Math.floor(millis / slotMillis) * slotMillis

/** A stretch of time to count, within one slot: all in Unix milliseconds. */
export interface Stretch {
  readonly slot: number
  readonly from: number
  /** Exclusive. */
  readonly until: number
}

/** How far a count is: all from `since` until `until` is counted, in Unix milliseconds. */
export interface Position {
  readonly since: number
  readonly until: number
}

/**
 * The next stretch to count first; undefined if it is not time yet. Never what is settled already. `since` says where an
 * uninterrupted count begins.
 */
export const firstStretch = (
  { since, until: counted }: Position,
  settled: Position,
  now: number,
  most: number
): (Stretch & Position) | undefined => {
  const end = now - firstAfter
  const begin = Math.max(counted, settled.until)
  const isFarBehind = end - begin > skippedFrom
  const from = isFarBehind ? slotOf(now - settledAfter - slotMillis) : begin
  if (end - from < 1000) return undefined
  const slot = slotOf(from)
  const until = Math.min(slot + slotMillis, end, from + most)
  return { slot, from, until, since: from === counted ? since : from }
}

/** The next stretch to count for good; undefined if it is not time yet. */
export const secondStretch = (
  { since, until }: Position,
  now: number,
  most: number
): (Stretch & Position) | undefined => {
  // Nothing counts for as long if only a part of the service runs, for a team's own events
  const from = Math.max(until, slotOf(now - (keptDays + 1) * 24 * 60 * 60 * 1000))
  const slot = slotOf(from)
  const end = slot + slotMillis
  return end + settledAfter > now ? undefined : { slot, from, until: Math.min(end, from + most), since }
}

/** Until when everything is counted, at least once, in Unix milliseconds. */
export const countedUntil = (first: Position, second: Position): number =>
  second.until >= first.since ? Math.max(first.until, second.until) : second.until
