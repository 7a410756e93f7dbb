import { SqlClient, SqlError, type Statement } from "@effect/sql"
import { Effect, FiberRef } from "effect"
import type { EventType } from "../events/Catalog.ts"
import type { Environment } from "../events/Environment.ts"
import type { SoldItems, SoldItemsReference } from "../events/stripe/Translate.ts"
import { Gathering } from "../kit/Gathering.ts"
import { newId, type OrganizationId } from "../kit/Ids.ts"
import { RequestId } from "../kit/Request.ts"
import type { Tenant } from "../kit/Tenant.ts"
import { recordDisconnection } from "../provider/Accounts.ts"
import { type MatchableEndpoint, matchableEndpoints } from "../publishing/MatchableEndpoint.ts"
import { type MatchedEvent, matchingPart, publicationValues, storingParts } from "../publishing/Publication.ts"
import { isUnavailable } from "../storage/Database.ts"
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

/** What is known of accounts, in one statement: a row for each, with what its notifications ask about. */
const contextSql = (sql: SqlClient.SqlClient) => {
  const of = parametersOf(sql, contextColumns)
  return sql`
    WITH asked AS MATERIALIZED (
      SELECT * FROM unnest(${of.environment}::text[], ${of.accountId}::text[], ${of.providerEventId}::text[],
        ${of.sessionId}::text[], ${of.paymentLinkId}::text[]) WITH ORDINALITY
        AS q (environment, account_id, provider_event_id, session_id, payment_link_id, position)
    )
    SELECT a.organization_id AS "organizationId", a.status = 'connected' AS connected,
      ${matchableEndpoints(sql, "a")} AS endpoints, (
        SELECT json_agg(json_build_object(
          'position', q.position,
          'soldItems', CASE WHEN q.session_id IS NOT NULL OR q.payment_link_id IS NOT NULL THEN (
            SELECT json_build_object('priceIds', i.price_ids, 'productIds', i.product_ids)
            FROM payments.sold_items i
            WHERE i.organization_id = a.organization_id AND i.environment = a.environment
              AND i.source_id IN (q.session_id, q.payment_link_id)
            ORDER BY i.source_id = q.session_id DESC NULLS LAST LIMIT 1
          ) END,
          'awaitsFirstPayment',
            NOT a.had_payments_before AND COALESCE(a.first_payment_event_id = q.provider_event_id, true)))
        FROM asked q WHERE q.environment = a.environment AND q.account_id = a.account_id
      ) AS notifications
    FROM (SELECT DISTINCT environment, account_id FROM asked) k
    JOIN payments.provider_accounts a ON a.environment = k.environment AND a.account_id = k.account_id`
}

const contextColumns = ["environment", "accountId", "providerEventId", "sessionId", "paymentLinkId"] as const

interface ContextRow extends Pick<InboundContext, "organizationId" | "connected" | "endpoints"> {
  readonly notifications: ReadonlyArray<
    Pick<InboundContext, "soldItems" | "awaitsFirstPayment"> & { readonly position: number }
  >
}

/** The contexts that were asked for, in the order of their queries. */
const contextsOf = (count: number, rows: ReadonlyArray<ContextRow>): ReadonlyArray<InboundContext | undefined> => {
  const contexts = Array.from({ length: count }, (): InboundContext | undefined => undefined)
  for (const { connected, endpoints, notifications, organizationId } of rows) {
    for (const { awaitsFirstPayment, position, soldItems } of notifications) {
      contexts[position - 1] = { organizationId, connected, endpoints, soldItems, awaitsFirstPayment }
    }
  }
  return contexts
}

/** Of simultaneous first payments of an account one makes the milestone: the statement's part `milestone` decides. */
export const unlessMilestoneIsTaken = (sql: SqlClient.SqlClient) => (type: string) =>
  sql.literal(`(${type} <> 'milestone.first_payment' OR EXISTS (SELECT 1 FROM milestone))`)

/** The values of receipts, each an array with a value for each of them, and of what is published with them. */
const receiptColumns = [
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
  "traceparent",
  "eventIds",
  "eventTypes",
  "eventPayloads",
  "eventPositions",
  "deliveries"
] as const

/** The further values of a receipt that can change its account. */
const accountColumns = ["claimsMilestone", "deauthorizes", "auditId", "requestId"] as const

type ReceiptParameters = Readonly<Record<(typeof receiptColumns)[number], Statement.Fragment>>

/** What one receipt changes of its account: parts of the statement, each behind a comma. */
interface AccountChanges {
  /** Behind `source`. Comes first: whether it is this payment's is part of whether anything is delivered. */
  readonly milestone: Statement.Fragment
  /** Behind `fresh`, the sources whose receipt is their first copy's. */
  readonly disconnection: Statement.Fragment
  readonly admits: (column: string) => Statement.Fragment
}

