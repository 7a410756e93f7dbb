import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"
import type { Tenant } from "../../kit/Tenant.ts"
import type { SoldItems } from "./Port.ts"

/** The record of what this service's sessions and payment links sell, by their id (contract 6.5). */
export const makeSoldItemsRepo = Effect.map(SqlClient.SqlClient, (sql) => ({
  /** Changes nothing if it is there already: what a session or link sells never changes. */
  insert: (tenant: Tenant, sourceId: string, items: SoldItems): Effect.Effect<void, SqlError.SqlError> =>
    sql`
      INSERT INTO payments.sold_items (organization_id, environment, source_id, price_ids, product_ids)
      VALUES (${tenant.organizationId}, ${tenant.environment}, ${sourceId}, ${items.priceIds}::text[],
        ${items.productIds}::text[])
      ON CONFLICT (organization_id, environment, source_id) DO NOTHING`.pipe(Effect.asVoid)
}))
