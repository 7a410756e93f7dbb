import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"
import { type HandOff, type LeasedRow, leasedRows } from "../../engine/queue/Enqueue.ts"
import { ofTenant, type Tenant } from "../../platform/kit/Tenant.ts"
import type { MatchableEndpoint, NewEvent } from "./Publication.ts"
import { matchableEndpoints, publicationParts } from "./PublicationStatement.ts"

export interface NewOutboundEvent {
  readonly event: NewEvent
  readonly receivedAt: Date
  readonly sourceEventId: string
  readonly traceparent: string | null
}

export interface StoredOutboundEvent {
  readonly isNew: boolean
  readonly deliveries: number
  readonly skipped: number
  /** The deliveries that were stored under the lease. */
  readonly handed: ReadonlyArray<LeasedRow>
  /** In Unix milliseconds, by the database's clock. */
  readonly storedAt: number
}

export const makeOutboundEventsRepo = Effect.map(SqlClient.SqlClient, (sql) => ({
  /** The tenant's endpoints that are not deleted, paused ones included; undefined if there is no such tenant. */
  findEndpoints: (tenant: Tenant): Effect.Effect<ReadonlyArray<MatchableEndpoint> | undefined, SqlError.SqlError> =>
    Effect.map(
      sql<{ readonly endpoints: ReadonlyArray<MatchableEndpoint> }>`
        SELECT ${matchableEndpoints(sql, "w")} AS endpoints
        FROM payments.workspaces w WHERE ${ofTenant(sql, tenant, "w")}`,
      ([row]) => row?.endpoints
    ),

  /** An event that is already stored changes nothing. Deliveries that `handing` takes are stored under its lease. */
  insert: (
    tenant: Tenant,
    { event, receivedAt, sourceEventId, traceparent }: NewOutboundEvent,
    handing: HandOff | null
  ): Effect.Effect<StoredOutboundEvent, SqlError.SqlError> => {
    const lease = { id: sql`${handing?.lease ?? null}`, millis: sql`${handing?.leaseMillis ?? null}` }
    const isNew = sql`EXISTS (SELECT 1 FROM published)`
    const parts = publicationParts(
      sql,
      tenant,
      { events: [event], receivedAt, sourceEventId, traceparent },
      {
        lease,
        admits: () => isNew,
        offer: (delivery, event) => handing?.offerDelivery(delivery, event, { ...tenant, traceparent }) ?? false
      }
    )
    return Effect.map(
      sql<StoredOutboundEvent>`
        WITH published AS (
          INSERT INTO payments.published_events (organization_id, environment, id)
          VALUES (${tenant.organizationId}, ${tenant.environment}, ${event.id})
          ON CONFLICT (organization_id, environment, id) DO NOTHING
          RETURNING 1
        ), ${parts}
        SELECT ${isNew} AS "isNew", (SELECT count(*) FROM delivery)::int AS deliveries,
          (SELECT count(*) FROM skipped)::int AS skipped,
          COALESCE((SELECT ${sql.literal(leasedRows)} FROM queued q), '[]') AS handed,
          extract(epoch FROM now())::float8 * 1000 AS "storedAt"`,
      ([stored]) => stored ?? { isNew: false, deliveries: 0, skipped: 0, handed: [], storedAt: 0 }
    )
  }
}))
