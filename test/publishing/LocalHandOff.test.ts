import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import type { DeliveryId, EndpointId } from "../../src/kit/Ids.ts"
import { OrganizationId } from "../../src/kit/Ids.ts"
import { type HandedDelivery, type LeasedRow, LocalHandOff } from "../../src/publishing/LocalHandOff.ts"
import { recipientWith } from "./Recipients.ts"

const organizationId = OrganizationId.make("018f4d3e-7b1a-7cc2-9d52-0a4f8e6b1c21")
const endpoint = (n: number) => `018f4d3e-7b1a-7cc2-9d52-00000000000${n}` as EndpointId
const delivery = (id: string, to: EndpointId): HandedDelivery => ({
  organizationId,
  environment: "sandbox",
  id: id as DeliveryId,
  endpointId: to,
  eventId: "evt",
  secretIds: ["secret"],
  payload: "{}",
  traceparent: null
})

const leased = (id: string, ctid: string): LeasedRow => [id as DeliveryId, ctid]

const begin = Effect.map(LocalHandOff, (handOff) => handOff.begin())

describe("a hand-over", () => {
  it.scoped("takes nothing without a recipient", () =>
    Effect.gen(function* () {
      const handing = yield* begin
      expect(handing.offer(delivery("a", endpoint(1)))).toBe(false)
      handing.settle({ rows: [], storedAt: 0 })
    }).pipe(Effect.provide(LocalHandOff.layer))
  )

  it.scoped("hands over what was stored of what was offered, and frees the places of the rest", () =>
    Effect.gen(function* () {
      const { free, recipient, taken } = recipientWith(2)
      yield* (yield* LocalHandOff).register(recipient)
      const handing = yield* begin
      expect(["a", "b", "c"].map((id) => handing.offer(delivery(id, endpoint(1))))).toEqual([true, true, false])
      expect(free()).toBe(0)
      // Of "b" another copy was stored before; "x" is none of its own
      handing.settle({ rows: [leased("a", "(0,1)"), leased("x", "(0,2)")], storedAt: 0 })
      expect(taken.map(({ ctid, id }) => [id, ctid])).toEqual([["a", "(0,1)"]])
      expect(free()).toBe(2)
    }).pipe(Effect.provide(LocalHandOff.layer))
  )

  it.scoped("frees all places if nothing was stored, and only once", () =>
    Effect.gen(function* () {
      const { free, recipient, taken } = recipientWith(2)
      yield* (yield* LocalHandOff).register(recipient)
      const handing = yield* begin
      handing.offer(delivery("a", endpoint(1)))
      handing.cancel()
      handing.cancel()
      expect(free()).toBe(2)
      expect(taken).toEqual([])
    }).pipe(Effect.provide(LocalHandOff.layer))
  )

  it.scoped("offers nothing any more to a recipient that has gone, which still gets what it has reserved", () =>
    Effect.gen(function* () {
      const { recipient, taken } = recipientWith(2)
      const scope = yield* Scope.make()
      yield* Scope.extend((yield* LocalHandOff).register(recipient), scope)
      const handing = yield* begin
      handing.offer(delivery("a", endpoint(1)))
      yield* Scope.close(scope, Exit.void)
      expect((yield* begin).offer(delivery("b", endpoint(1)))).toBe(false)
      handing.settle({ rows: [leased("a", "(0,1)")], storedAt: 0 })
      expect(taken.map(({ id }) => id)).toEqual(["a"])
    }).pipe(Effect.provide(LocalHandOff.layer))
  )

  it.scoped("has a lease of its own for each statement", () =>
    Effect.gen(function* () {
      expect((yield* begin).lease).not.toBe((yield* begin).lease)
    }).pipe(Effect.provide(LocalHandOff.layer))
  )
})
