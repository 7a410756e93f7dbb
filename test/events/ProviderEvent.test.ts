import { describe, expect, it } from "@effect/vitest"
import { Either, FastCheck, Schema } from "effect"
import { ProviderEvent, parseProviderEvent } from "../../src/events/stripe/ProviderEvent.ts"

const decode = Schema.decodeUnknownEither(ProviderEvent, { errors: "all" })

/** What may stand in a field: what should, what almost should, and anything else that JSON has. */
const oddities = FastCheck.oneof(
  FastCheck.constantFrom<unknown>("", "a b", "evt_\n", "x".repeat(255), "x".repeat(256), "é", "event", "v2.core.event"),
  FastCheck.constantFrom<unknown>(-1, 0, -0, 1.5, 253_402_300_799, 253_402_300_800, 2 ** 53, 1e300),
  FastCheck.constantFrom<unknown>(null, true, false, [], {}, [{}], { object: null }, { object: [] }, { object: {} }),
  FastCheck.jsonValue()
)

const usual: Readonly<Record<string, unknown>> = {
  id: "evt_1",
  object: "event",
  api_version: null,
  type: "payment_intent.succeeded",
  created: 1_760_000_000,
  livemode: false,
  account: "acct_1",
  data: { object: { id: "pi_1" }, previous_attributes: {} }
}

/** A usual event of which some fields are missing or have another value. */
const almost = FastCheck.dictionary(
  FastCheck.constantFrom(...Object.keys(usual), "further"),
  FastCheck.oneof(FastCheck.constant(undefined), oddities),
  { maxKeys: 3 }
).map((changes): unknown => JSON.parse(JSON.stringify({ ...usual, ...changes })))

describe("reading a snapshot event", () => {
  it("gives what its schema gives, and refuses what that refuses", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.oneof(almost, oddities), (input) => {
        const expected = decode(input)
        const read = parseProviderEvent(input)
        expect(Either.isRight(read), JSON.stringify(input)).toBe(Either.isRight(expected))
        if (Either.isRight(read)) expect(read.right).toEqual(Either.getOrThrow(expected))
      }),
      { numRuns: 5000 }
    )
  })
})
