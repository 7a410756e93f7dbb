import { afterEach, vi } from "@effect/vitest"
import { Effect } from "effect"
import { ClockComparisons, ClockSkew, compareClock } from "../../../src/platform/telemetry/ClockSkew.ts"
import { expect, it } from "../../harness/Tests.ts"

afterEach(() => {
  vi.restoreAllMocks()
})

it.effect(
  "the provider's clock decides about this process's, and a clock that was set right is right at once",
  function* () {
    // Of its own: other tests of this process hear of the provider's clock
    const clock = new ClockComparisons()
    const compare = (...args: Parameters<typeof compareClock>) =>
      Effect.provideService(compareClock(...args), ClockSkew, clock)
    const { now } = Date
    yield* compare("database", now() - 3_600_000)
    expect(clock.unfit).toMatch(/^This process's clock is 3[56]\d\d seconds ahead of the database's/)
    yield* compare("provider", now() - 200_000)
    expect(clock.unfit).toBeUndefined()
    yield* compare("provider", now() + 600_000)
    expect(clock.unfit).toMatch(/(599|600) seconds behind the provider's/)
    vi.spyOn(Date, "now").mockImplementation(() => now() + 600_000)
    expect(clock.unfit).toBeUndefined()
  }
)
