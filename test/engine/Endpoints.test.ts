import { describe, expect, it } from "@effect/vitest"
import { queueStart } from "../../src/engine/queue/Claim.ts"
import { type Endpoint, Endpoints, placesAside, usualMost } from "../../src/engine/worker/Endpoints.ts"
import { EndpointId, OrganizationId } from "../../src/platform/kit/Ids.ts"

const organization = () => OrganizationId.make(crypto.randomUUID())
const one = (endpoints: Endpoints, organizationId = organization()) =>
  endpoints.of({ endpointId: EndpointId.make(crypto.randomUUID()), organizationId })
const withCap = (concurrencyPerEndpoint: number) => new Endpoints({ concurrency: 256, concurrencyPerEndpoint })
const answered = (endpoints: Endpoints, endpoint: Endpoint, tookMillis: number) =>
  endpoints.noteEnded(endpoint, false, tookMillis, false)
const hold = (endpoints: Endpoints, endpoint: Endpoint, count: number) => {
  for (let held = 0; held < count; held += 1) endpoints.noteHeld(endpoint)
}

describe("the pace of an endpoint", () => {
  it("begins with few attempts at once, and every quick answer allows one more, up to the cap", () => {
    const endpoints = withCap(16)
    const endpoint = one(endpoints)
    expect(endpoints.capOf(endpoint)).toBe(4)
    for (let answers = 0; answers < 100; answers += 1) answered(endpoints, endpoint, 5)
    expect(endpoints.capOf(endpoint)).toBe(16)
  })

  it("allows more than the usual number only while answers are prompt, whatever the cap", () => {
    const endpoints = withCap(64)
    const [prompt, quick] = [one(endpoints), one(endpoints)]
    for (let answers = 0; answers < 100; answers += 1) {
      answered(endpoints, prompt, 100)
      answered(endpoints, quick, 101)
    }
    expect([prompt.allowed, quick.allowed]).toEqual([64, usualMost])
    // One that begins to take its time loses them again, as fast as it got them
    for (let answers = 0; answers < 64 - usualMost; answers += 1) answered(endpoints, prompt, 200)
    expect(prompt.allowed).toBe(usualMost)
    answered(endpoints, prompt, 200)
    expect(prompt.allowed).toBe(usualMost)
  })

  it("begins again with one where the endpoint was slow: quick and slow by turns never gives it much", () => {
    const endpoints = withCap(16)
    const endpoint = one(endpoints)
    for (let turn = 0; turn < 100; turn += 1) {
      endpoints.noteOverdue(endpoint, turn)
      expect(endpoint.slow).toBe("hangs")
      // Not while another is overdue
      answered(endpoints, endpoint, 5)
      endpoints.noteEnded(endpoint, true, 300, false)
      expect(endpoint.slow).toBe("late")
      answered(endpoints, endpoint, 5)
      expect(endpoint.slow).toBeNull()
      expect(endpoint.allowed).toBe(1)
    }
  })

  it("is kept of a bounded number of endpoints, as slow ones or at all", () => {
    const endpoints = withCap(16)
    const slow = Array.from({ length: 12_000 }, () => one(endpoints))
    for (const [number, endpoint] of slow.entries()) endpoints.noteOverdue(endpoint, number)
    expect(slow.filter((endpoint) => endpoint.slow !== null)).toHaveLength(5000)
    const idle = one(endpoints)
    for (let number = 0; number < 20_000; number += 1) one(endpoints)
    expect(endpoints.of({ endpointId: idle.id, organizationId: idle.organizationId })).not.toBe(idle)
  })
})

