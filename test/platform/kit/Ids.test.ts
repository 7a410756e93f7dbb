import { Effect, FastCheck } from "effect"
import { eventKey } from "../../../src/destinations/publishing/Publication.ts"
import { deliveryId, EndpointId, EventReplayId, newId, replayedDeliveryId } from "../../../src/platform/kit/Ids.ts"
import { describe, expect, it } from "../../harness/Tests.ts"

const uuid7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

const endpointIds = FastCheck.uuid().map((id) => EndpointId.make(id))
const eventIds = FastCheck.stringMatching(/^[0-9a-f]{64}$/).map((hash) => `svc_evt_${hash}`)
const times = FastCheck.date({ min: new Date(0), max: new Date("2200-01-01"), noInvalidDate: true })

const millisOf = (uuid: string) => Number.parseInt(uuid.replaceAll("-", "").slice(0, 12), 16)

describe("a delivery's id", () => {
  it("is the same for the same event and endpoint, and a UUIDv7 of the receipt's time", () => {
    FastCheck.assert(
      FastCheck.property(eventIds, endpointIds, times, (eventId, endpointId, receivedAt) => {
        const id = deliveryId({ eventId, endpointId, receivedAt })
        expect(id).toMatch(uuid7)
        expect(millisOf(id)).toBe(receivedAt.getTime())
        expect(deliveryId({ eventId, endpointId, receivedAt })).toBe(id)
      })
    )
  })

  it("is that of every version, so that a repeated event is never delivered twice", () => {
    expect(
      deliveryId({
        eventId: "svc_evt_1",
        endpointId: EndpointId.make("0199c0de-0000-7000-8000-000000000001"),
        receivedAt: new Date("2026-01-02T03:04:05.678Z")
      })
    ).toBe("019b7ca9-8f2e-72c4-bb4c-28deb4527d59")
  })

  it("differs for every event and every endpoint of one instant", () => {
    const receivedAt = new Date("2026-01-01T00:00:00Z")
    const many = { minLength: 2, maxLength: 30 }
    FastCheck.assert(
      FastCheck.property(
        FastCheck.uniqueArray(eventIds, many),
        FastCheck.uniqueArray(endpointIds, many),
        (events, endpoints) => {
          const ids = events.flatMap((eventId) =>
            endpoints.map((endpointId) => deliveryId({ eventId, endpointId, receivedAt }))
          )
          expect(new Set(ids).size).toBe(events.length * endpoints.length)
        }
      )
    )
  })

  it("spreads over the whole of its random part", () => {
    const receivedAt = new Date("2026-01-01T00:00:00Z")
    const endpointId = EndpointId.make("01a1fcfb-855f-758a-8a83-c113f9e1051b")
    const ids = Array.from({ length: 2000 }, (_, n) => deliveryId({ eventId: `svc_evt_${n}`, endpointId, receivedAt }))
    const bits = ids.map((id) => BigInt(`0x${id.replaceAll("-", "")}`))
    const fixed = new Set([48, 49, 50, 51, 64, 65])
    for (let bit = 48; bit < 128; bit++) {
      const ones = bits.filter((value) => ((value >> BigInt(127 - bit)) & 1n) === 1n).length
      if (!fixed.has(bit)) {
        expect(ones, `bit ${bit}`).toBeGreaterThan(700)
        expect(ones, `bit ${bit}`).toBeLessThan(1300)
      }
    }
  })
})

describe("the id of a replay's delivery", () => {
  const replayId = EventReplayId.make("01a1fcfb-855f-758a-8a83-c113f9e1051b")
  const of = (eventKey: string, endpointId = EndpointId.make("01a1fcfb-855f-758a-8a83-c113f9e1051c")) =>
    replayedDeliveryId({ replayId, eventKey, endpointId })

  it("has the replay's time, the order of the events' seconds, and is the same only for the same three", () => {
    const keys = Array.from({ length: 500 }, (_, n) => eventKey(`svc_evt_${n}`, new Date(1_790_000_000_000 + n * 1000)))
    const ids = keys.map((key) => of(key))
    expect(ids.every((id) => uuid7.test(id) && millisOf(id) === millisOf(replayId))).toBe(true)
    expect(ids.toSorted()).toEqual(ids)
    const key = keys[0] ?? ""
    expect(of(key)).toBe(ids[0])
    expect(of(eventKey("svc_evt_other", new Date(1_790_000_000_000)))).not.toBe(of(key))
    expect(of(key, EndpointId.make("01a1fcfb-855f-758a-8a83-c113f9e1051d"))).not.toBe(of(key))
    const endpointId = EndpointId.make("01a1fcfb-855f-758a-8a83-c113f9e1051c")
    const another = EventReplayId.make("01a1fcfb-855f-758a-8a83-c113f9e1051e")
    expect(replayedDeliveryId({ replayId: another, eventKey: key, endpointId })).not.toBe(of(key))
  })
})

describe("a new id", () => {
  it.effect("is a UUIDv7 above those before it", function* () {
    const ids = yield* Effect.replicateEffect(newId, 1000)
    expect(ids.every((id) => uuid7.test(id))).toBe(true)
    expect([...ids].toSorted()).toEqual([...ids])
    expect(new Set(ids).size).toBe(1000)
  })
})
