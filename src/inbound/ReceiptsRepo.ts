import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"
import type { EventType } from "../events/Catalog.ts"
import type { Environment } from "../events/Environment.ts"
import type { SoldItems, SoldItemsReference } from "../events/stripe/Translate.ts"
import { newId, type OrganizationId } from "../kit/Ids.ts"
import { RequestId } from "../kit/Request.ts"
import type { Tenant } from "../kit/Tenant.ts"
import { recordDisconnection } from "../provider/Accounts.ts"
import { type MatchableEndpoint, matchableEndpoints } from "../publishing/MatchableEndpoint.ts"
import { type MatchedEvent, matchingPart, publicationValues, storingParts } from "../publishing/Publication.ts"
import { makePreparing, parametersOf } from "../storage/Statements.ts"
import type { ReceiptOutcome } from "./Receipt.ts"
import type { Unreadable } from "./Unreadable.ts"

/** What a notification is judged by: whose account it is of, where its news could go, and what its session sells. */
export interface InboundContext {
  readonly organizationId: OrganizationId
  readonly connected: boolean
  /** All that are not deleted, paused ones included. */
  readonly endpoints: ReadonlyArray<MatchableEndpoint>
  readonly soldItems: SoldItems | null
  /** Whether the account has yet to see its first payment, or saw it in this very notification (contract 6.6). */
  readonly awaitsFirstPayment: boolean
}

/** A notification to be stored with everything that it leads to. */
export interface NewReceipt {
  readonly environment: Environment
  readonly providerEventId: string
  readonly organizationId: OrganizationId | null
  readonly accountId: string | null
  readonly type: string
  readonly livemode: boolean
  readonly outcome: ReceiptOutcome
  readonly unreadable: Unreadable | null
  readonly providerCreatedAt: Date
  readonly receivedAt: Date
  readonly events: ReadonlyArray<MatchedEvent<EventType>>
  /** The account gave our access back: it is disconnected with the receipt, unless it was linked after that. */
  readonly deauthorizes: boolean
  readonly traceparent: string | null
}

/** What was stored of a notification. */
export interface StoredReceipt {
  /** Whether this was its first copy; of a further one nothing was stored. */
  readonly first: boolean
  readonly outcome: ReceiptOutcome
}

/** What to look up before a notification is judged. */
export interface ContextQuery {
  readonly environment: Environment
  readonly providerEventId: string
  readonly accountId: string
  /** Where to look for what its session sells; null where it is of none. */
  readonly sold: SoldItemsReference | null
}

/** What can be looked up: PostgreSQL's text holds no NUL, and refuses to be asked for one. */
const storable = (id: string | null | undefined): string | null =>
  id === null || id === undefined || id.includes("\u0000") ? null : id

/** What is known of an account, in one statement. */
const contextSql = (sql: SqlClient.SqlClient) => {
  const of = parametersOf(sql, ["environment", "accountId", "providerEventId", "sessionId", "paymentLinkId"])
  return sql`
    SELECT a.organization_id AS "organizationId", a.status = 'connected' AS connected, ${matchableEndpoints(sql, "a")} AS endpoints, (
      SELECT json_build_object('priceIds', i.price_ids, 'productIds', i.product_ids)
      FROM payments.sold_items i
      WHERE i.organization_id = a.organization_id AND i.environment = a.environment
        AND i.source_id IN (${of.sessionId}::text, ${of.paymentLinkId}::text)
      ORDER BY i.source_id = ${of.sessionId}::text DESC LIMIT 1
    ) AS "soldItems",
    NOT a.had_payments_before AND COALESCE(a.first_payment_event_id = ${of.providerEventId}, true) AS "awaitsFirstPayment"
    FROM payments.provider_accounts a
    WHERE a.environment = ${of.environment} AND a.account_id = ${of.accountId}`
}

/** Of simultaneous first payments of an account one makes the milestone: the statement's part `milestone` decides. */
export const unlessMilestoneIsTaken = (sql: SqlClient.SqlClient) => (type: string) =>
  sql.literal(`(${type} <> 'milestone.first_payment' OR EXISTS (SELECT 1 FROM milestone))`)

/**
 * Everything that is stored with a receipt, in one statement; its values are those of `insertionOf`. The milestone comes
 * first: whether it is this payment's is part of whether anything is delivered, which the receipt says.
 */
