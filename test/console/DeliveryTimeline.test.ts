import { describe, expect, it } from "@effect/vitest"
import * as attemptErrors from "../../src/console/pages/deliveries/attemptErrors.ts"
import { durationText } from "../../src/console/pages/deliveries/durations.ts"
import { historyFilterNames, historyPath, historyQuery } from "../../src/console/pages/deliveries/historyFilters.ts"
import {
  automaticAttempts,
  type DeliveryDetail,
  maxAttempts,
  resendOf,
  resendWindow,
  timelineOf,
  waitsToRetry
} from "../../src/console/pages/deliveries/timeline.ts"
import { instant, localAgo, localInput, unixSeconds } from "../../src/console/pages/deliveries/times.ts"
import * as policy from "../../src/engine/attempts/Outcome.ts"
import { AttemptErrorCode } from "../../src/engine/attempts/Outcome.ts"
import { attemptTable } from "../../src/surface/docs/GuideTables.ts"

const created = "2026-09-21T14:00:00.000Z"
const at = (seconds: number): string => new Date(Date.parse(created) + seconds * 1000).toISOString()

type Attempt = DeliveryDetail["attempts"][number]

const attempt = (number: number, seconds: number, result: Partial<Attempt>): Attempt => ({
  number,
  trigger: "automatic",
  startedAt: at(seconds),
  durationMs: 500,
  httpStatus: null,
  errorCode: null,
  ...result
})

const attempts = (count: number): ReadonlyArray<Attempt> =>
  Array.from({ length: count }, (_, index) => attempt(index + 1, index, { errorCode: "timeout" }))

const delivery = (changes: Partial<DeliveryDetail>): DeliveryDetail => ({
  id: "0199c0de-0000-7000-8000-000000000024",
  endpointId: "0199c0de-0000-7000-8000-000000000021",
  eventId: `svc_evt_${"a".repeat(64)}`,
  type: "payment.succeeded",
  paymentId: "pi_1",
  amount: 1500,
  currency: "brl",
  state: "queued",
  test: false,
  attemptCount: 0,
  nextAttemptAt: null,
  createdAt: created,
  finishedAt: null,
  lastHttpStatus: null,
  lastErrorCode: null,
  attempts: [],
  event: {},
  ...changes
})