describe("the shares of the places", () => {
  /** Endpoints of one organization each, or of the same, that have been slow from the start. */
  const slowOnes = (count: number, of?: OrganizationId) => {
    const endpoints = withCap(16)
    const slow = Array.from({ length: count }, () => one(endpoints, of))
    for (const endpoint of slow) endpoints.noteOverdue(endpoint, 0)
    return { endpoints, slow }
  }
  const sum = (all: ReadonlyArray<Endpoint>) => all.reduce((held, endpoint) => held + endpoint.held, 0)

  /** Claims what is asked for, as if there were always enough, and returns the endpoints of what was claimed. */
  const claim = (endpoints: Endpoints, all: ReadonlyArray<Endpoint>) => {
    const asked = endpoints.askFor(0, true)
    endpoints.noteAsked(asked, new Map())
    return asked.flatMap(({ endpointId, room }) => {
      const endpoint = all.find(({ id }) => id === endpointId)
      if (endpoint === undefined) throw new Error("Asked for another")
      hold(endpoints, endpoint, room)
      return Array.from({ length: room }, () => endpoint)
    })
  }

  /** Claims, and has all that is claimed hang, until nobody gets more. */
  const fill = (endpoints: Endpoints, slow: ReadonlyArray<Endpoint>) => {
    for (let round = 0; round < 1000; round += 1) if (claim(endpoints, slow).length === 0) return
    throw new Error("Never full")
  }

  it("give a lone slow endpoint its cap", () => {
    const { endpoints, slow } = slowOnes(1)
    const [alone] = slow
    if (alone === undefined) throw new Error("None")
    expect(endpoints.askFor(0, true)).toMatchObject([{ endpointId: alone.id, room: 16 }])
    hold(endpoints, alone, 12)
    expect(endpoints.askFor(0, true)).toMatchObject([{ room: 4 }])
    expect(endpoints.askFor(0, false)).toEqual([])
    hold(endpoints, alone, 4)
    expect(endpoints.askFor(0, true)).toEqual([])
  })

  it("never give one organization's slow endpoints more than a fifth, and never all of the places", () => {
    const greedy = slowOnes(500, organization())
    fill(greedy.endpoints, greedy.slow)
    expect(sum(greedy.slow)).toBeLessThanOrEqual(placesAside / 2 / 4)
    const many = slowOnes(5000)
    fill(many.endpoints, many.slow)
    expect(sum(many.slow)).toBeLessThanOrEqual(placesAside / 2)
  })

  it("leave room for another organization's beside one with very many", () => {
    const { endpoints, slow } = slowOnes(500, organization())
    fill(endpoints, slow)
    const other = one(endpoints)
    endpoints.noteOverdue(other, 0)
    expect(endpoints.askFor(0, true)).toMatchObject([{ endpointId: other.id, room: 2 }])
  })

  it("spread what began together at many that hang over their time-out, and still use most places", () => {
    const steps = 50
    const { endpoints, slow } = slowOnes(500)
    for (const endpoint of slow) {
      endpoints.noteEnded(endpoint, true, 10_000, true)
      hold(endpoints, endpoint, 2)
    }
    /** The endpoints of the attempts that began in each of the claims of one time-out, and so end in it. */
    const begun: Array<ReadonlyArray<Endpoint>> = Array.from({ length: steps }, (_, step) =>
      step === 0 ? [...slow, ...slow] : []
    )
    for (let round = 0; round < 3 * steps; round += 1) {
      for (const endpoint of begun.shift() ?? []) endpoint.held -= 1
      begun.push(claim(endpoints, slow))
    }
    const inAll = begun.flat().length
    expect(inAll).toBeGreaterThan(placesAside / 4)
    expect(Math.max(...begun.map(({ length }) => length))).toBeLessThan((3 * inAll) / steps)
    // Everyone has its turn
    expect(new Set(begun.flat()).size).toBeGreaterThan(300)
  })

  it("give one that answers, if late, an attempt however many hang, and before those", () => {
    const lateOf = (endpoints: Endpoints) => {
      const late = one(endpoints)
      endpoints.noteOverdue(late, 0)
      endpoints.noteEnded(late, true, 300, false)
      return late
    }
    const { endpoints, slow } = slowOnes(2000)
    fill(endpoints, slow)
    const late = lateOf(endpoints)
    expect(endpoints.askFor(0, true)).toMatchObject([{ endpointId: late.id, room: 1 }])
    const idle = slowOnes(2000).endpoints
    expect(idle.askFor(0, true)[0]).toMatchObject({ room: 2 })
    const first = lateOf(idle)
    expect(idle.askFor(0, true)[0]).toMatchObject({ endpointId: first.id, room: 16 })
  })
})

