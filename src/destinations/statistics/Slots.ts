import { Duration } from "effect"
import { deliveryWindow } from "../../engine/attempts/Outcome.ts"

/**
 * How time is divided for counting. Rows belong to the time in their ids, a UUIDv7. Each slot is read and counted
 * twice: soon, for current readers, and again once nothing more can be stored in it. The second count replaces the
 * first one, so that a late row is never missed and none is counted twice.
 */

/** How long a slot is, in milliseconds. Slots divide UTC days evenly. */
export const slotMillis = 5 * 60 * 1000

/** How long after its time a row is first counted, in milliseconds: by then most statements have ended. */
export const firstAfter = 15 * 1000

/** In milliseconds: longer than any statement takes, and than processes' clocks differ. */
export const settledAfter = 15 * 60 * 1000

/**
 * If the first count is further behind than this, in milliseconds, it skips ahead to the slots that the second count
 * will not settle soon. The second count fills the gap.
 */
export const skippedFrom = 30 * 60 * 1000

/** How long after its slot a failed delivery may be re-sent, in milliseconds: its window, plus some time to commit. */
export const resentWithin = Duration.toMillis(deliveryWindow) + Duration.toMillis("1 hour")

/** How many days of counts are kept: as many as can be requested. */
export const keptDays = 90

export const slotOf = (millis: number): number => Math.floor(millis / slotMillis) * slotMillis

/** A range of time to count, within one slot: all in Unix milliseconds. */
export interface TimeRange {
  readonly slot: number
  readonly from: number
  /** Exclusive. */
  readonly until: number
}

/** The progress of a count: everything from `since` to `until` is counted, in Unix milliseconds. */
export interface Position {
  readonly since: number
  readonly until: number
}

/** The next range of the first count, never a settled one. `since` is where the uninterrupted count begins. */
export const firstRange = (
  { since, until: counted }: Position,
  settled: Position,
  now: number,
  most: number
): (TimeRange & Position) | undefined => {
  const end = now - firstAfter
  const begin = Math.max(counted, settled.until)
  const isFarBehind = end - begin > skippedFrom
  const from = isFarBehind ? slotOf(now - settledAfter - slotMillis) : begin
  if (end - from < 1000) return undefined
  const slot = slotOf(from)
  const until = Math.min(slot + slotMillis, end, from + most)
  return { slot, from, until, since: from === counted ? since : from }
}

export const secondRange = (
  { since, until }: Position,
  now: number,
  most: number
): (TimeRange & Position) | undefined => {
  // An embedding team may have run only the part for its own events, which does not count
  const from = Math.max(until, slotOf(now - (keptDays + 1) * 24 * 60 * 60 * 1000))
  const slot = slotOf(from)
  const end = slot + slotMillis
  return end + settledAfter > now ? undefined : { slot, from, until: Math.min(end, from + most), since }
}

/** Until when everything is counted, at least once, in Unix milliseconds. */
export const countedUntil = (first: Position, second: Position): number =>
  second.until >= first.since ? Math.max(first.until, second.until) : second.until
