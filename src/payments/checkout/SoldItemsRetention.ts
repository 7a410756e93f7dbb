import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer } from "effect"
import type { ServiceUnavailable } from "../../platform/errors/Errors.ts"
import { removeOld } from "../../platform/storage/Batches.ts"
import { orUnavailable } from "../../platform/storage/Database.ts"

/**
 * How long a session's items are kept: longer than its payment may take, which is 60 days for the slowest vouchers. For
 * a later notification they are read from the provider, as if never recorded. Payment links' items are always kept.
 */
const keepFor = "90 days"

/** Removes old records of sessions' items, to which anybody who opens a checkout page adds. */
export class SoldItemsRetention extends Context.Tag("connected-payments/payments/SoldItemsRetention")<
  SoldItemsRetention,
  { readonly clean: Effect.Effect<void, ServiceUnavailable> }
>() {
  static readonly layer: Layer.Layer<SoldItemsRetention, never, SqlClient.SqlClient> = Layer.effect(
    SoldItemsRetention,
    Effect.map(SqlClient.SqlClient, (sql) => ({
      clean: removeOld(sql, {
        table: "sold_items",
        key: ["organization_id", "environment", "source_id"],
        old: sql`starts_with(r.source_id, 'cs_') AND r.created_at < now() - ${keepFor}::interval`,
        by: "created_at"
      }).pipe(orUnavailable)
    }))
  )
}
