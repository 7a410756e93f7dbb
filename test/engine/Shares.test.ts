import { describe, expect, it } from "@effect/vitest"
import { EndpointPace, placesAside, type SlowEndpoint, slowRooms, usualMost } from "../../src/engine/worker/Limits.ts"
import { EndpointId, OrganizationId } from "../../src/platform/kit/Ids.ts"

const endpoint = () => EndpointId.make(crypto.randomUUID())
const organization = () => OrganizationId.make(crypto.randomUUID())
const caps = { concurrency: 256, concurrencyPerEndpoint: 16 }

describe("the pace of an endpoint", () => {
  it("begins with few attempts at once, and every quick answer allows one more, up to the cap", () => {
    const pace = new EndpointPace({ cap: 16, first: 4 })
    const id = endpoint()
    expect(pace.allowed(id)).toBe(4)
    for (let answers = 0; answers < 100; answers += 1) expect(pace.noteQuick(id, 5)).toBe(false)
    expect(pace.allowed(id)).toBe(16)
  })

  it("allows more than the usual number only while answers are prompt, whatever the cap", () => {
    const pace = new EndpointPace({ cap: 64, first: 4 })
    const [prompt, quick] = [endpoint(), endpoint()]
    for (let answers = 0; answers < 100; answers += 1) {
      pace.noteQuick(prompt, 100)
      pace.noteQuick(quick, 101)
    }
    expect([pace.allowed(prompt), pace.allowed(quick)]).toEqual([64, usualMost])
    // One that begins to take its time loses them again, as fast as it got them
    for (let answers = 0; answers < 64 - usualMost; answers += 1) pace.noteQuick(prompt, 200)
    expect(pace.allowed(prompt)).toBe(usualMost)
    pace.noteQuick(prompt, 200)
    expect(pace.allowed(prompt)).toBe(usualMost)
  })

  it("begins again with one where the endpoint was slow: quick and slow by turns never gives it much", () => {
    const pace = new EndpointPace({ cap: 16, first: 4 })
    const id = endpoint()
    for (let turn = 0; turn < 100; turn += 1) {
      pace.noteSlow(id, organization(), turn)
      expect(pace.isSlow(id)).toBe(true)
      expect(pace.noteQuick(id, 5)).toBe(true)
      expect(pace.isSlow(id)).toBe(false)
      expect(pace.allowed(id)).toBe(1)
    }
  })

  it("is kept of a bounded number of endpoints", () => {
    const pace = new EndpointPace({ cap: 16, first: 4 })
    for (let number = 0; number < 12_000; number += 1) pace.noteSlow(endpoint(), organization(), number)
    expect(pace.slow.size).toBe(5000)
  })
})

describe("the shares of the places", () => {
  it("give a lone slow endpoint its cap", () => {
    const id = endpoint()
    const organizationId = organization()
    const slow = new Map([[id, { organizationId, hangs: true }]])
    expect(slowRooms(slow, [], 0, caps)).toMatchObject([{ endpointId: id, room: 16 }])
    expect(slowRooms(slow, [[id, { held: 12, organizationId }]], 12, caps)).toMatchObject([{ room: 4 }])
    expect(slowRooms(slow, [[id, { held: 16, organizationId }]], 16, caps)).toEqual([])
  })

  /** Hands out rooms, and has all that is handed out hang, until nobody gets more. */
  const fill = (slow: ReadonlyMap<EndpointId, SlowEndpoint>) => {
    const held = new Map<EndpointId, number>()
    for (let round = 0; round < 1000; round += 1) {
      const lanes = Array.from(held, ([id, count]) => {
        const organizationId = slow.get(id)?.organizationId ?? organization()
        return [id, { held: count, organizationId }] as const
      })
      const asked = slowRooms(slow, lanes, sum(held.values()), caps)
      if (asked.length === 0) return held
      for (const { endpointId, room } of asked) held.set(endpointId, (held.get(endpointId) ?? 0) + room)
    }
    throw new Error("Never full")
  }
  const sum = (counts: Iterable<number>) => [...counts].reduce((all, one) => all + one, 0)

  it("never give one organization's slow endpoints more than a fifth, and never all of the places", () => {
    const greedy = organization()
    const one = new Map(Array.from({ length: 500 }, () => [endpoint(), { organizationId: greedy, hangs: true }]))
    expect(sum(fill(one).values())).toBeLessThanOrEqual(placesAside / 2 / 4)
    const many = new Map(
      Array.from({ length: 5000 }, () => [endpoint(), { organizationId: organization(), hangs: true }])
    )
    expect(sum(fill(many).values())).toBeLessThanOrEqual(placesAside / 2)
  })

  it("leave room for another organization's beside one with very many", () => {
    const greedy = organization()
    const slow = new Map(Array.from({ length: 500 }, () => [endpoint(), { organizationId: greedy, hangs: true }]))
    const held = fill(slow)
    const other = endpoint()
    const lanes = Array.from(held, ([id, count]) => [id, { held: count, organizationId: greedy }] as const)
    const all = new Map([...slow, [other, { organizationId: organization(), hangs: true }]])
    expect(slowRooms(all, lanes, sum(held.values()), caps)).toMatchObject([{ endpointId: other, room: 2 }])
  })

  it("spread what began together at many that hang over their time-out, and still use most places", () => {
    const steps = 50
    const slow = new Map(
      Array.from({ length: 500 }, () => [endpoint(), { organizationId: organization(), hangs: true }] as const)
    )
    const pace = new EndpointPace({ cap: 16, first: 4 })
    for (const [id, { organizationId }] of slow) {
      pace.noteSlow(id, organizationId, 0)
      pace.noteEnded(id, 10_000, true)
    }
    /** The endpoints of the attempts that began in each of the claims of one time-out, and so end in it. */
    const begun: Array<ReadonlyArray<EndpointId>> = Array.from({ length: steps }, (_, step) =>
      step === 0 ? [...slow.keys(), ...slow.keys()] : []
    )
    for (let round = 0; round < 3 * steps; round += 1) {
      begun.shift()
      const held = new Map<EndpointId, number>()
      for (const id of begun.flat()) held.set(id, (held.get(id) ?? 0) + 1)
      const lanes = Array.from(slow, ([id, { organizationId }]) => {
        return [id, { held: held.get(id) ?? 0, organizationId }] as const
      })
      const asked = slowRooms(pace.slow, lanes, begun.flat().length, caps)
      pace.noteAsked(asked.map(({ endpointId }) => endpointId))
      begun.push(asked.flatMap(({ endpointId, room }) => Array.from({ length: room }, () => endpointId)))
    }
    const inAll = begun.flat().length
    expect(inAll).toBeGreaterThan(placesAside / 4)
    expect(Math.max(...begun.map(({ length }) => length))).toBeLessThan((3 * inAll) / steps)
    // Everyone has its turn
    expect(new Set(begun.flat()).size).toBeGreaterThan(300)
  })

  it("give one that answers, if late, an attempt however many hang, and before those", () => {
    const hanging = new Map(
      Array.from({ length: 2000 }, () => [endpoint(), { organizationId: organization(), hangs: true }])
    )
    const held = fill(hanging)
    const late = endpoint()
    const lanes = Array.from(held, ([id, count]) => [id, { held: count, organizationId: organization() }] as const)
    const all = new Map([...hanging, [late, { organizationId: organization(), hangs: false }]])
    expect(slowRooms(all, lanes, sum(held.values()), caps)).toMatchObject([{ endpointId: late, room: 1 }])
    expect(slowRooms(all, [], 0, caps)[0]).toMatchObject({ endpointId: late, room: 16 })
  })
})
