import type { SqlClient, Statement } from "@effect/sql"
import { signingSecretIds } from "../../engine/attempts/SecretLifetime.ts"
import type { Subscriber } from "../../engine/queue/NewDelivery.ts"
import type { Filters } from "../../events/Filters.ts"

/**
 * The parts of an endpoint that matching an event needs. A paused endpoint gets nothing, but the event is recorded as
 * skipped.
 */
export interface MatchableEndpoint extends Subscriber {
  /** Also false without a secret: an endpoint that can't be signed for must not keep an event from all others. */
  readonly active: boolean
  readonly events: ReadonlyArray<string>
  readonly filters: Filters
}

/**
 * The endpoints of a tenant that are not deleted, as JSON: `MatchableEndpoint`s, paused ones included. `tenant` names a
 * row of the surrounding statement that has the tenant's columns.
 */
export const matchableEndpoints = (sql: SqlClient.SqlClient, tenant: string): Statement.Fragment =>
  sql.literal(`
    COALESCE((
      SELECT json_agg(json_build_object(
        'endpointId', p.id,
        'active', p.active AND s.ids IS NOT NULL,
        'events', COALESCE(p.events, ARRAY['payment.succeeded']),
        'filters', p.filters,
        'secretIds', COALESCE(s.ids, '[]')))
      -- Once for each, and not once for each use
      FROM payments.endpoints p CROSS JOIN LATERAL (SELECT ${signingSecretIds("p")} AS ids OFFSET 0) s
      WHERE p.organization_id = ${tenant}.organization_id AND p.environment = ${tenant}.environment
        AND p.deleted_at IS NULL
    ), '[]')`)
