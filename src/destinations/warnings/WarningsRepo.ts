import { SqlClient } from "@effect/sql"
import { Effect, Option } from "effect"
import type { EndpointId } from "../../platform/kit/Ids.ts"
import { mostCounted } from "../../platform/kit/Request.ts"
import { existingOf, ofTenant, type Tenant } from "../../platform/kit/Tenant.ts"
import { firstRow } from "../../platform/storage/Database.ts"
import type { EndpointFailures } from "./WarningMail.ts"

export const warningThreshold = 3

const maxReasons = 5

/** How long a process may take from claiming a warning to handing it over, before another process may claim it. */
const claimedFor = "5 minutes"

export interface FailingEndpoint extends Tenant {
  readonly endpointId: EndpointId
}

/** A change of a warning's state: how long no other is sent, if that changes, and whether it was sent. */
interface Rest {
  readonly after?: string
  readonly sent?: boolean
}

/**
 * The endpoints to warn about. Skips from tenant to tenant through the index of failed deliveries, and counts no
 * further than necessary: the cost depends on the number of tenants with failures, each of which has few endpoints, but
 * not on the number of failures or of a tenant's deleted endpoints. No other index has the order used here.
 *
 * Endpoints that were not tried come first, then those tried longest ago, so that an unreachable mailbox does not delay
 * other warnings.
 */
export const failingEndpoints = (sql: SqlClient.SqlClient) => sql<FailingEndpoint>`
  WITH RECURSIVE failing AS (
    (SELECT d.organization_id, d.environment FROM payments.deliveries d WHERE d.failed_at IS NOT NULL
     ORDER BY d.organization_id, d.environment, d.endpoint_id, d.failed_at LIMIT 1)
    UNION ALL
    SELECT n.* FROM failing f CROSS JOIN LATERAL (
      SELECT d.organization_id, d.environment FROM payments.deliveries d
      WHERE d.failed_at IS NOT NULL AND (d.organization_id, d.environment) > (f.organization_id, f.environment)
      ORDER BY d.organization_id, d.environment, d.endpoint_id, d.failed_at LIMIT 1
    ) n
  )
  SELECT p.organization_id AS "organizationId", p.environment, p.id AS "endpointId"
  FROM failing f
  JOIN payments.endpoints p ON p.organization_id = f.organization_id AND p.environment = f.environment
  LEFT JOIN payments.failure_warnings w
    ON w.organization_id = p.organization_id AND w.environment = p.environment AND w.endpoint_id = p.id
  WHERE p.deleted_at IS NULL AND (w.quiet_until IS NULL OR w.quiet_until <= now()) AND EXISTS (
    SELECT 1 FROM payments.deliveries d
    WHERE d.organization_id = p.organization_id AND d.environment = p.environment AND d.endpoint_id = p.id
      AND NOT d.test AND d.failed_at > now() - interval '24 hours'
    OFFSET ${warningThreshold - 1}
  )
  ORDER BY w.quiet_until NULLS FIRST`

export const makeWarningsRepo = Effect.map(SqlClient.SqlClient, (sql) => ({
  due: failingEndpoints(sql),

  /** Claims a warning; none if another process has it, or it was sent within a day. */
  claim: ({ endpointId, environment, organizationId }: FailingEndpoint) =>
    Effect.map(
      sql<{ readonly until: string }>`
        INSERT INTO payments.failure_warnings AS w (organization_id, environment, endpoint_id, quiet_until)
        VALUES (${organizationId}, ${environment}, ${endpointId}, now() + ${claimedFor}::interval)
        ON CONFLICT (organization_id, environment, endpoint_id) DO UPDATE SET quiet_until = EXCLUDED.quiet_until
        WHERE w.quiet_until <= now()
        RETURNING quiet_until::text AS until`,
      ([row]) => Option.fromNullable(row?.until)
    ),

  /**
   * Changes a warning that this process still holds (its `until` is unchanged). Returns the new `until`; none if
   * another process has claimed it since. `sent`: the mail server accepted it.
   */
  rest: ({ endpointId, ...tenant }: FailingEndpoint, until: string, { after, sent = false }: Rest) =>
    Effect.map(
      sql<{ readonly until: string }>`
        UPDATE payments.failure_warnings SET
          quiet_until = CASE WHEN ${after ?? null}::text IS NULL THEN quiet_until ELSE now() + ${after ?? null}::interval END,
          sent_at = CASE WHEN ${sent}::boolean THEN now() ELSE sent_at END
        WHERE ${ofTenant(sql, tenant)} AND endpoint_id = ${endpointId}
          AND quiet_until = ${until}::timestamptz
        RETURNING quiet_until::text AS until`,
      ([row]) => Option.fromNullable(row?.until)
    ),

  /** The failures to report, the first of them and counted up to `mostCounted`; none if there are none left. */
  failures: ({ endpointId, ...tenant }: FailingEndpoint) =>
    firstRow(sql<EndpointFailures>`
        WITH failed AS MATERIALIZED (
          SELECT d.failed_at, d.last_error_code, d.last_http_status FROM payments.deliveries d
          WHERE ${ofTenant(sql, tenant, "d")} AND d.endpoint_id = ${endpointId} AND NOT d.test AND d.failed_at > now() - interval '24 hours'
          ORDER BY d.failed_at, d.id LIMIT ${mostCounted}
        )
        SELECT p.organization_id AS "organizationId", p.environment, p.id AS "endpointId", p.name, p.url, p.active,
          (SELECT count(*)::int FROM failed) AS count, (SELECT min(failed_at) FROM failed) AS since, (
            SELECT json_agg(reason) FROM (
              SELECT last_error_code AS "errorCode", last_http_status AS "httpStatus", count(*) AS count
              FROM failed GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT ${maxReasons}
            ) AS reason
          ) AS reasons
        FROM payments.endpoints p
        WHERE ${existingOf(sql, tenant, "p")} AND p.id = ${endpointId} AND EXISTS (SELECT 1 FROM failed)`)
}))
