import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"
import { enqueue } from "../deliveries/Enqueue.ts"
import type { Tenant } from "../kit/Tenant.ts"
import type { Receipt } from "./Receipt.ts"
import { claimsMilestone, consequencesOf, type NewEvent } from "./ReceiptsRepo.ts"

/** The SQL of replays; nobody outside the slice imports this. */
export const makeReplayRepo = Effect.map(SqlClient.SqlClient, (sql) => ({
  /**
   * Makes the deliveries that are missing of these events, with the events themselves where they are gone, in one
   * statement. What exists stays as it is. The receipt says `delivered` from then on. Answers the event of each
   * delivery that was made.
   */
  insertMissing: (
    tenant: Tenant,
    receipt: Receipt,
    events: ReadonlyArray<NewEvent>
  ): Effect.Effect<ReadonlyArray<string>, SqlError.SqlError> => {
    const { deliveries } = consequencesOf({ events, receivedAt: receipt.receivedAt })
    return Effect.map(
      sql<{ eventId: string }>`
        WITH milestone AS (
          UPDATE payments.provider_accounts SET first_payment_event_id = ${receipt.providerEventId}
          WHERE ${claimsMilestone(events)}
            AND organization_id = ${tenant.organizationId} AND environment = ${tenant.environment}
            AND NOT had_payments_before
            AND (first_payment_event_id IS NULL OR first_payment_event_id = ${receipt.providerEventId})
          RETURNING 1
        ), event AS (
          INSERT INTO payments.events (organization_id, environment, id, type, payload, provider_event_id)
          SELECT ${tenant.organizationId}::uuid, ${tenant.environment}::text, e.id, e.type, e.payload,
            ${receipt.providerEventId}::text
          FROM unnest(
            ${events.map(({ id }) => id)}::text[],
            ${events.map(({ type }) => type)}::text[],
            ${events.map(({ payload }) => payload)}::text[]
          ) AS e (id, type, payload)
          WHERE e.type <> 'milestone.first_payment' OR EXISTS (SELECT 1 FROM milestone)
          ON CONFLICT (organization_id, environment, id) DO NOTHING
        ), delivery AS (
          INSERT INTO payments.deliveries (organization_id, environment, id, endpoint_id, event_id, secret_ids, attempts)
          SELECT ${tenant.organizationId}::uuid, ${tenant.environment}::text, d.id, d."endpointId", d."eventId",
            d."secretIds", '{}'
          FROM json_to_recordset(${JSON.stringify(deliveries)}::json)
            AS d (id uuid, "endpointId" uuid, "eventId" text, "secretIds" uuid[], type text)
          WHERE d.type <> 'milestone.first_payment' OR EXISTS (SELECT 1 FROM milestone)
          ON CONFLICT (organization_id, environment, id) DO NOTHING
          RETURNING *
        ), queued AS (${enqueue(sql, "delivery")}), receipt AS (
          UPDATE payments.receipts SET outcome = 'delivered', organization_id = ${tenant.organizationId}
          WHERE environment = ${tenant.environment} AND provider_event_id = ${receipt.providerEventId}
            AND EXISTS (SELECT 1 FROM delivery)
        )
        SELECT event_id AS "eventId" FROM delivery`,
      (rows) => rows.map(({ eventId }) => eventId)
    )
  }
}))