/** Everything that is stored with receipts, in one statement. Answers a `StoredReceipt` for each, and its position. */
const insertionSql = (sql: SqlClient.SqlClient, of: ReceiptParameters, change: AccountChanges): Statement.Fragment =>
  sql`
    WITH source AS MATERIALIZED (
      SELECT s.*, s.provider_event_id AS source_event_id
      FROM unnest(${of.environment}::text[], ${of.providerEventId}::text[], ${of.organizationId}::uuid[],
        ${of.accountId}::text[], ${of.type}::text[], ${of.livemode}::boolean[], ${of.outcome}::text[],
        ${of.reason}::text[], ${of.providerCreatedAt}::timestamptz[], ${of.receivedAt}::timestamptz[],
        ${of.traceparent}::text[]) WITH ORDINALITY
        AS s (environment, provider_event_id, organization_id, account_id, type, livemode, outcome, reason,
          provider_created_at, received_at, traceparent, position)
    )${change.milestone}, ${matchingPart(sql, of, change)}, receipt AS (
      INSERT INTO payments.receipts AS r (environment, provider_event_id, organization_id, account_id, type,
        livemode, outcome, reason, provider_created_at, received_at)
      SELECT s.environment, s.provider_event_id, s.organization_id, s.account_id, s.type, s.livemode,
        CASE WHEN s.outcome NOT IN ('delivered', 'no_subscriber') THEN s.outcome
          WHEN EXISTS (SELECT 1 FROM matching m WHERE m.position = s.position AND m.active) THEN 'delivered'
          ELSE 'no_subscriber' END,
        s.reason, s.provider_created_at, s.received_at
      FROM source s
      -- Always in one order: two statements that have receipts in common never wait for each other
      ORDER BY s.environment, s.provider_event_id
      ON CONFLICT (environment, provider_event_id) DO UPDATE SET duplicates = r.duplicates + 1
      RETURNING r.environment, r.provider_event_id, r.duplicates = 0 AS first, r.outcome
    ), fresh AS (
      SELECT s.* FROM source s JOIN receipt r
        ON r.environment = s.environment AND r.provider_event_id = s.provider_event_id
      WHERE r.first
    )${change.disconnection}, ${storingParts(sql, of, { from: "fresh", admits: change.admits })}
    SELECT s.position::int AS position, r.first, r.outcome
    FROM source s JOIN receipt r ON r.environment = s.environment AND r.provider_event_id = s.provider_event_id`

/** For receipts that change nothing of their accounts: no milestone among them. */
const batchSql = (sql: SqlClient.SqlClient): Statement.Fragment =>
  insertionSql(sql, parametersOf(sql, receiptColumns), {
    milestone: sql``,
    disconnection: sql``,
    admits: (column) => sql.literal(`${column} <> 'milestone.first_payment'`)
  })

/** For one receipt that may. */
const accountSql = (sql: SqlClient.SqlClient): Statement.Fragment => {
  const of = parametersOf(sql, [...receiptColumns, ...accountColumns])
  return insertionSql(sql, of, {
    milestone: sql`, milestone AS (
      UPDATE payments.provider_accounts a SET first_payment_event_id = s.provider_event_id FROM source s
      WHERE ${of.claimsMilestone} AND NOT EXISTS (
          SELECT 1 FROM payments.receipts k
          WHERE k.environment = s.environment AND k.provider_event_id = s.provider_event_id)
        AND a.organization_id = s.organization_id AND a.environment = s.environment
        AND NOT a.had_payments_before AND a.first_payment_event_id IS NULL
      RETURNING 1
    )`,
    disconnection: sql`, deauthorized AS (
      UPDATE payments.provider_accounts a SET status = 'disconnected', disconnected_at = now() FROM fresh s
      WHERE ${of.deauthorizes} AND a.organization_id = s.organization_id AND a.environment = s.environment
        AND a.account_id = s.account_id AND a.status = 'connected'
        -- The provider dates to the second
        AND a.linked_at < s.provider_created_at + interval '1 second'
      RETURNING a.organization_id, a.environment, a.account_id
    ), disconnection AS (${recordDisconnection(sql, "deauthorized", of)})`,
    admits: unlessMilestoneIsTaken(sql)
  })
}

/** The values of an insertion, by its columns. */
const insertionOf = (
  receipts: ReadonlyArray<NewReceipt>
): Readonly<Record<(typeof receiptColumns)[number], unknown>> => ({
  environment: receipts.map(({ environment }) => environment),
  providerEventId: receipts.map(({ providerEventId }) => providerEventId),
  organizationId: receipts.map(({ organizationId }) => organizationId),
  accountId: receipts.map(({ accountId }) => accountId),
  type: receipts.map(({ type }) => type),
  livemode: receipts.map(({ livemode }) => livemode),
  outcome: receipts.map(({ outcome }) => outcome),
  reason: receipts.map(({ unreadable }) => unreadable?.reason ?? null),
  // As text: the driver would write them out by their local parts
  providerCreatedAt: receipts.map(({ providerCreatedAt }) => providerCreatedAt.toISOString()),
  receivedAt: receipts.map(({ receivedAt }) => receivedAt.toISOString()),
  traceparent: receipts.map(({ traceparent }) => traceparent),
  ...publicationValues(receipts)
})

/**
 * What arrives while so many statements are under way gathers for the next; each is one batch. It waits for as long as it
 * would for a connection, and fails as that does.
 */
