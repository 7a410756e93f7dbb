import type { Statement } from "@effect/sql"
import { type Duration, Effect } from "effect"
import { type DeliveryId, firstIdAt, millisOf, replayedDeliveryId } from "../../platform/kit/Ids.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import { type CoveringReplay, makeEventReplaysRepo } from "../event-replays/EventReplaysRepo.ts"
import type { EventRow } from "../events/EventsRepo.ts"
import type { Delivery } from "./Api.ts"
import { makeDeliveriesRepo } from "./DeliveriesRepo.ts"

/** How many replays one statement processes, and the most statements. */
const replaysAtOnce = 200
const mostLooks = 50

/** An id after those of all replays. */
const afterAll = "ffffffff-ffff-ffff-ffff-ffffffffffff"

/** A page of replays whose deliveries of an event are looked up, all newer than those of the next page. */
interface Replays {
  readonly some: ReadonlyArray<CoveringReplay>
  /** Cursor of the next page; undefined on the last. */
  readonly next: string | undefined
}

/**
 * The replays of a page. A delivery's id has the millisecond of its replay but is not ordered within it, so if there
 * may be more replays, those of the last millisecond are left to the next page.
 */
const toReplays = (page: ReadonlyArray<CoveringReplay>): Replays => {
  const last = page.at(-1)
  if (last === undefined || page.length < replaysAtOnce) return { some: page, next: undefined }
  const time = millisOf(last.id)
  const some = page.filter(({ id }) => millisOf(id) > time)
  return some.length === 0 ? { some: page, next: last.id } : { some, next: firstIdAt(time + 1) }
}

export interface WantedDeliveries {
  readonly limit: number
  /** Conditions on the delivery `d` and its event `e`. Default: none. */
  readonly conditions?: ReadonlyArray<Statement.Fragment>
  /** The last delivery of the previous page. The conditions exclude it and all before it. */
  readonly after?: DeliveryId | undefined
}

/** Finds one event's deliveries, newest first, including those of its 10,000 newest replays. */
export const makeEventDeliveries = Effect.fnUntraced(function* (keepFor: Duration.Duration) {
  const deliveries = yield* makeDeliveriesRepo(keepFor)
  const replays = yield* makeEventReplaysRepo

  return (tenant: Tenant, row: EventRow, { after, conditions = [], limit }: WantedDeliveries) =>
    Effect.gen(function* () {
      const time = millisOf(row.key)
      const receivedAt = new Date(time)
      const found: Array<Delivery> = []
      let before = after === undefined ? afterAll : firstIdAt(millisOf(after) + 1)
      for (let look = 1; ; look += 1) {
        const page = yield* replays.covering(tenant, { receivedAt, type: row.type }, { before, limit: replaysAtOnce })
        const { next, some } = toReplays(page)
        const isLast = next === undefined || look === mostLooks
        const ids = some.map(({ endpointId, id }) =>
          replayedDeliveryId({ replayId: id, eventKey: row.key, endpointId })
        )
        // The deliveries created at publication have the event's millisecond in their ids, and are older than all
        // replays
        const wanted = { from: time, until: isLast ? time + 1 : time, ids, limit: limit - found.length, conditions }
        found.push(...(yield* deliveries.ofEvent(tenant, row.key, wanted)))
        if (isLast || found.length >= limit) return found
        before = next
      }
    })
})