describe("a delivery's line of time", () => {
  it("shows the wait before each attempt, counted from the end of the one before, and what comes next", () => {
    const steps = timelineOf(
      delivery({
        attemptCount: 2,
        lastErrorCode: "http_error",
        lastHttpStatus: 500,
        nextAttemptAt: at(331),
        // In any order: the numbers say which was first
        attempts: [
          attempt(2, 31, { httpStatus: 500, errorCode: "http_error" }),
          attempt(1, 0, { errorCode: "timeout", durationMs: 10_000 })
        ]
      })
    )
    expect(steps.map((step) => step.kind)).toEqual(["created", "attempt", "attempt", "next"])
    expect(steps.map((step) => (step.kind === "attempt" ? [step.waited, step.outcome] : null))).toEqual([
      null,
      [0, "failed"],
      [21_000, "failed"],
      null
    ])
    expect(steps.at(-1)).toEqual({ kind: "next", at: at(331), number: 3, manual: false })
  })

  it("ends with the delivery's end", () => {
    const steps = timelineOf(
      delivery({
        state: "delivered",
        attemptCount: 1,
        finishedAt: at(1),
        attempts: [attempt(1, 0, { httpStatus: 204 })]
      })
    )
    expect(steps.at(1)).toMatchObject({ outcome: "delivered" })
    expect(steps.at(-1)).toEqual({ kind: "ended", at: at(1), state: "delivered" })
  })

  it("tells an attempt that is under way from one whose worker died", () => {
    // An attempt is counted when it begins, and listed when it has ended
    const first = delivery({ attemptCount: 1, nextAttemptAt: at(12) })
    expect(timelineOf(first).at(-1)).toEqual({ kind: "running", number: 1 })
    expect(waitsToRetry(first)).toBe(false)
    const again = delivery({
      attemptCount: 2,
      lastErrorCode: "timeout",
      attempts: [attempt(1, 0, { errorCode: "timeout" })]
    })
    expect(timelineOf(again).at(-1)).toEqual({ kind: "running", number: 2 })
    expect(waitsToRetry(again)).toBe(true)
    const died = attempt(1, 0, { durationMs: null, errorCode: "interrupted" })
    const steps = timelineOf(
      delivery({ attemptCount: 1, lastErrorCode: "interrupted", nextAttemptAt: at(30), attempts: [died] })
    )
    expect(steps.map((step) => (step.kind === "attempt" ? step.outcome : step.kind))).toEqual([
      "created",
      "unknown",
      "next"
    ])
  })

  it("calls the attempt after a definitive failure a re-send, and that after a passing one not", () => {
    const waiting = (changes: Partial<DeliveryDetail>) =>
      timelineOf(
        delivery({ attemptCount: 1, nextAttemptAt: at(5), attempts: attempts(changes.attemptCount ?? 1), ...changes })
      ).at(-1)
    expect(waiting({ lastErrorCode: "http_error", lastHttpStatus: 400 })).toMatchObject({ manual: true })
    expect(waiting({ lastErrorCode: "redirect_refused", lastHttpStatus: 301 })).toMatchObject({ manual: true })
    expect(waiting({ lastErrorCode: "http_error", lastHttpStatus: 429 })).toMatchObject({ manual: false })
    expect(waiting({ lastErrorCode: "timeout" })).toMatchObject({ manual: false })
    expect(waiting({ attemptCount: 6, lastErrorCode: "timeout" })).toMatchObject({ manual: true })
  })

  it("takes none for a re-send because workers died at those before", () => {
    const died = [1, 2, 3].map((number) => attempt(number, number, { durationMs: null, errorCode: "interrupted" }))
    const tried = [4, 5, 6].map((number) => attempt(number, number, { durationMs: null, errorCode: "timeout" }))
    const steps = timelineOf(
      delivery({ attemptCount: 6, lastErrorCode: "timeout", nextAttemptAt: at(30), attempts: [...died, ...tried] })
    )
    expect(steps.at(-1)).toMatchObject({ kind: "next", number: 7, manual: false })
  })

  it("has the service's own bounds", () => {
    expect([automaticAttempts, maxAttempts]).toEqual([policy.maxAutomaticAttempts, policy.maxAttempts])
    expect(resendWindow).toBe(72 * 3600 * 1000)
    for (const code of AttemptErrorCode.literals) {
      const last = code === "http_error" || code.startsWith("consumer_refused_") ? 400 : null
      const step = timelineOf(
        delivery({
          attemptCount: 1,
          nextAttemptAt: at(5),
          lastErrorCode: code,
          lastHttpStatus: last,
          attempts: attempts(1)
        })
      ).at(-1)
      const retried = policy.classify({ errorCode: code, httpStatus: last }) === "retry"
      expect([code, step]).toEqual([code, { kind: "next", at: at(5), number: 2, manual: !retried }])
    }
  })
})

describe("a re-send", () => {
  const failed = delivery({ state: "failed", attemptCount: 6, lastErrorCode: "timeout", finishedAt: at(60_000) })
  const now = Date.parse(at(3600))

  it("is allowed for a failed delivery, and says how often and how long", () => {
    expect(resendOf(failed, now)).toEqual({ allowed: true, attemptsLeft: 6, until: at(72 * 3600) })
  })

  it("is refused as the service would refuse it, with the reason", () => {
    expect(resendOf(delivery({}), now)).toEqual({ allowed: false, reason: "queued" })
    expect(resendOf(delivery({ state: "delivered" }), now)).toEqual({ allowed: false, reason: "delivered" })
    expect(resendOf({ ...failed, attemptCount: 12 }, now)).toEqual({ allowed: false, reason: "attempts" })
    expect(resendOf({ ...failed, lastErrorCode: "endpoint_deleted" }, now)).toEqual({
      allowed: false,
      reason: "deleted"
    })
    expect(resendOf(failed, Date.parse(at(72 * 3600)))).toEqual({ allowed: false, reason: "window" })
  })
})

