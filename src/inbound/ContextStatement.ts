import type { SqlClient, Statement } from "@effect/sql"
import type { MatchableEndpoint } from "../destinations/publishing/Publication.ts"
import { matchableEndpoints } from "../destinations/publishing/PublicationStatement.ts"
import type { SoldItemsReference } from "../events/EventReader.ts"
import type { SoldItems } from "../events/stripe/ProviderEvent.ts"
import type { Environment } from "../platform/kit/Environment.ts"
import type { OrganizationId } from "../platform/kit/Ids.ts"
import { parametersOf } from "../platform/storage/Statements.ts"

/** The items that a session offers; payers may buy others, for example by changing quantities. */
export interface OfferedItems extends SoldItems {
  /** Subtotal of these items; null if an equal subtotal would not prove that they were sold. */
  readonly subtotal: number | null
}

/** A notification's account and tenant, endpoints that may get its events, and items that its session offers. */
export interface InboundContext {
  readonly organizationId: OrganizationId
  readonly connected: boolean
  /** All endpoints that are not deleted, including paused ones. */
  readonly endpoints: ReadonlyArray<MatchableEndpoint>
  /** The items that its session or payment link was created to sell; null if it is not ours, or none were recorded. */
  readonly offered: OfferedItems | null
  /** Whether the account has not had its first payment yet, or this notification is about it (contract 6.6). */
  readonly awaitsFirstPayment: boolean
  /** Null if just looked up; a cached context's version must be compared with the stored one. */
  readonly version: string | null
}

/** A context from the database, with its tenant's version at that time. */
export type FoundContext = InboundContext & { readonly version: string }

export interface ContextQuery {
  readonly environment: Environment
  readonly providerEventId: string
  readonly accountId: string
  /** The session or payment link whose items are looked up; null if it is not about one. */
  readonly sold: SoldItemsReference | null
}

/** An id that can be queried: PostgreSQL text can't contain NUL, and a query with one fails. */
export const storable = (id: string | null | undefined): string | null =>
  id === null || id === undefined || id.includes("\u0000") ? null : id

/** SQL: the version of the tenant in row `row`; changes with its endpoints, their signing secrets and its account. */
export const tenantVersion = (sql: SqlClient.SqlClient, row: string): Statement.Fragment =>
  sql.literal(`COALESCE((
    SELECT v.version FROM payments.tenant_versions v
    WHERE v.organization_id = ${row}.organization_id AND v.environment = ${row}.environment), 0)`)

/** SQL: looks up the contexts of many notifications, one row per account with all its notifications. */
export const contextSql = (sql: SqlClient.SqlClient) => {
  const of = parametersOf(sql, contextColumns)
  return sql`
    WITH asked AS MATERIALIZED (
      SELECT * FROM unnest(${of.environment}::text[], ${of.accountId}::text[], ${of.providerEventId}::text[],
        ${of.sessionId}::text[], ${of.paymentLinkId}::text[]) WITH ORDINALITY
        AS q (environment, account_id, provider_event_id, session_id, payment_link_id, position)
    )
    SELECT a.organization_id AS "organizationId", a.status = 'connected' AS connected,
      ${matchableEndpoints(sql, "a")} AS endpoints, ${tenantVersion(sql, "a")}::text AS version, (
        SELECT json_agg(json_build_object(
          'position', q.position,
          'offered', CASE WHEN q.session_id IS NOT NULL OR q.payment_link_id IS NOT NULL THEN (
            SELECT json_build_object('priceIds', i.price_ids, 'productIds', i.product_ids,
              'subtotal', i.amount_subtotal)
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

export interface ContextRow extends Pick<InboundContext, "organizationId" | "connected" | "endpoints"> {
  readonly version: string
  readonly notifications: ReadonlyArray<
    Pick<InboundContext, "offered" | "awaitsFirstPayment"> & { readonly position: number }
  >
}

/** The contexts in the order of their queries, each with its tenant's version; undefined for unlinked accounts. */
export const contextsOf = (count: number, rows: ReadonlyArray<ContextRow>): ReadonlyArray<FoundContext | undefined> => {
  const contexts = Array.from({ length: count }, (): FoundContext | undefined => undefined)
  for (const { connected, endpoints, notifications, organizationId, version } of rows) {
    for (const { awaitsFirstPayment, offered, position } of notifications) {
      contexts[position - 1] = { organizationId, connected, endpoints, offered, awaitsFirstPayment, version }
    }
  }
  return contexts
}

export const contextValues = (queries: ReadonlyArray<ContextQuery>): ReadonlyArray<unknown> => [
  queries.map(({ environment }) => environment),
  queries.map(({ accountId }) => accountId),
  queries.map(({ providerEventId }) => providerEventId),
  queries.map(({ sold }) => storable(sold?.sessionId)),
  queries.map(({ sold }) => storable(sold?.paymentLinkId))
]
