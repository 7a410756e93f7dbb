import { describe, expect, it, vi } from "@effect/vitest"
import { Option } from "effect"
import { spanOfTraceparent } from "../../../src/platform/telemetry/Spans.ts"

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736"
const spanId = "00f067aa0ba902b7"

describe("a traceparent", () => {
  it.each([
    ["00", false],
    ["01", true],
    ["02", false],
    ["ff", true]
  ])("with the flags %s names its span, sampled: %s", (flags, sampled) => {
    expect(Option.getOrUndefined(spanOfTraceparent(`00-${traceId}-${spanId}-${flags}`))).toMatchObject({
      traceId,
      spanId,
      sampled
    })
  })

  const malformed: ReadonlyArray<readonly [string, string | null | undefined]> = [
    ["is absent", undefined],
    ["is null", null],
    ["is empty", ""],
    ["has no flags", `00-${traceId}-${spanId}`],
    ["has flags that are no number", `00-${traceId}-${spanId}-zz`],
    ["has a trace of zeros", `00-${"0".repeat(32)}-${spanId}-01`],
    ["has a span of zeros", `00-${traceId}-${"0".repeat(16)}-01`],
    ["has capitals", `00-${traceId.toUpperCase()}-${spanId}-01`],
    ["has a version that is none", `ff-${traceId}-${spanId}-01`],
    ["has more parts", `00-${traceId}-${spanId}-01-more`],
    ["is given twice", `00-${traceId}-${spanId}-01, 00-${traceId}-${spanId}-01`],
    ["has a line break", `00-${traceId}-${spanId}-01\n`],
    ["is the b3 format's", `${traceId}-${spanId}-1`]
  ]
  it.each(malformed)("that %s is ignored", (_, text) => {
    expect(Option.isNone(spanOfTraceparent(text))).toBe(true)
  })

  it("that is huge is ignored without being searched", () => {
    const search = vi.spyOn(RegExp.prototype, "exec")
    const found = spanOfTraceparent(`00-${"-0".repeat(4_000_000)}`)
    const searches = search.mock.calls.length
    search.mockRestore()
    expect([Option.isNone(found), searches]).toEqual([true, 0])
  })
})
