import { SqlClient } from "@effect/sql"
import { Effect, Option } from "effect"
import type { EventType } from "../events/Catalog.ts"
import type { Filters } from "../events/Filters.ts"
import type { Tenant } from "../identity/Principal.ts"
import type { Encrypted } from "../kit/Cipher.ts"
import type { EndpointId } from "../kit/Ids.ts"
import type { Environment } from "../Settings.ts"

/** A row of `payments.endpoints`, as the API shows it. */
export interface EndpointRow {
  readonly id: EndpointId
  readonly name: string
  readonly url: string
  readonly environment: Environment
  readonly events: ReadonlyArray<EventType>
  readonly filters: Filters
  readonly active: boolean
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly previousSecretExpiresAt: Date | null
}

/** The SQL of the slice; nobody outside it imports this. */
export const makeEndpointsRepo = Effect.map(SqlClient.SqlClient, (sql) => {
  const columns = sql.literal(`
    e.id, e.name, e.url, e.environment, COALESCE(e.events, ARRAY['payment.succeeded']) AS events, e.filters, e.active,
    e.created_at AS "createdAt", e.updated_at AS "updatedAt",
    (SELECT max(s.retired_at) + interval '24 hours' FROM payments.endpoint_secrets s
     WHERE s.organization_id = e.organization_id AND s.environment = e.environment AND s.endpoint_id = e.id
       AND s.retired_at > now() - interval '24 hours') AS "previousSecretExpiresAt"`)

  const ofTenant = (tenant: Tenant) =>
    sql`e.organization_id = ${tenant.organizationId} AND e.environment = ${tenant.environment} AND e.deleted_at IS NULL`

  return {
    /**
     * Takes the workspace's row lock until the transaction ends, so that a count of its endpoints holds. Rows that refer
     * to the workspace can be made meanwhile.
     */
    lockWorkspace: (tenant: Tenant) =>
      sql`
        SELECT 1 FROM payments.workspaces
        WHERE organization_id = ${tenant.organizationId} AND environment = ${tenant.environment}
        FOR NO KEY UPDATE`,

    count: (tenant: Tenant) =>
      Effect.map(
        sql<{ count: number }>`SELECT count(*)::int AS count FROM payments.endpoints e WHERE ${ofTenant(tenant)}`,
        ([row]) => row?.count ?? 0
      ),

    insert: (
      tenant: Tenant,
      endpoint: {
        readonly id: EndpointId
        readonly name: string
        readonly url: string
        readonly events: ReadonlyArray<EventType>
        readonly filters: Filters
      }
    ) =>
      sql`
        INSERT INTO payments.endpoints (organization_id, environment, id, name, url, events, filters)
        VALUES (${tenant.organizationId}, ${tenant.environment}, ${endpoint.id}, ${endpoint.name}, ${endpoint.url},
          ${endpoint.events}::text[], ${JSON.stringify(endpoint.filters)}::jsonb)`,

    insertSecret: (
      tenant: Tenant,
      secret: { readonly id: string; readonly endpointId: EndpointId; readonly encrypted: Encrypted }
    ) =>
      sql`
        INSERT INTO payments.endpoint_secrets
          (organization_id, environment, id, endpoint_id, master_key_id, ciphertext)
        VALUES (${tenant.organizationId}, ${tenant.environment}, ${secret.id}, ${secret.endpointId},
          ${secret.encrypted.masterKeyId}, ${secret.encrypted.ciphertext})`,

    find: (tenant: Tenant, id: EndpointId) =>
      Effect.map(
        sql<EndpointRow>`SELECT ${columns} FROM payments.endpoints e WHERE ${ofTenant(tenant)} AND e.id = ${id}`,
        ([row]) => Option.fromNullable(row)
      ),

    list: (tenant: Tenant) =>
      sql<EndpointRow & { readonly recentFailures: number }>`
        SELECT ${columns}, (
          SELECT count(*)::int FROM payments.deliveries d
          WHERE d.organization_id = e.organization_id AND d.environment = e.environment AND d.endpoint_id = e.id
            AND d.state = 'failed' AND NOT d.test AND d.finished_at > now() - interval '24 hours') AS "recentFailures"
        FROM payments.endpoints e WHERE ${ofTenant(tenant)} ORDER BY e.id DESC`,

    /** Null leaves a column as it is. */
    update: (
      tenant: Tenant,
      id: EndpointId,
      change: {
        readonly active: boolean | null
        readonly name: string | null
        readonly events: ReadonlyArray<EventType> | null
        readonly filters: Filters | null
      }
    ) =>
      Effect.map(
        sql<EndpointRow>`
          UPDATE payments.endpoints e SET
            active = COALESCE(${change.active}::boolean, e.active),
            name = COALESCE(${change.name}::text, e.name),
            events = COALESCE(${change.events}::text[], e.events),
            filters = COALESCE(${change.filters === null ? null : JSON.stringify(change.filters)}::jsonb, e.filters),
            updated_at = now()
          WHERE ${ofTenant(tenant)} AND e.id = ${id}
          RETURNING ${columns}`,
        ([row]) => Option.fromNullable(row)
      )
  }
})
