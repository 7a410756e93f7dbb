import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { ofTenant, type Tenant } from "../../platform/kit/Tenant.ts"
import type { ReturnUrlsRecord } from "./Api.ts"

/** The organization's own pages that payers return to from checkout; null for the operator's. */
export interface OwnReturnUrls {
  readonly successUrl: string | null
  readonly cancelUrl: string | null
}

export type ReturnUrlsShown = typeof ReturnUrlsRecord.Type

export const makeReturnUrlsRepo = Effect.map(SqlClient.SqlClient, (sql) => {
  const columns = sql.literal(
    `environment, success_url AS "successUrl", cancel_url AS "cancelUrl", return_urls_updated_at AS "updatedAt"`
  )
  return {
    find: (tenant: Tenant) =>
      sql<ReturnUrlsShown>`SELECT ${columns} FROM payments.workspaces WHERE ${ofTenant(sql, tenant)}`,

    set: (tenant: Tenant, { cancelUrl, successUrl }: OwnReturnUrls) => sql<ReturnUrlsShown>`
      UPDATE payments.workspaces
      SET success_url = ${successUrl}, cancel_url = ${cancelUrl}, return_urls_updated_at = now()
      WHERE ${ofTenant(sql, tenant)} RETURNING ${columns}`
  }
})
