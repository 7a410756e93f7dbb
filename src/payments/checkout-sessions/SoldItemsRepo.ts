import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"
import type { SoldItems } from "../../events/stripe/ProviderEvent.ts"
import { ofTenant, type Tenant } from "../../platform/kit/Tenant.ts"
import { removeOld } from "../../platform/storage/Batches.ts"

/**
 * How long a session's items are kept: longer than its payment may take, which is 60 days for the slowest vouchers. For
 * a later notification they are read from the provider, as if never recorded. Payment links' items are always kept.
 */
export const salesKept = "90 days"

/** A session's sale, as far as this service recorded it. */
export interface Sale {
  readonly session: string
  /** The sold items, in words; null if they were not recorded. */
  readonly description: string | null
  readonly reference: string | null
  readonly checkoutPage: string | null
}

/** The recorded facts about a session or link, besides its items. */
export interface SaleDetails extends Partial<Omit<Sale, "session">> {
  /** The exact subtotal of these lines, if a session with it can't have sold anything else. */
  readonly subtotal?: number | null
}

/** The facts about a sale in a finished session. */
export interface FinishedSession {
  readonly sessionId: string
  readonly paymentLinkId: string | null
  readonly paymentId: string | null
  readonly reference: string | null
  readonly paid: boolean
}

/** The sessions of one reference that are found, the newest. */
const sessionsFound = 20

/** The record of the items of this service's sessions and payment links, by their id (contract 6.5). */
export const makeSoldItemsRepo = Effect.map(SqlClient.SqlClient, (sql) => ({
  /** Records the items of a new session or link; does nothing if they are already recorded. */
  insert: (
    tenant: Tenant,
    sourceId: string,
    items: SoldItems,
    { checkoutPage = null, description = null, reference = null, subtotal = null }: SaleDetails = {}
  ): Effect.Effect<void, SqlError.SqlError> =>
    sql`
      INSERT INTO payments.sold_items (organization_id, environment, source_id, price_ids, product_ids, amount_subtotal,
        description, reference, checkout_page)
      VALUES (${tenant.organizationId}, ${tenant.environment}, ${sourceId}, ${items.priceIds}::text[],
        ${items.productIds}::text[], ${subtotal}, ${description}, ${reference}, ${checkoutPage})
      ON CONFLICT (organization_id, environment, source_id) DO NOTHING`.pipe(Effect.asVoid),

  /** Records that a session is finished, if it or its payment link is recorded: then this service created it. */
  finish: (
    tenant: Tenant,
    { paid, paymentId, paymentLinkId, reference, sessionId }: FinishedSession
  ): Effect.Effect<void, SqlError.SqlError> =>
    sql`
      INSERT INTO payments.sold_items AS s (organization_id, environment, source_id, price_ids, product_ids, description,
        reference, payment_id, sold_at)
      SELECT r.organization_id, r.environment, ${sessionId}, r.price_ids, r.product_ids, r.description, ${reference}::text,
        ${paymentId}::text, CASE WHEN ${paid} THEN now() END
      FROM payments.sold_items r
      WHERE ${ofTenant(sql, tenant, "r")} AND r.source_id IN (${sessionId}, ${paymentLinkId})
      ORDER BY r.source_id = ${sessionId} DESC LIMIT 1
      ON CONFLICT (organization_id, environment, source_id) DO UPDATE SET reference = EXCLUDED.reference,
        payment_id = EXCLUDED.payment_id, sold_at = COALESCE(s.sold_at, EXCLUDED.sold_at)`.pipe(Effect.asVoid),

  /** The newest sessions of an order, by the shop's reference. */
  sessionsOf: (tenant: Tenant, reference: string): Effect.Effect<ReadonlyArray<string>, SqlError.SqlError> =>
    Effect.map(
      sql<{ readonly id: string }>`
        SELECT s.source_id AS id FROM payments.sold_items s
        WHERE ${ofTenant(sql, tenant, "s")} AND s.reference = ${reference}
        ORDER BY s.created_at DESC LIMIT ${sessionsFound}`,
      (rows) => rows.map(({ id }) => id)
    ),

  salesOf: (
    tenant: Tenant,
    paymentIds: ReadonlyArray<string>
  ): Effect.Effect<ReadonlyArray<Sale & { readonly paymentId: string }>, SqlError.SqlError> => sql`
    SELECT s.payment_id AS "paymentId", s.source_id AS session, s.description, s.reference,
      s.checkout_page AS "checkoutPage"
    FROM payments.sold_items s
    WHERE ${ofTenant(sql, tenant, "s")} AND s.payment_id = ANY (${paymentIds}::text[])`,

  /** Removes old records of sessions' items, to which anybody who opens a checkout page adds. */
  clean: removeOld(sql, {
    table: "sold_items",
    key: ["organization_id", "environment", "source_id"],
    old: sql`starts_with(r.source_id, 'cs_') AND r.created_at < now() - ${salesKept}::interval`,
    by: "created_at"
  })
}))