const insertionSql = (sql: SqlClient.SqlClient) => {
  const receipt = parametersOf(sql, insertionColumns)
  const admits = unlessMilestoneIsTaken(sql)
  const isFirst = sql`(SELECT first FROM receipt)`
  return sql`
    WITH milestone AS (
      UPDATE payments.provider_accounts SET first_payment_event_id = ${receipt.providerEventId}
      WHERE ${receipt.claimsMilestone} AND NOT EXISTS (
          SELECT 1 FROM payments.receipts k
          WHERE k.environment = ${receipt.environment} AND k.provider_event_id = ${receipt.providerEventId})
        AND organization_id = ${receipt.organizationId} AND environment = ${receipt.environment}
        AND NOT had_payments_before AND first_payment_event_id IS NULL
      RETURNING 1
    ), ${matchingPart(sql, receipt, { admits })}, receipt AS (
      INSERT INTO payments.receipts AS r (environment, provider_event_id, organization_id, account_id, type,
        livemode, outcome, reason, provider_created_at, received_at)
      VALUES (${receipt.environment}, ${receipt.providerEventId}, ${receipt.organizationId}, ${receipt.accountId},
        ${receipt.type}, ${receipt.livemode},
        CASE WHEN ${receipt.outcome}::text NOT IN ('delivered', 'no_subscriber') THEN ${receipt.outcome}::text
          WHEN EXISTS (SELECT 1 FROM matching WHERE active) THEN 'delivered' ELSE 'no_subscriber' END,
        ${receipt.reason}, ${receipt.providerCreatedAt}, ${receipt.receivedAt})
      ON CONFLICT (environment, provider_event_id) DO UPDATE SET duplicates = r.duplicates + 1
      RETURNING r.duplicates = 0 AS first, r.outcome
    ), deauthorized AS (
      UPDATE payments.provider_accounts SET status = 'disconnected', disconnected_at = now()
      WHERE ${receipt.deauthorizes} AND (SELECT first FROM receipt)
        AND organization_id = ${receipt.organizationId} AND environment = ${receipt.environment}
        AND account_id = ${receipt.accountId} AND status = 'connected'
        -- The provider dates to the second
        AND linked_at < ${receipt.providerCreatedAt}::timestamptz + interval '1 second'
      RETURNING organization_id, environment, account_id
    ), disconnection AS (${recordDisconnection(sql, "deauthorized", receipt)}),
    ${storingParts(sql, receipt, {
      providerEventId: receipt.providerEventId,
      sourceEventId: receipt.providerEventId,
      traceparent: receipt.traceparent,
      eventsIf: isFirst,
      deliveriesIf: isFirst,
      skippedIf: isFirst,
      admits
    })}
    SELECT first, outcome FROM receipt`
}

const insertionColumns = [
  "environment",
  "providerEventId",
  "organizationId",
  "accountId",
  "type",
  "livemode",
  "outcome",
  "reason",
  "providerCreatedAt",
  "receivedAt",
  "claimsMilestone",
  "deauthorizes",
  "eventIds",
  "eventTypes",
  "eventPayloads",
  "deliveries",
  "traceparent",
  "auditId",
  "requestId"
] as const

/** Under which id and request a disconnection is recorded; null where there is none. */
interface AuditOfReceipt {
  readonly auditId: string | null
  readonly requestId: string
}

/** The values of the insertion, by its columns. */
const insertionOf = (
  receipt: NewReceipt,
  record: AuditOfReceipt
): Readonly<Record<(typeof insertionColumns)[number], unknown>> => ({
  environment: receipt.environment,
  providerEventId: receipt.providerEventId,
  organizationId: receipt.organizationId,
  accountId: receipt.accountId,
  type: receipt.type,
  livemode: receipt.livemode,
  outcome: receipt.outcome,
  reason: receipt.unreadable?.reason ?? null,
  // As text: the driver would write them out by their local parts
  providerCreatedAt: receipt.providerCreatedAt.toISOString(),
  receivedAt: receipt.receivedAt.toISOString(),
  claimsMilestone: claimsMilestone(receipt.events),
  deauthorizes: receipt.deauthorizes,
  ...publicationValues(receipt.events, receipt.receivedAt),
  traceparent: receipt.traceparent,
  ...record
})

/** The SQL of the slice; nobody outside it imports this. */
export const makeReceiptsRepo = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const prepare = yield* makePreparing
  const context = prepare<InboundContext>(contextSql(sql))
  const insertion = prepare<StoredReceipt>(insertionSql(sql))

  return {
    /** Everything about the account in one round trip. Nothing where it is not linked in this environment. */
    findContext: ({
      accountId,
      environment,
      providerEventId,
      sold
    }: ContextQuery): Effect.Effect<InboundContext | undefined, SqlError.SqlError> =>
      Effect.map(
        context([environment, accountId, providerEventId, storable(sold?.sessionId), storable(sold?.paymentLinkId)]),
        ([row]) => row
      ),

    /**
     * Stores a receipt, its events, its deliveries and what paused endpoints missed in one statement, so in one
     * transaction. A second copy of the notification is counted and changes nothing else. Of simultaneous first payments
     * of an account one makes the milestone: the account's row decides. Endpoints that were deleted or paused since they
     * were looked up get no delivery.
     */
    insert: (receipt: NewReceipt): Effect.Effect<StoredReceipt, SqlError.SqlError> => {
      // Few notifications disconnect an account; those are recorded
      const recorded: Effect.Effect<AuditOfReceipt> = receipt.deauthorizes
        ? Effect.zipWith(newId, RequestId, (auditId, requestId) => ({ auditId, requestId }))
        : Effect.succeed({ auditId: null, requestId: "" })
      return Effect.flatMap(recorded, (record) => {
        const values = insertionOf(receipt, record)
        return Effect.flatMap(insertion(insertionColumns.map((column) => values[column])), ([row]) =>
          row === undefined ? Effect.dieMessage("An upsert answers its row") : Effect.succeed(row)
        )
      })
    },

    /** In a transaction: nobody links, unlinks or disconnects the tenant's account until that ends. */
    lockAccount: ({ environment, organizationId }: Tenant): Effect.Effect<void, SqlError.SqlError> =>
      Effect.asVoid(sql`
        SELECT 1 FROM payments.provider_accounts
        WHERE organization_id = ${organizationId} AND environment = ${environment} FOR UPDATE`)
  }
})

/** Whether events hold the milestone of a first payment, which one notification of an account may make. */
export const claimsMilestone = (events: ReadonlyArray<MatchedEvent<EventType>>): boolean =>
  events.some(({ type }) => type === "milestone.first_payment")