describe("an endpoint that stays at its cap", () => {
  const place = "2026-01-01 00:00:05+00"

  /** As many endpoints as that, at their cap for long enough to be set apart. */
  const apart = (count: number) => {
    const endpoints = new Endpoints({ concurrency: 64, concurrencyPerEndpoint: 16 })
    const all = Array.from({ length: count }, () => one(endpoints))
    for (const endpoint of all) hold(endpoints, endpoint, 4)
    expect(endpoints.beginClaim(0, place)).toMatchObject({ hides: true, counts: { leftOut: [] } })
    const { counts, hides } = endpoints.beginClaim(300, place)
    expect([hides, counts.leftOut]).toEqual([false, all.map(({ id }) => id)])
    return { all, endpoints }
  }

  it("is left out of claims in the order of time, and asked for from where they had come to", () => {
    const { all, endpoints } = apart(1)
    expect(endpoints.askFor(300, false)).toEqual([])
    for (const endpoint of all) endpoint.held = 1
    expect(endpoints.askFor(300, false)).toEqual([{ endpointId: all[0]?.id, from: place, room: 3 }])
  })

  it("is never lost sight of before it is set apart: the next claim may not start later", () => {
    const { endpoints } = apart(1)
    const fast = one(endpoints)
    hold(endpoints, fast, 4)
    expect(endpoints.beginClaim(500, place).hides).toBe(true)
    fast.held = 0
    expect(endpoints.beginClaim(550, place).hides).toBe(false)
  })

  it("is asked for from where its deliveries begin, or from the start, and until it has none", () => {
    const { all, endpoints } = apart(1)
    for (const endpoint of all) endpoint.held = 1
    const begins = "2026-01-01 00:00:07+00"
    endpoints.noteAsked(endpoints.askFor(300, false), new Map(all.map(({ id }) => [id, begins])))
    expect(endpoints.askFor(300, false)).toMatchObject([{ from: begins }])
    endpoints.lookFromStart()
    const asked = endpoints.askFor(300, false)
    expect(asked).toMatchObject([{ from: queueStart }])
    endpoints.noteAsked(asked, new Map())
    expect([endpoints.hasApart, endpoints.askFor(300, false)]).toEqual([false, []])
  })

  it("leaves the healthy ones half of the places, however many there are", () => {
    const { all, endpoints } = apart(8)
    for (const endpoint of all) endpoint.held = 0
    expect(endpoints.askFor(400, false).map(({ room }) => room)).toEqual(all.map(() => 4))
  })

  it("is found by claims in the order of time again once it was slow and is quick again", () => {
    const { all, endpoints } = apart(1)
    const [endpoint] = all
    if (endpoint === undefined) throw new Error("None")
    endpoints.noteOverdue(endpoint, 300)
    endpoint.held = 0
    endpoints.noteAsked(endpoints.askFor(300, true), new Map())
    expect([endpoints.hasApart, endpoints.hasBusyApart]).toEqual([true, false])
    endpoints.noteEnded(endpoint, true, 300, false)
    answered(endpoints, endpoint, 5)
    // What is due of it may be before the place where they start
    expect([endpoints.hasApart, endpoints.leftOut]).toEqual([false, true])
    endpoints.lookFromStart()
    expect(endpoints.leftOut).toBe(false)
    expect(endpoints.beginClaim(700, queueStart).counts.leftOut).toEqual([])
  })
})
