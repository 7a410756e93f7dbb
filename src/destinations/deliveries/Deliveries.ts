import { SqlClient } from "@effect/sql"
import { Context, type Duration, Effect, Layer, Option } from "effect"
import { type ResendRefusal, resendRefusal } from "../../engine/attempts/Outcome.ts"
import { WakeUp } from "../../engine/queue/WakeUp.ts"
import type { PrincipalShape } from "../../identity/Principal.ts"
import {
  type RateLimitExceeded,
  ResourceNotFound,
  type ServiceUnavailable,
  unknownCursor,
  type ValidationFailed
} from "../../platform/errors/Errors.ts"
import { makeAudit } from "../../platform/kit/Audit.ts"
import type { DeliveryId, EndpointId } from "../../platform/kit/Ids.ts"
import { defaultPageSize, pageOf } from "../../platform/kit/Request.ts"
import { SlowReads } from "../../platform/kit/SlowReads.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import { orUnavailable, transaction } from "../../platform/storage/Database.ts"
import { preferReplica } from "../../platform/storage/ReadReplica.ts"
import { makeEndpointsRepo, noEndpoint } from "../endpoints/EndpointsRepo.ts"
import { makeEventsRepo } from "../events/EventsRepo.ts"
import { makeAllDeliveriesRepo } from "./AllDeliveriesRepo.ts"
import type { Delivery, DeliveryDetail, DeliveryList, ListAllDeliveries, ListDeliveries } from "./Api.ts"
import { makeDeliveriesRepo } from "./DeliveriesRepo.ts"
import type { RetentionOptions } from "./Retention.ts"

const noDelivery = () =>
  new ResourceNotFound({ message: "There is no such delivery in this organization and environment." })

type Repo = Effect.Effect.Success<ReturnType<typeof makeDeliveriesRepo>>

const makeLists = Effect.fnUntraced(function* (repo: Repo, keepFor: Duration.Duration) {
  const endpoints = yield* makeEndpointsRepo
  const all = yield* makeAllDeliveriesRepo(keepFor)
  const events = yield* makeEventsRepo(keepFor)
  const onReplica = yield* preferReplica
  const { inTurn } = yield* SlowReads

  const list = Effect.fn("Deliveries.list")(
    function* (tenant: Tenant, endpointId: EndpointId, query: ListDeliveries) {
      if (!(yield* endpoints.existed(tenant, endpointId))) {
        return yield* noEndpoint()
      }
      // A cursor from another endpoint's history is not valid in this one
      if (query.starting_after !== undefined && !(yield* repo.hasDelivery(tenant, endpointId, query.starting_after))) {
        return yield* unknownCursor()
      }
      const limit = query.limit ?? defaultPageSize
      const rows = yield* repo.list(tenant, endpointId, query, limit + 1)
      return pageOf(rows, limit)
    },
    onReplica,
    orUnavailable,
    (read, tenant) => inTurn(tenant)(read)
  )

  const listAll = Effect.fn("Deliveries.listAll")(
    function* (tenant: Tenant, query: ListAllDeliveries) {
      if (query.starting_after !== undefined && !(yield* all.hasDelivery(tenant, query.starting_after))) {
        return yield* unknownCursor()
      }
      const limit = query.limit ?? defaultPageSize
      if (query.event_id === undefined) {
        return pageOf(yield* all.list(tenant, query, limit + 1), limit)
      }
      const event = yield* events.find(tenant, query.event_id)
      return Option.isNone(event)
        ? pageOf<Delivery>([], limit)
        : pageOf(yield* all.listOfEvent(tenant, event.value, query, limit + 1), limit)
    },
    onReplica,
    orUnavailable,
    (read, tenant) => inTurn(tenant)(read)
  )

  return { list, listAll }
})

// The most frequent read: no extra span, since the request has one
const makeGet = (repo: Repo) =>
  Effect.fnUntraced(function* (tenant: Tenant, id: DeliveryId) {
    const { attempts, payload, ...delivery } = yield* Effect.flatMap(
      repo.findDetail(tenant, id),
      Effect.mapError(noDelivery)
    )
    const event: unknown = JSON.parse(payload)
    return {
      ...delivery,
      attempts: attempts.map((attempt) => ({ ...attempt, startedAt: new Date(attempt.startedAt) })),
      event
    }
  }, orUnavailable)

const makeQueueAgain = Effect.fnUntraced(function* (repo: Repo) {
  const sql = yield* SqlClient.SqlClient
  const audit = yield* makeAudit

  const again = Effect.fnUntraced(function* (principal: PrincipalShape, id: DeliveryId) {
    const was = yield* Effect.flatMap(repo.resend(principal, id), Effect.catchTag("NoSuchElementException", noDelivery))
    const refusal = resendRefusal(was)
    if (Option.isSome(refusal)) {
      return yield* refusal.value
    }
    yield* audit({ ...principal, action: "delivery.resent", targetId: id })
    return yield* Effect.flatMap(repo.find(principal, id), Effect.orDie)
  })

  return Effect.fn("Deliveries.queueAgain")(
    (principal: PrincipalShape, id: DeliveryId) => transaction(sql)(again(principal, id)),
    orUnavailable
  )
})

const make = Effect.fnUntraced(function* ({ keepFor }: RetentionOptions) {
  const wakeUp = yield* WakeUp
  const repo = yield* makeDeliveriesRepo(keepFor)
  return {
    ...(yield* makeLists(repo, keepFor)),
    get: makeGet(repo),
    queueAgain: yield* makeQueueAgain(repo),
    announce: wakeUp.announce,
    rebind: Effect.asVoid(repo.rebind).pipe(orUnavailable)
  }
})

export class Deliveries extends Context.Tag("connected-payments/deliveries/Deliveries")<
  Deliveries,
  {
    /** An endpoint's deliveries, newest first. Refuses a `starting_after` that is not one of them. */
    readonly list: (
      tenant: Tenant,
      endpointId: EndpointId,
      query: ListDeliveries
    ) => Effect.Effect<DeliveryList, ResourceNotFound | ValidationFailed | RateLimitExceeded | ServiceUnavailable>
    /** The deliveries to all endpoints, newest first. Refuses a `starting_after` that is not one of them. */
    readonly listAll: (
      tenant: Tenant,
      query: ListAllDeliveries
    ) => Effect.Effect<DeliveryList, ValidationFailed | RateLimitExceeded | ServiceUnavailable>
    readonly get: (
      tenant: Tenant,
      id: DeliveryId
    ) => Effect.Effect<DeliveryDetail, ResourceNotFound | ServiceUnavailable>
    /**
     * Queues a failed delivery for one more attempt, at once, and returns it (contract 9.4). It is signed with the
     * secrets that it was bound to if any of them may still sign, otherwise with the endpoint's current secret. A
     * paused endpoint's deliveries can be re-sent: a pause only affects new events. The caller must `announce` it after
     * the commit.
     */
    readonly queueAgain: (
      principal: PrincipalShape,
      id: DeliveryId
    ) => Effect.Effect<Delivery, ResourceNotFound | ResendRefusal | ServiceUnavailable>
    readonly announce: Effect.Effect<void>
    /** After a long outage, binds queued deliveries without an unexpired secret to their endpoint's current one. */
    readonly rebind: Effect.Effect<void, ServiceUnavailable>
  }
>() {
  static readonly layer = (
    options: RetentionOptions
  ): Layer.Layer<Deliveries, never, SqlClient.SqlClient | WakeUp | SlowReads> => Layer.effect(Deliveries, make(options))
}
