import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, FastCheck, Option, Random } from "effect"
import * as RetryPolicy from "../../src/engine/attempts/Outcome.ts"
import { AttemptErrorCode } from "../../src/engine/attempts/Outcome.ts"

const seconds = [0, 30, 5 * 60, 30 * 60, 3 * 3600, 12 * 3600]

const delayMillis = (input: RetryPolicy.AttemptsSoFar, random: Random.Random): number | null =>
  Effect.runSync(
    RetryPolicy.nextDelay(input).pipe(
      Effect.map(Option.match({ onNone: () => null, onSome: Duration.toMillis })),
      Effect.withRandom(random)
    )
  )

/** The delay drawn where the jitter is at a given point of its range: 0 the shortest, 1 the longest. */
const at = (point: number) => Random.fixed([point])
const middle = at(0.5)

describe("nextDelay", () => {
  it("jitters every delay uniformly within 20 % to either side, in whole milliseconds", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.integer({ min: 1, max: 5 }), FastCheck.integer(), (attemptNumber, seed) => {
        const nominal = (seconds[attemptNumber] ?? Number.NaN) * 1000
        const delay = delayMillis({ attemptNumber }, Random.make(seed)) ?? Number.NaN
        expect(Number.isInteger(delay)).toBe(true)
        expect(delay).toBeGreaterThanOrEqual(nominal * 0.8)
        expect(delay).toBeLessThanOrEqual(nominal * 1.2)
      })
    )
    const factors = Array.from(
      { length: 2000 },
      (_, seed) => (delayMillis({ attemptNumber: 2 }, Random.make(seed)) ?? 0) / 300_000
    )
    for (const [from, to] of [
      [0.8, 0.9],
      [0.9, 1],
      [1, 1.1],
      [1.1, 1.2]
    ] as const) {
      const share = factors.filter((factor) => factor >= from && factor < to).length / factors.length
      expect(share).toBeGreaterThan(0.2)
      expect(share).toBeLessThan(0.3)
    }
  })

  it("is never shortened by Retry-After", () => {
    expect(delayMillis({ attemptNumber: 1, retryAfter: Duration.zero }, middle)).toBe(30_000)
    expect(delayMillis({ attemptNumber: 1, retryAfter: null }, middle)).toBe(30_000)
    FastCheck.assert(
      FastCheck.property(
        FastCheck.integer({ min: 0, max: 5 }),
        FastCheck.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
        FastCheck.nat(200_000),
        (attemptNumber, point, wanted) => {
          const without = delayMillis({ attemptNumber }, at(point)) ?? Number.NaN
          const withIt = delayMillis({ attemptNumber, retryAfter: Duration.seconds(wanted) }, at(point)) ?? Number.NaN
          const nextStep = (seconds[attemptNumber + 1] ?? 12 * 3600) * 1000
          expect(withIt).toBe(Math.max(without, Math.min(wanted * 1000, nextStep)))
        }
      )
    )
  })

  it("leaves all automatic attempts inside the window, however long the consumer asks to wait", () => {
    const longest = seconds.map(
      (_, attemptNumber) => delayMillis({ attemptNumber, retryAfter: Duration.infinity }, at(1)) ?? Number.NaN
    )
    const attempts = 6 * 10_000
    expect(longest.reduce((sum, delay) => sum + delay, attempts)).toBeLessThan(
      Duration.toMillis(RetryPolicy.deliveryWindow)
    )
  })
})

