import type { SqlClient } from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import type { Environment } from "./Environment.ts"
import type { OrganizationId } from "./Ids.ts"

/** The owner of the data that an operation uses: every query names both parts. */
export interface Tenant {
  readonly organizationId: OrganizationId
  readonly environment: Environment
}

/** The condition that rows belong to a tenant: every query names both parts. */
export const ofTenant = (sql: SqlClient, { environment, organizationId }: Tenant, table?: string): Fragment => {
  const column = (name: string) => sql.literal(table === undefined ? name : `${table}.${name}`)
  return sql`${column("organization_id")} = ${organizationId} AND ${column("environment")} = ${environment}`
}

/** The condition that rows belong to a tenant and are not marked as deleted. */
export const existingOf = (sql: SqlClient, tenant: Tenant, table: string): Fragment =>
  sql`${ofTenant(sql, tenant, table)} AND ${sql.literal(table)}.deleted_at IS NULL`

/** An operator acts through the command line; the provider by its notifications. */
export interface Author {
  readonly kind: "api_key" | "person" | "operator" | "provider"
  readonly id: string
}