const gathering = {
  lanes: 2,
  maxBatch: 64,
  patience: {
    millis: 5000,
    error: () => new SqlError.SqlError({ cause: undefined, message: "The database is too slow for what arrives" })
  },
  isOfOne: (error: SqlError.SqlError) => !isUnavailable(error)
} as const

type PositionedReceipt = StoredReceipt & { readonly position: number }

/** The SQL of the slice; nobody outside it imports this. */
export const makeReceiptsRepo = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const prepare = yield* makePreparing
  const context = prepare<ContextRow>(contextSql(sql))
  const insertBatch = prepare<PositionedReceipt>(batchSql(sql))
  const insertAlone = prepare<PositionedReceipt>(accountSql(sql))

  const findContexts = (queries: ReadonlyArray<ContextQuery>) =>
    Effect.map(
      context([
        queries.map(({ environment }) => environment),
        queries.map(({ accountId }) => accountId),
        queries.map(({ providerEventId }) => providerEventId),
        queries.map(({ sold }) => storable(sold?.sessionId)),
        queries.map(({ sold }) => storable(sold?.paymentLinkId))
      ]),
      (rows) => contextsOf(queries.length, rows)
    )

  const insertAll = (receipts: ReadonlyArray<NewReceipt>) => {
    const values = insertionOf(receipts)
    return Effect.map(insertBatch(receiptColumns.map((column) => values[column])), inOrder)
  }

  const contexts = yield* Gathering.make({
    ...gathering,
    keyOf: ({ environment, providerEventId }: ContextQuery) => `${environment} ${providerEventId}`,
    run: (queries) => Effect.withTracerEnabled(findContexts(queries), false)
  })
  const insertions = yield* Gathering.make({
    ...gathering,
    keyOf: ({ environment, providerEventId }: NewReceipt) => `${environment} ${providerEventId}`,
    run: (receipts) => Effect.withTracerEnabled(insertAll(receipts), false)
  })

  const findOne = (query: ContextQuery) => Effect.map(findContexts([query]), ([found]) => found)
  const insertOne = (receipt: NewReceipt) => Effect.flatMap(insertAll([receipt]), onlyOne)

  /** Together with others that arrive just now; by itself within a transaction, and if the request is traced. */
  const gathered =
    <Input, Output>(
      together: Gathering<Input, Output, SqlError.SqlError>,
      alone: (input: Input) => Effect.Effect<Output, SqlError.SqlError>
    ) =>
    (input: Input): Effect.Effect<Output, SqlError.SqlError> =>
      Effect.withFiberRuntime((fiber) =>
        fiber.getFiberRef(FiberRef.currentTracerEnabled) ||
        fiber.currentContext.unsafeMap.has(SqlClient.TransactionConnection.key)
          ? alone(input)
          : together.submit(input)
      )
  const insertGathered = gathered(insertions, insertOne)

  return {
    /** Everything about the account in one round trip. Undefined if it is not linked in this environment. */
    findContext: gathered(contexts, findOne),

    /**
     * Stores a receipt, its events, its deliveries and what paused endpoints missed in one statement, so in one
     * transaction. A second copy of the notification is counted and changes nothing else. Of simultaneous first payments
     * of an account one makes the milestone: the account's row decides. Endpoints that were deleted or paused since they
     * were looked up get no delivery.
     */
    insert: (receipt: NewReceipt): Effect.Effect<StoredReceipt, SqlError.SqlError> => {
      const milestone = claimsMilestone(receipt.events)
      if (!milestone && !receipt.deauthorizes) return insertGathered(receipt)
      const values = insertionOf([receipt])
      return Effect.zipWith(newId, RequestId, (auditId, requestId) => [
        milestone,
        receipt.deauthorizes,
        auditId,
        requestId
      ]).pipe(
        Effect.flatMap((further) => insertAlone([...receiptColumns.map((column) => values[column]), ...further])),
        Effect.flatMap((rows) => onlyOne(inOrder(rows)))
      )
    },

    /** In a transaction: nobody links, unlinks or disconnects the tenant's account until that ends. */
    lockAccount: ({ environment, organizationId }: Tenant): Effect.Effect<void, SqlError.SqlError> =>
      Effect.asVoid(sql`
        SELECT 1 FROM payments.provider_accounts
        WHERE organization_id = ${organizationId} AND environment = ${environment} FOR UPDATE`)
  }
})

const inOrder = (rows: ReadonlyArray<PositionedReceipt>): ReadonlyArray<StoredReceipt> =>
  rows.toSorted((a, b) => a.position - b.position).map(({ first, outcome }) => ({ first, outcome }))

const onlyOne = ([stored]: ReadonlyArray<StoredReceipt>): Effect.Effect<StoredReceipt> =>
  stored === undefined ? Effect.dieMessage("An upsert answers its row") : Effect.succeed(stored)

/** Whether events hold the milestone of a first payment, which one notification of an account may make. */
export const claimsMilestone = (events: ReadonlyArray<MatchedEvent<EventType>>): boolean =>
  events.some(({ type }) => type === "milestone.first_payment")
