import { describe, expect, it } from "@effect/vitest"
import { queueStart } from "../../src/engine/queue/Claim.ts"
import { type Known, Turns } from "../../src/engine/worker/Limits.ts"
import { EndpointId } from "../../src/platform/kit/Ids.ts"

const endpoint = () => EndpointId.make(crypto.randomUUID())
/** What is known of endpoints that are all allowed 16 attempts at once, and none of which is slow. */
const known: Known = { slow: [], isSlow: () => false, capOf: () => 16 }
const nothing = new Map<EndpointId, string>()
const nothingInFlight = new Map<EndpointId, number>()

/** Turns with one endpoint that has been at its cap for long enough to be set apart. */
const withOneApart = () => {
  const turns = new Turns(64)
  const dead = endpoint()
  const full = new Map([[dead, 16]])
  turns.next(full, 0, known)
  turns.learn(turns.next(full, 300, known), { askedFor: nothing, place: "2026-01-01 00:00:05+00" })
  return { turns, dead, full }
}

describe("turns", () => {
  it("go on from where the claim before found the first, and look from the start again within a second", () => {
    const turns = new Turns(64)
    const first = turns.next(nothingInFlight, 0, known)
    expect(first.from).toBe(queueStart)
    turns.learn(first, { askedFor: nothing, place: "2026-01-01 00:00:05+00" })
    const second = turns.next(nothingInFlight, 900, known)
    expect(second.from).toBe("2026-01-01 00:00:05+00")
    turns.learn(second, { askedFor: nothing, place: "2026-01-01 00:00:06+00" })
    expect(turns.next(nothingInFlight, 1000, known).from).toBe(queueStart)
  })

  it("look from the start the more rarely, the longer that takes: done rows may not be cleared away for hours", () => {
    const turns = new Turns(64)
    const place = "2026-01-01 00:00:05+00"
    const take = (now: number, millis: number) => {
      const turn = turns.next(nothingInFlight, now, known)
      turns.learn(turn, { askedFor: nothing, place }, millis)
      return turn.from === queueStart
    }
    expect(take(0, 2)).toBe(true)
    for (let now = 1; now < 900; now += 10) expect(take(now, 2)).toBe(false)
    // Once may be chance
    expect(take(1000, 20)).toBe(true)
    expect(take(2000, 20)).toBe(true)
    // 20 ms instead of 2, twice: not again for about 3.6 s
    expect([3000, 4000, 5500].map((now) => take(now, 2))).toEqual([false, false, false])
    expect(take(5700, 500)).toBe(true)
    expect(take(9400, 500)).toBe(true)
    // At most for half a minute
    expect([12_000, 39_300].map((now) => take(now, 2))).toEqual([false, false])
    expect(take(39_500, 2)).toBe(true)
    // Every second again once it costs no more than others
    expect(take(40_600, 2)).toBe(true)
  })

  it("never lose sight of an endpoint that is at its cap but not set apart", () => {
    const { dead, turns } = withOneApart()
    const fast = endpoint()
    const both = new Map([
      [dead, 16],
      [fast, 16]
    ])
    const turn = turns.next(both, 500, known)
    expect(turn.leftOut).toEqual([dead])
    // The claim stepped over the fast one's rows, so where the rest begins is not where the fast one's do
    turns.learn(turn, { askedFor: nothing, place: "2026-01-01 00:00:59+00" })
    expect(turns.next(new Map([[dead, 16]]), 550, known).from).toBe("2026-01-01 00:00:05+00")
  })

  it("then look for what is set apart from the start too: a worker that died may have left some there", () => {
    const { dead, turns } = withOneApart()
    const asked = turns.next(new Map([[dead, 1]]), 500, known)
    turns.learn(asked, { askedFor: new Map([[dead, "2026-01-01 00:00:01+00"]]), place: "2026-01-01 00:00:07+00" })
    expect(turns.next(new Map([[dead, 1]]), 31_000, known).askedFor).toEqual([
      { endpointId: dead, from: queueStart, room: 15 }
    ])
  })

  it("leave the healthy ones half of the places, however many endpoints are dead", () => {
    const turns = new Turns(64)
    const dead = Array.from({ length: 8 }, endpoint)
    const full = new Map(dead.map((id) => [id, 16]))
    turns.next(full, 0, known)
    turns.next(full, 300, known)
    const { askedFor } = turns.next(new Map(), 400, known)
    expect(askedFor.map(({ room }) => room)).toEqual(dead.map(() => 4))
  })
})
