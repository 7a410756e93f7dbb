import type { SqlClient, Statement } from "@effect/sql"
import { signingSecretIds } from "../endpoints/SecretLifetime.ts"
import type { Filters } from "../events/Filters.ts"
import type { Subscriber } from "./NewDelivery.ts"

/** An endpoint, as far as matching an event needs it. A paused one gets nothing, but is told what it missed. */
export interface MatchableEndpoint extends Subscriber {
  readonly active: boolean
  readonly events: ReadonlyArray<string>
  readonly filters: Filters
}

/**
 * The endpoints of a tenant that are not deleted, as JSON: `MatchableEndpoint`s, paused ones included. `tenant` is the
 * row of the statement around it, with the tenant's columns.
 */
export const matchableEndpoints = (sql: SqlClient.SqlClient, tenant: string): Statement.Fragment =>
  sql.literal(`
    COALESCE((
      SELECT json_agg(json_build_object(
        'endpointId', p.id,
        'active', p.active,
        'events', COALESCE(p.events, ARRAY['payment.succeeded']),
        'filters', p.filters,
        'secretIds', ${signingSecretIds("p")}))
      FROM payments.endpoints p
      WHERE p.organization_id = ${tenant}.organization_id AND p.environment = ${tenant}.environment
        AND p.deleted_at IS NULL
    ), '[]')`)
