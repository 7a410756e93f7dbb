import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Either, FastCheck, Schema } from "effect"
import { EventType } from "../../src/events/Catalog.ts"
import {
  Envelope,
  encodeEnvelope,
  eventId,
  makeEnvelope,
  makeTestEnvelope,
  maxUnixSeconds
} from "../../src/events/Envelope.ts"

const organizationId = "0199c0de-0000-7000-8000-000000000001"
const data = { payment_id: "pi_1", amount_received: 1500, currency: "brl" }

const envelope = makeEnvelope({
  provider: "stripe",
  environment: "sandbox",
  organizationId,
  providerEventId: "evt_1Q0",
  created: 1_760_000_000,
  type: "payment.succeeded",
  data
})

const testEnvelope = makeTestEnvelope({
  organizationId,
  testId: "0199c0de-0000-7000-8000-00000000000a",
  createdAt: new Date("2025-10-09T08:53:20.123Z"),
  type: "payment.succeeded",
  data: { ...data, payment_id: "pi_test_1" }
})

const accepts = (value: unknown): boolean =>
  Either.isRight(Schema.decodeUnknownEither(Envelope, { onExcessProperty: "error" })(value))

describe("eventId", () => {
  it("is the same for the same identity and another for every other", () => {
    const identity = FastCheck.record({
      provider: FastCheck.constantFrom("stripe", "pixbank"),
      environment: FastCheck.constantFrom("sandbox" as const, "production" as const),
      providerEventId: FastCheck.stringMatching(/^evt_[A-Za-z0-9_]{1,8}$/),
      type: FastCheck.constantFrom(...EventType.literals)
    })
    FastCheck.assert(
      FastCheck.property(identity, identity, (one, other) => {
        expect(eventId({ ...one })).toBe(eventId(one))
        const same =
          one.provider === other.provider &&
          one.environment === other.environment &&
          one.providerEventId === other.providerEventId &&
          one.type === other.type
        expect(eventId(one) === eventId(other)).toBe(same)
        const ids = EventType.literals.flatMap((type) =>
          (["sandbox", "production"] as const).map((environment) => eventId({ ...one, environment, type }))
        )
        expect(new Set(ids).size).toBe(38)
      })
    )
  })
})

describe("makeEnvelope", () => {
  it("gives a valid created_at for every time that it takes", () => {
    const input = {
      provider: "stripe",
      organizationId,
      providerEventId: "evt_1",
      type: "payment.succeeded",
      data
    } as const
    for (const created of [0, 1, 4_102_444_800, maxUnixSeconds]) {
      const made = makeEnvelope({ ...input, environment: "sandbox", created })
      expect(accepts(made)).toBe(true)
      expect(Date.parse(made.created_at)).toBe(created * 1000)
    }
  })
})

describe("encodeEnvelope", () => {
  it("gives compact JSON with the contract's order of keys and no `test` on real events", () => {
    // The SHA-256 of "sandbox\nstripe\nevt_1Q0\npayment.succeeded", computed apart from this code
    const hash = "ab79b0f20653f4eceae0da461178bf85071a0d2f2f6b8f753a33ea62f1ce62f2"
    expect(encodeEnvelope(envelope)).toBe(
      `{"id":"svc_evt_${hash}","type":"payment.succeeded","version":1,"created_at":"2025-10-09T08:53:20.000Z",` +
        `"livemode":false,"organization_id":"${organizationId}","source":{"provider":"stripe","event_id":"evt_1Q0"},` +
        `"data":{"payment_id":"pi_1","amount_received":1500,"currency":"brl"}}`
    )
  })

  it("puts `test` last on synthetic events", () => {
    expect(encodeEnvelope(testEnvelope)).toMatch(/"data":\{[^}]*\},"test":true\}$/)
  })

  it("does not depend on the order in which the envelope was put together, nor pass on what is no part of it", () => {
    const reversed = Object.fromEntries(Object.entries({ ...envelope, metadata: { a: 1 } }).reverse())
    const read = Schema.decodeUnknownSync(Envelope)(reversed)
    expect(encodeEnvelope(read)).toBe(encodeEnvelope(envelope))
    const widened = { ...envelope, metadata: { a: 1 } }
    expect(encodeEnvelope(widened)).toBe(encodeEnvelope(envelope))
  })

  it("is read back as the same envelope, for every type", () => {
    FastCheck.assert(
      FastCheck.property(Arbitrary.make(Envelope), (any) => {
        const text = encodeEnvelope(any)
        // JSON knows no negative zero
        expect(Schema.decodeUnknownSync(Schema.parseJson(Envelope))(text)).toEqual(JSON.parse(JSON.stringify(any)))
      })
    )
  })
})

describe("Envelope", () => {
  it.each([
    ["another version", { version: 2 }],
    ["an unknown type", { type: "payment.created" }],
    ["the data of another type", { type: "payment.refunded" }],
    ["an id that is none", { id: "evt_1" }],
    ["a hash that is too short", { id: "svc_evt_00" }],
    ["a time without milliseconds", { created_at: "2025-10-09T08:53:20Z" }],
    ["a time with an offset", { created_at: "2025-10-09T08:53:20.000+00:00" }],
    ["an organization that is no UUID", { organization_id: "acme" }],
    ["a provider's name in another form", { source: { provider: "Pix Bank", event_id: "evt_1" } }],
    ["test: false", { test: false }],
    ["a further field", { metadata: {} }],
    ["a further field of data", { data: { ...data, metadata: {} } }],
    ["a fractional amount", { data: { ...data, amount_received: 1.5 } }]
  ])("refuses %s", (_, change) => {
    expect(accepts({ ...envelope, ...change })).toBe(false)
  })
})
