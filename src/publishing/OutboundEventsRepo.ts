import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"
import type { EndpointId } from "../kit/Ids.ts"
import type { Tenant } from "../kit/Tenant.ts"
import { enqueue } from "./Enqueue.ts"
import { type MatchableEndpoint, matchableEndpoints } from "./MatchableEndpoint.ts"
import type { NewDelivery } from "./NewDelivery.ts"

/** An event to be stored with everything that it leads to. */
export interface NewOutboundEvent {
  readonly eventId: string
  readonly type: string
  readonly payload: string
  readonly sourceEventId: string
  readonly deliveries: ReadonlyArray<NewDelivery>
  /** Endpoints that it would go to if they were not paused. */
  readonly skippedBy: ReadonlyArray<EndpointId>
  readonly traceparent: string | null
}

/** The SQL of the slice; nobody outside it imports this. */
export const makeOutboundEventsRepo = Effect.map(SqlClient.SqlClient, (sql) => ({
  /** The tenant's endpoints that are not deleted, paused ones included; nothing where there is no such tenant. */
  findEndpoints: (tenant: Tenant): Effect.Effect<ReadonlyArray<MatchableEndpoint> | undefined, SqlError.SqlError> =>
    Effect.map(
      sql<{ readonly endpoints: ReadonlyArray<MatchableEndpoint> }>`
        SELECT ${matchableEndpoints(sql, "w")} AS endpoints
        FROM payments.workspaces w
        WHERE w.organization_id = ${tenant.organizationId} AND w.environment = ${tenant.environment}`,
      ([row]) => row?.endpoints
    ),

  /**
   * Stores an event, its deliveries and what paused endpoints missed in one statement. An event that is known changes
   * nothing. Answers whether it was new.
   */
  insert: (tenant: Tenant, event: NewOutboundEvent): Effect.Effect<boolean, SqlError.SqlError> =>
    Effect.map(
      sql`
        WITH event AS (
          INSERT INTO payments.events (organization_id, environment, id, type, payload)
          VALUES (${tenant.organizationId}, ${tenant.environment}, ${event.eventId}, ${event.type}, ${event.payload})
          ON CONFLICT (organization_id, environment, id) DO NOTHING
          RETURNING organization_id, environment, id, type
        ), delivery AS (
          INSERT INTO payments.deliveries
            (organization_id, environment, id, endpoint_id, event_id, secret_ids, traceparent, attempts)
          SELECT event.organization_id, event.environment, d.id, d."endpointId", event.id, d."secretIds",
            ${event.traceparent}::text, '{}'
          FROM event, json_to_recordset(${JSON.stringify(event.deliveries)}::json)
            AS d (id uuid, "endpointId" uuid, "secretIds" uuid[])
          RETURNING *
        ), queued AS (${enqueue(sql, "delivery")}), skipped AS (
          INSERT INTO payments.skipped_events
            (organization_id, environment, endpoint_id, event_id, type, provider_event_id)
          SELECT event.organization_id, event.environment, s.id, event.id, event.type, ${event.sourceEventId}::text
          FROM event, unnest(${event.skippedBy}::uuid[]) AS s (id)
        )
        SELECT 1 FROM event`,
      (rows) => rows.length > 0
    )
}))
