import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"
import {
  matchingPart,
  parametersFor,
  publicationValues,
  sourcePart,
  storingParts
} from "../destinations/publishing/Publication.ts"
import type { Tenant } from "../platform/kit/Tenant.ts"
import { addDayOf } from "../platform/storage/DayPartitions.ts"
import type { Decision } from "./Decision.ts"
import type { Receipt, ReceiptOutcome } from "./Receipt.ts"
import { claimsMilestone, unlessMilestoneIsTaken } from "./ReceiptStatement.ts"

export interface StoredReplay {
  /** The event id of each delivery created. */
  readonly made: ReadonlyArray<string>
  /** The receipt's outcome now. */
  readonly outcome: ReceiptOutcome
}

/** Outcomes that led to nothing: the notification could not be read, or its account was not linked. */
const madeNothing: ReadonlyArray<ReceiptOutcome> = ["malformed", "unlinked"]

/** The SQL of replays; nothing outside the slice imports this. */
export const makeReplayRepo = Effect.map(SqlClient.SqlClient, (sql) => ({
  /**
   * Creates the missing deliveries of a notification's events, and the events themselves if they are gone, in one
   * statement. Existing rows are unchanged. If it creates a delivery, the receipt becomes `delivered`. A receipt that
   * was `malformed` or `unlinked` gets its new outcome, and skipped events are recorded for paused endpoints, since
   * none were before.
   */
  insertMissing: (
    tenant: Tenant,
    receipt: Receipt,
    { events, outcome, unreadable }: Decision
  ): Effect.Effect<StoredReplay, SqlError.SqlError> => {
    const wasNothing = madeNothing.includes(receipt.outcome)
    // False for stored status events, which are replayed with the receipt's old outcome and not created again
    const becomesMore = sql`outcome = ANY (${madeNothing}::text[]) AND NOT ${madeNothing.includes(outcome)}`
    const { providerEventId, receivedAt } = receipt
    const of = parametersFor(sql, publicationValues([{ events, receivedAt }]))
    const admits = unlessMilestoneIsTaken(sql)
    const newReceipt = sql`
        new_receipt AS (
          UPDATE payments.receipts
          SET organization_id = ${tenant.organizationId}, reason = ${unreadable?.reason ?? null},
            outcome = CASE WHEN EXISTS (SELECT 1 FROM delivery) THEN 'delivered'
              WHEN NOT (${becomesMore}) THEN outcome
              WHEN ${outcome}::text = 'delivered' THEN 'no_subscriber' ELSE ${outcome}::text END
          WHERE environment = ${tenant.environment} AND provider_event_id = ${receipt.providerEventId}
            AND (EXISTS (SELECT 1 FROM delivery) OR ${becomesMore})
          RETURNING outcome
        )`
    const insert = sql<{ made: ReadonlyArray<string>; outcome: ReceiptOutcome | null }>`
        WITH milestone AS (
          UPDATE payments.provider_accounts SET first_payment_event_id = ${receipt.providerEventId}
          WHERE ${claimsMilestone(events)}
            AND organization_id = ${tenant.organizationId} AND environment = ${tenant.environment}
            AND NOT had_payments_before
            AND (first_payment_event_id IS NULL OR first_payment_event_id = ${receipt.providerEventId})
          RETURNING 1
        ), ${sourcePart(sql, tenant, { providerEventId, receivedAt, sourceEventId: providerEventId, traceparent: null })},
        ${matchingPart(sql, of, { admits })}, ${storingParts(sql, of, { skippedIf: sql`${wasNothing}`, admits })},
        ${newReceipt}
        SELECT ARRAY(SELECT m."eventId" FROM delivery d JOIN matching m ON m.id = d.id) AS made,
          (SELECT outcome FROM new_receipt) AS outcome`
    return Effect.map(Effect.zipRight(addDayOf(sql, receivedAt), insert), ([row]) => ({
      made: row?.made ?? [],
      outcome: row?.outcome ?? receipt.outcome
    }))
  }
}))
