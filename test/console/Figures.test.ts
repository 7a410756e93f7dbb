import { describe, expect, it } from "@effect/vitest"
import { digitsOf } from "../../src/console/components/amounts.ts"
import {
  columnAfterKey,
  highest,
  labelledColumns,
  stackedParts,
  ticksOf,
  valueScale
} from "../../src/console/components/charts/chartScales.ts"
import { eventQuery } from "../../src/console/pages/events/eventFilters.ts"
import {
  happenedAt,
  moneyOf,
  paymentOf,
  providerEventOf,
  subjectOf
} from "../../src/console/pages/events/eventSummary.ts"
import {
  byTrouble,
  currenciesOf,
  daysOf,
  deliveryDays,
  deliverySums,
  endpointDays,
  paymentDays,
  rateText,
  type Statistics
} from "../../src/console/pages/overview/figures.ts"
import { compactMoney, countedUpTo, mostCounted } from "../../src/console/pages/overview/format.ts"
import { mostCounted as mostCountedByService } from "../../src/platform/kit/Request.ts"

const none = { count: 0, amount: "0" }

describe("the axis of money", () => {
  it.each(Intl.supportedValuesOf("currency"))("counts %s in the units that the provider counts in", (currency) => {
    expect(compactMoney(150_000 * 10 ** digitsOf(currency), currency.toLowerCase())).toMatch(/150\s?K/)
  })
})

describe("a count that stops", () => {
  it("is marked as such at the service's bound, and below it is a number", () => {
    expect(mostCounted).toBe(mostCountedByService)
    expect(countedUpTo(mostCounted)).toBe("10,000+")
    expect(countedUpTo(9999)).toBe("9,999")
  })
})

const statistics: Statistics = {
  from: "2026-02-27",
  until: "2026-03-02",
  countedUntil: "2026-03-02T10:00:00.000Z",
  payments: [
    {
      date: "2026-02-27",
      currency: "brl",
      succeeded: { count: 2, amount: "9007199254740993" },
      failed: { count: 1, amount: "1500" },
      refunded: none,
      refundFailed: { count: 2, amount: "1300" }
    },
    {
      date: "2026-03-02",
      currency: "brl",
      succeeded: { count: 1, amount: "1" },
      failed: none,
      refunded: { count: 1, amount: "700" },
      refundFailed: { count: 1, amount: "700" }
    },
    {
      date: "2026-03-02",
      currency: "jpy",
      succeeded: { count: 9, amount: "9000" },
      failed: none,
      refunded: none,
      refundFailed: none
    }
  ],
  deliveries: [
    { date: "2026-02-28", delivered: 3, failed: 1, queued: 0 },
    { date: "2026-03-02", delivered: 0, failed: 0, queued: 2 }
  ],
  endpoints: [
    { id: "0199c0de-0000-7000-8000-000000000021", days: [{ date: "2026-02-28", delivered: 3, failed: 1, queued: 0 }] }
  ]
}

describe("the overview's figures", () => {
  it("have every day, also those of which nothing is told, over the end of a month", () => {
    expect(daysOf(statistics)).toEqual(["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02"])
    expect(daysOf({ from: "2026-03-02", until: "2026-03-01" })).toEqual([])
    expect(daysOf({ from: "0001-01-01", until: "9999-12-31" }).length).toBeLessThan(1000)
    expect(paymentDays(statistics, "brl").succeeded).toEqual([2, 0, 0, 1])
    expect(deliveryDays(statistics)).toEqual({ delivered: [0, 3, 0, 0], failed: [0, 1, 0, 0], queued: [0, 0, 0, 2] })
  })

  it("sum amounts by currency exactly, however large", () => {
    const [first, second] = currenciesOf(statistics)
    expect(first).toEqual({
      currency: "jpy",
      received: 9000n,
      refunded: 0n,
      refundsFailed: 0,
      refundFailed: 0n,
      succeeded: 9,
      failed: 0
    })
    expect(second).toEqual({
      currency: "brl",
      received: 9007199254740994n,
      refunded: 700n,
      refundsFailed: 3,
      refundFailed: 2000n,
      succeeded: 3,
      failed: 1
    })
  })

  it("tell the share of what ended that was delivered, and never round a failure away", () => {
    expect(deliverySums(statistics)).toEqual({ delivered: 3, failed: 1, queued: 2, rate: 0.75 })
    expect(deliverySums({ deliveries: [] }).rate).toBeNull()
    expect([1, 0, 0.75, 0.9999, 0.0001].map(rateText)).toEqual(["100 %", "0 %", "75 %", "99.9 %", "0.1 %"])
  })

  it("are there for each destination, and empty for one that is not told of", () => {
    expect(endpointDays(statistics, "0199c0de-0000-7000-8000-000000000021")).toEqual({
      totals: [0, 4, 0, 0],
      troubled: [0, 1, 0, 0],
      failed: 1,
      waiting: 0
    })
    const none = [0, 0, 0, 0]
    expect(endpointDays(statistics, "another")).toEqual({ totals: none, troubled: none, failed: 0, waiting: 0 })
  })

  it("count all that waits for a destination, however much that is, and put the worst first", () => {
    const day = { date: "2026-11-22", delivered: 0, failed: 0 }
    const counted = { ...statistics, endpoints: [{ id: "a", days: [{ ...day, queued: 4862 }] }] }
    const listed = ["b", "a", "c", "d"].map((id) => ({ id, recentFailures: id === "d" ? 1 : 0 }))
    // Of the newest hundred
    const retrying = new Map([
      ["a", 37],
      ["b", 2]
    ])
    const sorted = byTrouble(listed, counted, retrying)
    expect(sorted.map(({ id, waiting }) => [id, waiting])).toEqual([
      ["d", 0],
      ["a", 4862],
      ["b", 2],
      ["c", 0]
    ])
  })
})

