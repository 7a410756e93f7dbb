import type { Statement } from "@effect/sql"
import { Duration, Effect } from "effect"
import { millisOf, replayedDeliveryId } from "../../kit/Ids.ts"
import type { Tenant } from "../../kit/Tenant.ts"
import { makeDeliveriesRepo } from "./DeliveriesRepo.ts"
import { makeEventReplaysRepo } from "./EventReplaysRepo.ts"
import type { EventRow } from "./EventsRepo.ts"
import { shownDeliveries } from "./ShownDeliveries.ts"

/** How far apart an event and its deliveries may be that were stored before there were tables by day. */
const apart = Duration.toMillis("10 minutes")

/** Whether an event has a key that tells its time: it was stored since there are tables by day. */
export const isKeyed = ({ id, key }: EventRow): boolean => key !== id

/** When an event was received. */
export const receivedAtOf = (row: EventRow): Date => (isKeyed(row) ? new Date(millisOf(row.key)) : row.createdAt)

/** Finds the deliveries of one event, newest first, replays included; nobody outside the slice imports this. */
export const makeEventDeliveries = Effect.gen(function* () {
  const deliveries = yield* makeDeliveriesRepo
  const replays = yield* makeEventReplaysRepo

  /** The ids that its deliveries have if it was replayed. */
  const replayedIds = (tenant: Tenant, { key }: EventRow) =>
    Effect.map(replays.covering(tenant, new Date(millisOf(key)), shownDeliveries), (covering) =>
      covering.map(({ endpointId, id }) => replayedDeliveryId({ replayId: id, eventKey: key, endpointId }))
    )

  /** @param conditions on the delivery `d` and its event `e`; default: all of its deliveries */
  return (tenant: Tenant, row: EventRow, limit: number, conditions: ReadonlyArray<Statement.Fragment> = []) =>
    Effect.gen(function* () {
      // The deliveries that it was published with have the same millisecond in their ids
      const time = receivedAtOf(row).getTime()
      const among = isKeyed(row)
        ? { from: time, until: time + 1, ids: yield* replayedIds(tenant, row) }
        : { from: time - apart, until: time + apart, ids: [] }
      return yield* deliveries.ofEvent(tenant, row.key, among, limit, conditions)
    })
})
