import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"
import type { SoldItems } from "../../events/stripe/Translate.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import { removeOld } from "../../platform/storage/Batches.ts"

/**
 * How long a session's items are kept: longer than its payment may take, which is 60 days for the slowest vouchers. For
 * a later notification they are read from the provider, as if never recorded. Payment links' items are always kept.
 */
const keepFor = "90 days"

/** The record of the items of this service's sessions and payment links, by their id (contract 6.5). */
export const makeSoldItemsRepo = Effect.map(SqlClient.SqlClient, (sql) => ({
  /**
   * Records the items of a new session or link; does nothing if they are already recorded.
   *
   * @param subtotal the exact subtotal of these lines, if a session with it can't have sold anything else; else null
   */
  insert: (
    tenant: Tenant,
    sourceId: string,
    items: SoldItems,
    subtotal: number | null = null
  ): Effect.Effect<void, SqlError.SqlError> =>
    sql`
      INSERT INTO payments.sold_items (organization_id, environment, source_id, price_ids, product_ids, amount_subtotal)
      VALUES (${tenant.organizationId}, ${tenant.environment}, ${sourceId}, ${items.priceIds}::text[],
        ${items.productIds}::text[], ${subtotal})
      ON CONFLICT (organization_id, environment, source_id) DO NOTHING`.pipe(Effect.asVoid),

  /** Removes old records of sessions' items, to which anybody who opens a checkout page adds. */
  clean: removeOld(sql, {
    table: "sold_items",
    key: ["organization_id", "environment", "source_id"],
    old: sql`starts_with(r.source_id, 'cs_') AND r.created_at < now() - ${keepFor}::interval`,
    by: "created_at"
  })
}))
