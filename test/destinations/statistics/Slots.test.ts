import { describe, expect, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import {
  countedUntil,
  firstAfter,
  firstRange,
  type Position,
  secondRange,
  settledAfter,
  skippedFrom,
  slotMillis,
  slotOf
} from "../../../src/destinations/statistics/Slots.ts"

const base = Date.UTC(2026, 10, 23, 1, 2, 3, 456)
const at = (since: number, until = since): Position => ({ since: base + since, until: base + until })
const minute = 60_000

interface TimeRange {
  readonly from: number
  readonly until: number
}

/** Runs both counts until nothing is due; the ranges of each. */
const run = (first: Position, second: Position, now: number, most: number) => {
  const ranges = { first: Array.of<TimeRange>(), second: Array.of<TimeRange>() }
  for (;;) {
    const one = firstRange(first, second, now, most)
    if (one !== undefined) {
      ranges.first.push(one)
      first = one
    }
    const two = secondRange(second, now, most)
    if (two !== undefined) {
      ranges.second.push(two)
      second = two
    }
    if (one === undefined && two === undefined) return { first, second, ranges }
  }
}

describe("slots", () => {
  it.prop(
    "are counted for good without a gap and without an overlap, whenever and in whatever steps",
    [
      fc.integer({ min: 20, max: 600 }),
      fc.integer({ min: 5, max: 400 }),
      fc.array(fc.integer({ min: 1, max: 90 }), { maxLength: 12 })
    ],
    ([begun, most, waits]) => {
      const start = slotOf(base) - begun * minute
      let first: Position = { since: start, until: start }
      let second = first
      let reached = second.until
      let now = base
      for (const wait of waits) {
        now += wait * minute
        const done = run(first, second, now, most * 1000)
        // There are hundreds of thousands of ranges: one assertion for each would take seconds
        const isWithinSlot = ({ from, until }: TimeRange) => until > from && slotOf(until - 1) === slotOf(from)
        const broken = done.ranges.second.filter((range) => {
          const follows = range.from === reached
          reached = range.until
          return !(follows && isWithinSlot(range))
        })
        const tooFar = done.ranges.first.filter((range) => !(isWithinSlot(range) && range.until <= now - firstAfter))
        expect({ broken, tooFar }).toEqual({ broken: [], tooFar: [] })
        first = done.first
        second = done.second
        expect(slotOf(second.until) + slotMillis + settledAfter).toBeGreaterThan(now)
        expect(second.until).toBeLessThanOrEqual(now - settledAfter)
        // Together they leave no gap, and less than a second is due
        expect(countedUntil(first, second)).toBeGreaterThan(now - firstAfter - 1000)
      }
    }
  )

  it("are left to the second count by the first one, if it is far behind or they are settled", () => {
    const now = base + 10 * 60 * minute
    const far = firstRange(at(0), at(0), now, slotMillis)
    expect(far?.from).toBe(slotOf(now - settledAfter - slotMillis))
    expect(far?.since).toBe(far?.from)
    // Until the second count has filled the gap, all is counted only as far as that is
    const until = base + 60 * minute
    expect(countedUntil({ since: far?.since ?? 0, until: far?.until ?? 0 }, { since: base, until })).toBe(until)
    expect(firstRange(at(0), at(5 * minute), base + skippedFrom / 2, slotMillis)?.from).toBe(base + 5 * minute)
  })
})
