import { SqlClient } from "@effect/sql"
import { Effect, Option } from "effect"
import { canSign } from "../../engine/attempts/SecretLifetime.ts"
import type { EndpointId } from "../../platform/kit/Ids.ts"
import { ofTenant, type Tenant } from "../../platform/kit/Tenant.ts"

/** The state that decides whether something may be sent to an endpoint. */
export interface LockedEndpoint {
  readonly deleted: boolean
  readonly active: boolean
  /** Whether it has a secret that signs new events. */
  readonly canSign: boolean
  readonly events: ReadonlyArray<string>
}

/** SQL on endpoints that deliveries, recoveries and replays share. */
export const makeEndpointRows = Effect.map(SqlClient.SqlClient, (sql) => {
  const byId = (tenant: Tenant, id: EndpointId) => sql`${ofTenant(sql, tenant)} AND id = ${id}`
  return {
    /**
     * Locks the endpoint's row until the transaction ends, against its deletion and a concurrent start; none if there is
     * no such endpoint.
     */
    lock: (tenant: Tenant, id: EndpointId) =>
      Effect.map(
        sql<LockedEndpoint>`
          SELECT deleted_at IS NOT NULL AS deleted, active, ${sql.literal(canSign("endpoints"))} AS "canSign",
            COALESCE(events, ARRAY['payment.succeeded']) AS events
          FROM payments.endpoints WHERE ${byId(tenant, id)}
          FOR NO KEY UPDATE`,
        ([row]) => Option.fromNullable(row)
      ),

    /** Whether the endpoint exists or existed: the history of a deleted one stays readable. */
    has: (tenant: Tenant, id: EndpointId) =>
      Effect.map(sql`SELECT 1 FROM payments.endpoints WHERE ${byId(tenant, id)}`, (rows) => rows.length > 0)
  }
})
