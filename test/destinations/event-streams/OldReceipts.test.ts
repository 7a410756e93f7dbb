import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { Receipts } from "../../../src/inbound/Receipts.ts"
import { eventuallyTrue } from "../../harness/Eventually.ts"
import { inDatabase, onSharedService, serviceOf } from "../../harness/TestService.ts"
import { makeTenant, paidAtProvider, subscribe, type Tenant } from "../../inbound/Notifications.ts"
import { listen } from "./Reader.ts"

const days = 6

/** A payment that was notified this many days ago, and whose event is gone. Returns its provider's event. */
const payAgo = (tenant: Tenant, ago: number) =>
  Effect.gen(function* () {
    const id = yield* paidAtProvider(tenant, "payment_intent.payment_failed")
    yield* inDatabase`DELETE FROM payments.events WHERE provider_event_id = ${id}`
    yield* inDatabase`
      UPDATE payments.receipts SET received_at = received_at - ${ago} * interval '1 day'
      WHERE provider_event_id = ${id}`
    return id
  })

onSharedService("the stream of events", (it) => {
  it.scoped("has what replays of old receipts make, in whatever day's table it is", function* () {
    const { replay } = yield* serviceOf(Receipts)
    const tenant = yield* makeTenant
    const old = yield* Effect.forEach([0, 1, 2, 3, 4, 5, 5], (ago) => payAgo(tenant, ago))
    // Since a replay makes what is missing for somebody
    yield* subscribe(tenant, ["payment.failed"])
    const reader = yield* listen(tenant)
    const place = reader.place()
    const sources = ({ messages }: typeof reader) =>
      messages.flatMap(({ data: { source } }) => (source === undefined ? [] : [Object(source)["event_id"]]))
    for (const [index, id] of old.entries()) {
      expect((yield* replay({ environment: "sandbox", providerEventId: id })).deliveriesMade).toBe(1)
      yield* eventuallyTrue(`the event of ${index} days ago`, () => sources(reader).at(-1) === id)
    }
    expect(sources(reader)).toEqual(old)
    const [stored] = yield* inDatabase<{ tables: number }>`
        SELECT count(DISTINCT tableoid)::int AS tables FROM payments.events WHERE organization_id = ${tenant.id}`
    expect(stored?.tables).toBe(days)

    const resumed = yield* listen(tenant, { query: `?after=${place}&follow=false` })
    yield* eventuallyTrue("its end", resumed.ended)
    expect(sources(resumed)).toEqual(old)
    const next = yield* listen(tenant, { query: "?follow=false" })
    yield* eventuallyTrue("its end", next.ended)
    expect(sources(next)).toEqual([])
  })
})
