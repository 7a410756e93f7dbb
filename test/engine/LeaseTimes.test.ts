import { describe, expect, it } from "@effect/vitest"
import { Duration, FastCheck } from "effect"
import { leaseTimes } from "../../src/engine/worker/Endpoints.ts"

const day = 86_400_000

describe("lease times", () => {
  it.prop(
    "let an attempt that begins as late as it may, and ends as late as its time-out may, end within its lease",
    // What DELIVERY_TIMEOUT and DELIVERY_LEASE_MARGIN can be
    { timeout: FastCheck.integer({ min: 100, max: day }), margin: FastCheck.integer({ min: 1000, max: day }) },
    ({ margin, timeout }) => {
      const times = leaseTimes(Duration.millis(timeout), Duration.millis(margin))
      const [lease, startWithin, spread] = [times.lease, times.startWithin, times.timeoutSpread].map(Duration.toMillis)
      expect((startWithin ?? 0) + timeout + (spread ?? 0)).toBeLessThanOrEqual((lease ?? 0) + 1e-6)
      expect(startWithin).toBeGreaterThanOrEqual(margin / 2)
      expect(spread).toBeLessThanOrEqual(timeout / 10)
    }
  )
})
