import { describe, expect, it } from "@effect/vitest"
import { FastCheck as fc, Schema } from "effect"
import { EventType, eventData } from "../../src/events/Catalog.ts"
import { Envelope, encodeEnvelope } from "../../src/events/Envelope.ts"
import { syntheticEvent } from "../../src/events/Synthetic.ts"

const organizationId = "0199c0de-0000-7000-8000-000000000001"

const inputs = fc.record({
  organizationId: fc.constant(organizationId),
  testId: fc.uuid({ version: 7 }),
  createdAt: fc.date({ min: new Date(0), max: new Date("9999-12-31T23:59:59.999Z"), noInvalidDate: true }),
  type: fc.constantFrom(...EventType.literals)
})

describe("a synthetic event", () => {
  it.each(EventType.literals)("of %s fits its schema, in the envelope and in its data", (type) => {
    fc.assert(
      fc.property(inputs, (input) => {
        const event: unknown = JSON.parse(encodeEnvelope(syntheticEvent({ ...input, type })))
        const decoded = Schema.decodeUnknownSync(Envelope)(event, { onExcessProperty: "error" })
        expect(decoded).toEqual(event)
        expect(Object.keys(decoded.data).toSorted()).toEqual(Object.keys(eventData[type].fields).toSorted())
      }),
      { numRuns: 20 }
    )
  })

  it("always says that it is one: test, sandbox, the source svc_test and an id of its own", () => {
    fc.assert(
      fc.property(inputs, (input) => {
        expect(syntheticEvent(input)).toMatchObject({
          id: `svc_test_evt_${input.testId}`,
          type: input.type,
          version: 1,
          created_at: input.createdAt.toISOString(),
          livemode: false,
          organization_id: organizationId,
          source: { provider: "svc_test", event_id: `svc_test_evt_${input.testId}` },
          test: true
        })
      })
    )
  })

  it("names objects that exist nowhere, such as pi_test_…, others in each test", () => {
    fc.assert(
      fc.property(inputs, fc.uuid({ version: 7 }), (input, otherId) => {
        fc.pre(otherId !== input.testId)
        const idsOf = (testId: string) =>
          Object.entries(syntheticEvent({ ...input, testId }).data)
            .filter(([key]) => /_ids?$/.test(key))
            .flatMap(([, value]: [string, unknown]) => (Array.isArray(value) ? value : [value]))
            .filter((value) => value !== null)
        const ids = idsOf(input.testId)
        expect(ids.length).toBeGreaterThan(0)
        for (const id of ids) expect(id).toMatch(/^(pi|ch|dp|cs|price|prod|sub|cus|in|po|acct)_test_[0-9a-f]{32}$/)
        expect(idsOf(otherId).filter((id) => ids.includes(id))).toEqual([])
      })
    )
    const { data } = syntheticEvent({
      organizationId,
      testId: organizationId,
      createdAt: new Date(0),
      type: "payment.succeeded"
    })
    expect(data).toMatchObject({ payment_id: expect.stringMatching(/^pi_test_/) })
  })
})
