import { Clock, Duration, Effect, Option, Predicate } from "effect"
import { ResourceNotFound, unknownCursor } from "../../platform/errors/Errors.ts"
import { millisOf } from "../../platform/kit/Ids.ts"
import { defaultPageSize, pageOf, shownDeliveries } from "../../platform/kit/Request.ts"
import { serviceWith } from "../../platform/kit/Service.ts"
import { SlowReads } from "../../platform/kit/SlowReads.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import { orUnavailable } from "../../platform/storage/Database.ts"
import { preferReplica } from "../../platform/storage/ReadReplica.ts"
import { makeEventDeliveries } from "../deliveries/EventDeliveries.ts"
import type { RetentionOptions } from "../deliveries/Retention.ts"
import type { ListEvents, StoredEvent } from "./Api.ts"
import { type EventRow, makeEventsRepo } from "./EventsRepo.ts"

const toStoredEvent = (row: EventRow): StoredEvent => {
  const event: unknown = JSON.parse(row.payload)
  return {
    id: row.id,
    type: row.type,
    test: Predicate.hasProperty(event, "test") && event.test === true,
    receivedAt: new Date(millisOf(row.key)),
    event
  }
}

const make = Effect.fnUntraced(function* ({ keepFor }: RetentionOptions) {
  const repo = yield* makeEventsRepo(keepFor)
  const deliveriesOf = yield* makeEventDeliveries(keepFor)
  const onReplica = yield* preferReplica
  const { inTurn } = yield* SlowReads

  /** Events, newest first. Refuses a `starting_after` that is not one of them. */
  const list = Effect.fn("Events.list")(
    function* (tenant: Tenant, query: ListEvents) {
      const after = query.starting_after === undefined ? undefined : yield* repo.find(tenant, query.starting_after)
      if (after !== undefined && Option.isNone(after)) {
        return yield* unknownCursor()
      }
      const limit = query.limit ?? defaultPageSize
      const rows = yield* repo.list(tenant, query, after?.value.key, limit + 1)
      const { data, has_more } = pageOf(rows, limit)
      return { data: data.map(toStoredEvent), has_more }
    },
    onReplica,
    orUnavailable,
    (read, tenant) => inTurn(tenant)(read)
  )

  const get = Effect.fn("Events.get")(
    function* (tenant: Tenant, id: string) {
      const notFound = () =>
        new ResourceNotFound({ message: "There is no such event in this organization and environment." })
      const row = yield* Effect.flatMap(repo.find(tenant, id), Effect.mapError(notFound))
      const its = yield* repo.bounded(deliveriesOf(tenant, row, { limit: shownDeliveries }))
      const age = (yield* Clock.currentTimeMillis) - row.createdAt.getTime()
      // A delivery that may still be read keeps its event readable, too
      if (its.length === 0 && age > Duration.toMillis(keepFor)) return yield* notFound()
      return { ...toStoredEvent(row), deliveries: its }
    },
    onReplica,
    orUnavailable,
    (read, tenant) => inTurn(tenant)(read)
  )

  return { list, get }
})

export class Events extends serviceWith<Events>()("connected-payments/destinations/Events", make) {}