describe("a bar chart", () => {
  it("stacks the series, and leaves out what has no height", () => {
    const parts = stackedParts(
      [
        { label: "one", tone: "ok", values: [2, 0, Number.NaN] },
        { label: "two", tone: "problem", values: [3, -1] }
      ],
      3
    )
    expect(parts).toEqual([
      [
        { series: 0, from: 0, to: 2 },
        { series: 1, from: 2, to: 5 }
      ],
      [],
      []
    ])
    expect([highest(parts), highest([])]).toEqual([5, 0])
  })

  it("has an axis of whole numbers from zero to above the highest, also without values", () => {
    for (const top of [0, 1, 3, 7, 1234, 9e15]) {
      const scale = valueScale(top, 100)
      const ticks = ticksOf(scale)
      expect(scale.domain()[1]).toBeGreaterThanOrEqual(top)
      expect(ticks[0]).toBe(0)
      expect(ticks.every(Number.isInteger)).toBe(true)
      expect(ticks.length).toBeGreaterThan(1)
    }
  })

  it("labels as many columns as there is room for, the last always", () => {
    expect([...labelledColumns(30, 300, 60)]).toEqual([29, 23, 17, 11, 5])
    expect([...labelledColumns(3, 900, 60)]).toEqual([2, 1, 0])
    expect([...labelledColumns(30, 10, 60)]).toEqual([29])
    expect(labelledColumns(0, 300, 60).size).toBe(0)
  })

  it("goes from value to value by the arrow keys, and stops at the ends", () => {
    expect(columnAfterKey("ArrowLeft", null, 5)).toBe(4)
    expect(columnAfterKey("ArrowRight", null, 5)).toBe(0)
    expect([columnAfterKey("ArrowLeft", 0, 5), columnAfterKey("ArrowRight", 4, 5)]).toEqual([0, 4])
    expect([columnAfterKey("Home", 3, 5), columnAfterKey("End", 3, 5), columnAfterKey("a", 3, 5)]).toEqual([0, 4, null])
  })
})

describe("an event", () => {
  const event = {
    created_at: "2026-09-21T14:00:00.000Z",
    source: { provider: "stripe", event_id: "evt_1" },
    data: { payment_id: "pi_1", amount_received: 1500, currency: "brl" }
  }

  it("is summed up by its amount and what it is about", () => {
    expect([moneyOf(event), subjectOf(event), paymentOf(event), happenedAt(event), providerEventOf(event)]).toEqual([
      { amount: 1500, currency: "brl" },
      "pi_1",
      "pi_1",
      "2026-09-21T14:00:00.000Z",
      "evt_1"
    ])
    expect(subjectOf({ data: { session_id: "cs_1", payment_id: "pi_1" } })).toBe("cs_1")
    expect(providerEventOf({ source: { provider: "svc_test", event_id: "evt_1" } })).toBeUndefined()
  })

  it("without any of it is shown without", () => {
    for (const nothing of [
      null,
      undefined,
      1,
      "text",
      [],
      {},
      { data: null },
      { data: { amount: "1", currency: 1 } }
    ]) {
      const found = [moneyOf(nothing), subjectOf(nothing), paymentOf(nothing), happenedAt(nothing)]
      expect(found.every((part) => part === undefined)).toBe(true)
    }
  })

  it("is filtered by what the address says, if it can be a filter", () => {
    expect(eventQuery({ type: "payment.failed", payment: "pi_1", from: "1", to: "2" })).toEqual({
      type: "payment.failed",
      payment_id: "pi_1",
      created_gte: 1,
      created_lte: 2
    })
    expect(eventQuery({ type: "x", payment: "a b", from: "-1", to: "1e9" })).toEqual({})
  })
})