describe("an attempt's error", () => {
  it("is explained for every code, as the guide explains it", () => {
    const rows = new Map(
      attemptTable()
        .split("\n")
        .map((row) => row.split("|").map((cell) => cell.trim()))
        .map(([, code = "", why = ""]) => [code.replaceAll("`", ""), why.replaceAll("`", "")])
    )
    // The pages say it in their own words where they show the status themselves, or say "destination"
    const reworded = new Set(["http_error", "endpoint_deleted", "connection_refused", "network_error", "interrupted"])
    for (const code of AttemptErrorCode.literals) {
      const { label, meaning, remedy } = attemptErrors.meaningOf(code, null)
      if (!reworded.has(code)) expect(meaning).toBe(rows.get(code))
      expect([label, meaning, remedy].every((text) => text.length > 5)).toBe(true)
    }
  })

  it("is explained by its status where that says more, and never by none", () => {
    expect(attemptErrors.meaningOf("http_error", 404)).toMatchObject({ label: "HTTP 404" })
    expect(attemptErrors.meaningOf("http_error", 599)).toMatchObject({ label: "HTTP 599" })
    expect(attemptErrors.meaningOf("http_error", 418).meaning).toContain("418")
    expect(attemptErrors.meaningOf("a_code_of_the_future", null).label).toBe("a_code_of_the_future")
    expect(attemptErrors.meaningOf("constructor", null).label).toBe("constructor")
  })

  it("is named in a few words, like an answer without error", () => {
    expect(attemptErrors.resultText(null, 204)).toBe("HTTP 204")
    expect(attemptErrors.resultText("timeout", null)).toBe("No answer in time")
    expect(attemptErrors.resultText(null, null)).toBeNull()
  })
})

describe("a length of time", () => {
  it("is as short as it can be read", () => {
    const cases: ReadonlyArray<readonly [millis: number, text: string]> = [
      [-5, "0 ms"],
      [420, "420 ms"],
      [1000, "1 s"],
      [1240, "1.2 s"],
      [9960, "10 s"],
      [31_400, "31 s"],
      [59_600, "1 min"],
      [312_000, "5 min 12 s"],
      [1_800_000, "30 min"],
      [3_599_900, "1 h"],
      [10_920_000, "3 h 2 min"],
      [86_399_900, "1 d"],
      [187_200_000, "2 d 4 h"]
    ]
    expect(cases.map(([millis]) => durationText(millis))).toEqual(cases.map(([, text]) => text))
  })
})

describe("the history's filters", () => {
  it("pass from the address to the API, and what can't be a filter is left out", () => {
    const full = {
      destination: "0199c0de-0000-7000-8000-000000000021",
      state: "failed",
      type: "payment.succeeded",
      event: `svc_evt_${"0".repeat(64)}`,
      from: "1760000000",
      to: "1760003600"
    }
    expect(historyQuery(full)).toEqual({
      endpoint_id: full.destination,
      state: "failed",
      type: "payment.succeeded",
      event_id: full.event,
      created_gte: 1_760_000_000,
      created_lte: 1_760_003_600
    })
    const nonsense = Object.fromEntries(historyFilterNames.map((name) => [name, "<script>"]))
    expect(historyQuery({ ...full, ...nonsense })).toEqual({})
    expect(historyQuery({ ...full, ...nonsense, type: "toString" })).toEqual({})
  })

  it("make an address that says them again", () => {
    expect(historyPath({})).toBe("/deliveries")
    expect(historyPath({ destination: "a&b", state: "failed", type: "" })).toBe(
      "/deliveries?destination=a%26b&state=failed"
    )
  })

  it("have times of the reader's zone in the form, and of every zone in the address", () => {
    const seconds = unixSeconds("2026-03-04T05:06")
    expect(seconds).toBe(String(new Date(2026, 2, 4, 5, 6).getTime() / 1000))
    expect(localInput(seconds)).toBe("2026-03-04T05:06")
    expect(localInput(unixSeconds("2026-03-04T05:06:07"))).toBe("2026-03-04T05:06:07")
    expect(instant("2026-03-04T05:06")).toBe(new Date(2026, 2, 4, 5, 6).toISOString())
    expect(localAgo(3_600_000, new Date(2026, 2, 4, 5, 6, 7).getTime())).toBe("2026-03-04T04:06")
    for (const wrong of ["", "tomorrow", "2026-13-01T00:00"]) {
      expect([unixSeconds(wrong), instant(wrong)]).toEqual(["", null])
    }
    expect([localInput(""), localInput("-1"), localInput("abc"), localInput("99999999999999")]).toEqual([
      "",
      "",
      "",
      ""
    ])
  })
})
