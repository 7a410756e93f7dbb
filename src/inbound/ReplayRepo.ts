import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"
import type { Tenant } from "../kit/Tenant.ts"
import { enqueue } from "../publishing/Enqueue.ts"
import type { Consequence } from "./Consequences.ts"
import type { Receipt, ReceiptOutcome } from "./Receipt.ts"
import { claimsMilestone, deliveriesOf, stillMatching } from "./ReceiptsRepo.ts"

/** What a replay has stored. */
export interface StoredReplay {
  /** The event of each delivery that was made. */
  readonly made: ReadonlyArray<string>
  /** What the receipt says now. */
  readonly outcome: ReceiptOutcome
}

/** The SQL of replays; nobody outside the slice imports this. */
export const makeReplayRepo = Effect.map(SqlClient.SqlClient, (sql) => ({
  /**
   * Makes the deliveries that are missing of a notification's events, with the events themselves where they are gone, in
   * one statement. What exists stays as it is. The receipt says `delivered` from then on. One that said `malformed` says
   * what has become of it by now, and paused endpoints are told what they missed: nothing of it was made before.
   */
  insertMissing: (
    tenant: Tenant,
    receipt: Receipt,
    { events, outcome, unreadable }: Consequence
  ): Effect.Effect<StoredReplay, SqlError.SqlError> => {
    const wasMalformed = receipt.outcome === "malformed"
    const values = {
      organizationId: sql`${tenant.organizationId}`,
      environment: sql`${tenant.environment}`,
      deliveries: sql`${JSON.stringify(deliveriesOf({ events, receivedAt: receipt.receivedAt }))}`
    }
    return Effect.map(
      sql<{ made: ReadonlyArray<string>; outcome: ReceiptOutcome | null }>`
        WITH milestone AS (
          UPDATE payments.provider_accounts SET first_payment_event_id = ${receipt.providerEventId}
          WHERE ${claimsMilestone(events)}
            AND organization_id = ${tenant.organizationId} AND environment = ${tenant.environment}
            AND NOT had_payments_before
            AND (first_payment_event_id IS NULL OR first_payment_event_id = ${receipt.providerEventId})
          RETURNING 1
        ), matching AS (${stillMatching(sql, values)}), event AS (
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
          SELECT ${tenant.organizationId}::uuid, ${tenant.environment}::text, m.id, m."endpointId", m."eventId",
            m."secretIds", '{}'
          FROM matching m WHERE m.active
          ON CONFLICT (organization_id, environment, id) DO NOTHING
          RETURNING *
        ), queued AS (${enqueue(sql, "delivery")}), skipped AS (
          INSERT INTO payments.skipped_events
            (organization_id, environment, endpoint_id, event_id, type, provider_event_id)
          SELECT ${tenant.organizationId}::uuid, ${tenant.environment}::text, m."endpointId", m."eventId", m.type,
            ${receipt.providerEventId}::text
          FROM matching m WHERE ${wasMalformed} AND NOT m.active
          ON CONFLICT (organization_id, environment, endpoint_id, event_id) DO NOTHING
        ), receipt AS (
          UPDATE payments.receipts SET organization_id = ${tenant.organizationId}, reason = ${unreadable?.reason ?? null},
            outcome = CASE WHEN EXISTS (SELECT 1 FROM delivery) THEN 'delivered'
              WHEN outcome <> 'malformed' THEN outcome
              WHEN ${outcome}::text = 'delivered' THEN 'no_subscriber' ELSE ${outcome}::text END
          WHERE environment = ${tenant.environment} AND provider_event_id = ${receipt.providerEventId}
            AND (${wasMalformed} OR EXISTS (SELECT 1 FROM delivery))
          RETURNING outcome
        )
        SELECT ARRAY(SELECT event_id FROM delivery) AS made, (SELECT outcome FROM receipt) AS outcome`,
      ([row]) => ({ made: row?.made ?? [], outcome: row?.outcome ?? receipt.outcome })
    )
  }
}))
