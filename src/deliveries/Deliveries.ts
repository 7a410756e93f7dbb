import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer } from "effect"
import { ResourceNotFound, type ServiceUnavailable } from "../Errors.ts"
import type { Tenant } from "../identity/Principal.ts"
import type { DeliveryId, EndpointId } from "../kit/Ids.ts"
import { defaultPageSize } from "../kit/Request.ts"
import { orUnavailable } from "../storage/Database.ts"
import type { Attempt, Delivery, DeliveryDetail, DeliveryList, ListDeliveries } from "./Api.ts"

/** The history of deliveries (contract, Delivery). */
export class Deliveries extends Context.Tag("connected-payments/deliveries/Deliveries")<
  Deliveries,
  {
    /** An endpoint's deliveries, newest first. A `starting_after` of another endpoint answers not found. */
    readonly list: (
      tenant: Tenant,
      endpointId: EndpointId,
      query: ListDeliveries
    ) => Effect.Effect<DeliveryList, ResourceNotFound | ServiceUnavailable>
    readonly get: (
      tenant: Tenant,
      id: DeliveryId
    ) => Effect.Effect<DeliveryDetail, ResourceNotFound | ServiceUnavailable>
  }
>() {
  static readonly layer: Layer.Layer<Deliveries, never, SqlClient.SqlClient> = Layer.effect(
    Deliveries,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const columns = sql.literal(`
        d.id, d.endpoint_id AS "endpointId", d.event_id AS "eventId", e.type, d.state, d.test,
        d.attempt_count AS "attemptCount", d.next_attempt_at AS "nextAttemptAt", d.created_at AS "createdAt",
        d.finished_at AS "finishedAt", d.last_http_status AS "lastHttpStatus", d.last_error_code AS "lastErrorCode"`)

      const joined = sql.literal(`
        payments.deliveries d JOIN payments.events e
          ON e.organization_id = d.organization_id AND e.environment = d.environment AND e.id = d.event_id`)

      const ofTenant = (tenant: Tenant) =>
        sql`d.organization_id = ${tenant.organizationId} AND d.environment = ${tenant.environment}`

      /** The history of a deleted endpoint stays readable. */
      const requireEndpoint = (tenant: Tenant, id: EndpointId) =>
        sql`
          SELECT 1 FROM payments.endpoints
          WHERE organization_id = ${tenant.organizationId} AND environment = ${tenant.environment} AND id = ${id}`.pipe(
          Effect.filterOrFail(
            (rows) => rows.length > 0,
            () => new ResourceNotFound({ message: "There is no such endpoint here." })
          )
        )

      /** A place in another endpoint's history is none in this one's. */
      const requireDelivery = (tenant: Tenant, endpointId: EndpointId, id: DeliveryId) =>
        sql`SELECT 1 FROM payments.deliveries d WHERE ${ofTenant(tenant)} AND d.endpoint_id = ${endpointId} AND d.id = ${id}`.pipe(
          Effect.filterOrFail(
            (rows) => rows.length > 0,
            () => new ResourceNotFound({ message: "`starting_after` names no delivery of this endpoint." })
          )
        )

      const list = Effect.fn("Deliveries.list")(function* (
        tenant: Tenant,
        endpointId: EndpointId,
        query: ListDeliveries
      ) {
        yield* requireEndpoint(tenant, endpointId)
        if (query.starting_after !== undefined) {
          yield* requireDelivery(tenant, endpointId, query.starting_after)
        }
        const limit = query.limit ?? defaultPageSize
        const conditions = [
          ofTenant(tenant),
          sql`d.endpoint_id = ${endpointId}`,
          ...(query.starting_after === undefined ? [] : [sql`d.id < ${query.starting_after}`]),
          ...(query.state === undefined ? [] : [sql`d.state = ${query.state}`]),
          ...(query.type === undefined ? [] : [sql`e.type = ${query.type}`]),
          ...(query.created_gte === undefined ? [] : [sql`d.created_at >= to_timestamp(${query.created_gte})`]),
          // The whole second counts, as it does where times are kept in seconds
          ...(query.created_lte === undefined
            ? []
            : [sql`d.created_at < to_timestamp(${query.created_lte}::bigint + 1)`])
        ]
        const rows = yield* sql<Delivery>`
          SELECT ${columns} FROM ${joined} WHERE ${sql.and(conditions)} ORDER BY d.id DESC LIMIT ${limit + 1}`
        return { data: rows.slice(0, limit), has_more: rows.length > limit }
      }, orUnavailable)

      const get = Effect.fn("Deliveries.get")(function* (tenant: Tenant, id: DeliveryId) {
        const [row] = yield* sql<
          Delivery & { readonly payload: string; readonly attempts: ReadonlyArray<StoredAttempt> }
        >`
          SELECT ${columns}, e.payload, COALESCE((
            SELECT json_agg(json_build_object('number', a.number, 'trigger', a.trigger, 'startedAt', a.started_at,
              'durationMs', a.duration_ms, 'httpStatus', a.http_status, 'errorCode', a.error_code) ORDER BY a.number)
            FROM payments.delivery_attempts a
            WHERE a.organization_id = d.organization_id AND a.environment = d.environment AND a.delivery_id = d.id
          ), '[]') AS attempts
          FROM ${joined} WHERE ${ofTenant(tenant)} AND d.id = ${id}`
        if (row === undefined) {
          return yield* new ResourceNotFound({ message: "There is no such delivery here." })
        }
        const { attempts, payload, ...delivery } = row
        const event: unknown = JSON.parse(payload)
        return {
          ...delivery,
          attempts: attempts.map((attempt) => ({ ...attempt, startedAt: new Date(attempt.startedAt) })),
          event
        }
      }, orUnavailable)

      return { list, get }
    })
  )
}

type StoredAttempt = Omit<Attempt, "startedAt"> & { readonly startedAt: string }
