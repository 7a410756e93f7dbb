import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"
import type { Tenant } from "../identity/Principal.ts"
import type { SoldItems } from "./Provider.ts"

/** What sessions and payment links of this service sell, by their id (contract 6.5). */
export const makeSoldItemsRepo = Effect.map(SqlClient.SqlClient, (sql) => ({
  /** A repeat of the same creation changes nothing: what a session sells never does. */
  insert: (tenant: Tenant, sourceId: string, items: SoldItems): Effect.Effect<void, SqlError.SqlError> =>
    sql`
      INSERT INTO payments.sold_items (organization_id, environment, source_id, price_ids, product_ids)
      VALUES (${tenant.organizationId}, ${tenant.environment}, ${sourceId}, ${items.priceIds}::text[],
        ${items.productIds}::text[])
      ON CONFLICT (organization_id, environment, source_id) DO NOTHING`.pipe(Effect.asVoid)
}))