describe("classify", () => {
  it("takes 2xx as delivered, 408, 429 and 5xx as to be retried, and every other status as definitive", () => {
    for (let httpStatus = 100; httpStatus < 1000; httpStatus++) {
      const success = httpStatus >= 200 && httpStatus < 300
      const redirect = httpStatus >= 300 && httpStatus < 400
      const errorCode = success ? null : redirect ? "redirect_refused" : "http_error"
      const retried = httpStatus === 408 || httpStatus === 429 || (httpStatus >= 500 && httpStatus < 600)
      expect(RetryPolicy.classify({ httpStatus, errorCode })).toBe(success ? "delivered" : retried ? "retry" : "failed")
    }
  })

  it("retries time-outs, network failures and interrupted attempts, and nothing else", () => {
    const codes = AttemptErrorCode.literals
    expect(codes.filter((errorCode) => RetryPolicy.classify({ httpStatus: null, errorCode }) === "retry")).toEqual([
      "timeout",
      "connection_refused",
      "connection_reset",
      "dns_failure",
      "tls_failure",
      "network_error",
      "interrupted"
    ])
    expect(codes.filter((errorCode) => RetryPolicy.classify({ httpStatus: null, errorCode }) === "delivered")).toEqual(
      []
    )
  })

  it("goes by the status where a consumer says why it refused", () => {
    const refusals = AttemptErrorCode.literals.filter((code) => code.startsWith("consumer_refused_"))
    expect(refusals).toHaveLength(5)
    for (const errorCode of refusals) {
      expect(RetryPolicy.classify({ httpStatus: 400, errorCode })).toBe("failed")
      expect(RetryPolicy.classify({ httpStatus: 429, errorCode })).toBe("retry")
    }
  })

  it("does not take a 2xx whose exchange broke off for a delivery", () => {
    expect(RetryPolicy.classify({ httpStatus: 200, errorCode: "timeout" })).toBe("retry")
  })

  it("does not take an outcome without status or error for a delivery", () => {
    expect(RetryPolicy.classify({ httpStatus: null, errorCode: null })).toBe("failed")
  })
})

describe("parseRetryAfter", () => {
  const now = new Date("2025-11-06T08:49:37.000Z")
  const millis = (header: string) => {
    const parsed = RetryPolicy.parseRetryAfter(header, now)
    return parsed === null ? null : Duration.toMillis(parsed)
  }

  it.each([
    ["0", 0],
    ["120", 120_000],
    [" 7 ", 7000],
    ["007", 7000],
    ["9".repeat(400), Number.POSITIVE_INFINITY],
    ["Thu, 06 Nov 2025 08:50:37 GMT", 60_000],
    ["Thursday, 06-Nov-25 08:50:37 GMT", 60_000],
    ["Thu Nov  6 08:50:37 2025", 60_000],
    ["Sun, 06 Nov 1994 08:49:37 GMT", 0],
    ["Sunday, 06-Nov-94 08:49:37 GMT", 0],
    ["Sun Nov  6 08:49:37 1994", 0]
  ])("reads %s as seconds or an HTTP date, and one in the past as no wait: %d ms", (header, expected) => {
    expect(millis(header)).toBe(expected)
  })

  it("reads back every date as JavaScript prints it", () => {
    FastCheck.assert(
      FastCheck.property(
        FastCheck.date({ min: now, max: new Date("9999-12-31T23:59:59Z"), noInvalidDate: true }),
        (date) => {
          date.setUTCMilliseconds(0)
          expect(millis(date.toUTCString())).toBe(Math.max(0, date.getTime() - now.getTime()))
        }
      )
    )
  })

  it.each([
    "",
    "-1",
    "+1",
    "1.5",
    "1e3",
    "0x10",
    "soon",
    "2025-11-06T08:50:37Z",
    "Thu, 06 Nov 2025 08:50:37",
    "Thu, 06 Nov 2025 08:50:37 +0100",
    "Thu, 6 Nov 2025 08:50:37 GMT",
    "Thu, 31 Feb 2026 08:50:37 GMT",
    "Thu, 00 Nov 2025 08:50:37 GMT",
    "Thu, 06 Foo 2025 08:50:37 GMT",
    "Thu, 06 Nov 2025 24:00:00 GMT",
    "Thu, 06 Nov 2025 25:00:00 GMT",
    "120, 60",
    "Thu, 06 Nov 2025 08:50:37 GMT, 5"
  ])("takes %j for no wait asked", (header) => {
    expect(millis(header)).toBeNull()
  })

  it("takes arbitrary text without throwing", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.fullUnicodeString(), (text) => {
        expect(() => RetryPolicy.parseRetryAfter(text, now)).not.toThrow()
      })
    )
  })
})
