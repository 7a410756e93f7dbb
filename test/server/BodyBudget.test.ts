import { IncomingMessage, ServerResponse } from "node:http"
import { Socket } from "node:net"
import { describe, expect, it } from "@effect/vitest"
import { FastCheck } from "effect"
import { BodyBudget, bodyLimits, bodyShareOf } from "../../src/server/Body.ts"

/** A request with a body, what the budget lets it hold, and whether it was dropped. */
const makeBody = (budget: BodyBudget, address: string, known: boolean) => {
  const message = new IncomingMessage(new Socket())
  const response = new ServerResponse(message)
  const body = {
    held: 0,
    dropped: false,
    complete: false,
    wronged: false,
    known,
    address,
    response,
    share: bodyShareOf(message)
  }
  budget.admit(message, { address, response, refuse: () => {} })
  const share = bodyShareOf(message)
  if (share === undefined) throw new Error("A body without a share")
  if (known) share.recognize()
  share.begin(() => {
    body.held = 0
    body.dropped = true
    body.wronged = body.complete
  })
  return Object.assign(body, { share })
}

type Body = ReturnType<typeof makeBody>

const hold = (body: Body, bytes: number): void => {
  if (body.dropped || body.complete) return
  if (body.share.hold(body.held + bytes)) body.held += bytes
}

const close = (body: Body): void => {
  body.response.emit("close")
  body.held = 0
}

const sum = (bodies: ReadonlyArray<Body>) => bodies.reduce((total, { held }) => total + held, 0)

describe("what bodies hold", () => {
  it("never exceeds what an address, or all of a kind, may hold, and is all given back with the answers", () => {
    const step = FastCheck.record({
      address: FastCheck.integer({ min: 0, max: 4 }),
      known: FastCheck.boolean(),
      which: FastCheck.nat(),
      bytes: FastCheck.integer({ min: 1, max: 8 * 1024 * 1024 }),
      what: FastCheck.constantFrom("open", "hold", "hold", "hold", "complete", "close")
    })
    FastCheck.assert(
      FastCheck.property(FastCheck.array(step, { minLength: 20, maxLength: 200 }), (steps) => {
        const budget = new BodyBudget()
        const bodies: Array<Body> = []
        for (const { address, bytes, known, what, which } of steps) {
          const body = bodies[which % Math.max(1, bodies.length)]
          if (body === undefined || what === "open") {
            bodies.push(makeBody(budget, `192.0.2.${address}`, known))
          } else if (what === "hold") {
            hold(body, bytes)
          } else if (what === "complete" && !body.dropped) {
            body.share.complete()
            body.complete = true
          } else if (what === "close") {
            close(body)
            body.complete = true
          }
          for (const kind of [true, false]) {
            const ofKind = bodies.filter((one) => one.known === kind)
            const limit = kind ? bodyLimits.known : bodyLimits.strangers
            expect(sum(ofKind)).toBeLessThanOrEqual(limit)
            for (const one of ofKind) {
              expect(sum(ofKind.filter((other) => other.address === one.address))).toBeLessThanOrEqual(limit / 2)
            }
          }
          // What has arrived is in use: it is not taken away
          expect(bodies.filter(({ wronged }) => wronged)).toEqual([])
        }
        for (const body of bodies) close(body)
        const dropped = () => bodies.filter((body) => body.dropped).length
        const before = dropped()
        for (const known of [true, false]) {
          const limit = (known ? bodyLimits.known : bodyLimits.strangers) / 2
          for (const address of ["192.0.2.0", "192.0.2.1"]) {
            const body = makeBody(budget, address, known)
            hold(body, limit)
            expect(body.held).toBe(limit)
          }
        }
        expect(dropped()).toBe(before)
      }),
      { numRuns: 200 }
    )
  })

  it("is taken from the body that has been arriving for the longest, and never from one that arrived", () => {
    const budget = new BodyBudget()
    const quarter = bodyLimits.strangers / 8
    const bodies = Array.from({ length: 4 }, () => makeBody(budget, "192.0.2.1", false))
    for (const body of bodies) hold(body, quarter)
    bodies[0]?.share.complete()
    hold(makeBody(budget, "192.0.2.1", false), quarter)
    expect(bodies.map(({ dropped }) => dropped)).toEqual([false, true, false, false])
    for (const body of bodies.slice(2)) body.share.complete()
    const late = makeBody(budget, "192.0.2.1", false)
    hold(late, 2 * quarter)
    expect(late.dropped).toBe(true)
  })
})
