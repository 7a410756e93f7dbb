import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import type { SoldItems } from "../Provider.ts"

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
      ON CONFLICT (organization_id, environment, source_id) DO NOTHING`.pipe(Effect.asVoid)
}))
