import { describe, expect, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import {
  countedUntil,
  firstAfter,
  firstStretch,
  type Position,
  secondStretch,
  settledAfter,
  skippedFrom,
  slotMillis,
  slotOf
} from "../../../src/destinations/statistics/Slots.ts"

const base = Date.UTC(2026, 10, 23, 1, 2, 3, 456)
const at = (since: number, until = since): Position => ({ since: base + since, until: base + until })
const minute = 60_000

interface Stretch {
  readonly from: number
  readonly until: number
}

/** Runs both counts until nothing is due; the stretches of each. */
const run = (first: Position, second: Position, now: number, most: number) => {
  const stretches = { first: Array.of<Stretch>(), second: Array.of<Stretch>() }
  for (;;) {
    const one = firstStretch(first, second, now, most)
    if (one !== undefined) {
      stretches.first.push(one)
      first = one
    }
    const two = secondStretch(second, now, most)
    if (two !== undefined) {
      stretches.second.push(two)
      second = two
    }
    if (one === undefined && two === undefined) return { first, second, stretches }
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
        // There are hundreds of thousands of stretches: one assertion for each would take seconds
        const isWithinSlot = ({ from, until }: Stretch) => until > from && slotOf(until - 1) === slotOf(from)
        const broken = done.stretches.second.filter((stretch) => {
          const follows = stretch.from === reached
          reached = stretch.until
          return !(follows && isWithinSlot(stretch))
        })
        const tooFar = done.stretches.first.filter(
          (stretch) => !(isWithinSlot(stretch) && stretch.until <= now - firstAfter)
        )
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
    const far = firstStretch(at(0), at(0), now, slotMillis)
    expect(far?.from).toBe(slotOf(now - settledAfter - slotMillis))
    expect(far?.since).toBe(far?.from)
    // Until the second count has filled the gap, all is counted only as far as that is
    const until = base + 60 * minute
    expect(countedUntil({ since: far?.since ?? 0, until: far?.until ?? 0 }, { since: base, until })).toBe(until)
    expect(firstStretch(at(0), at(5 * minute), base + skippedFrom / 2, slotMillis)?.from).toBe(base + 5 * minute)
  })
})
