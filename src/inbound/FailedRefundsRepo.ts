import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { ofTenant, type Tenant } from "../platform/kit/Tenant.ts"
import { removeOld } from "../platform/storage/Batches.ts"
import type { FailedRefund } from "./Decision.ts"

/** How many organizations get their mail in a run, and the maximum number of refunds in one mail. */
const tenantsAtOnce = 50
const refundsAtOnce = 1000

/** Lease on a mail: how long a process may take to hand it over before another one tries. */
const claimedFor = "5 minutes"

export const makeFailedRefundsRepo = Effect.map(SqlClient.SqlClient, (sql) => ({
  insert: ({ environment, organizationId }: Tenant, refund: FailedRefund) => sql`
    INSERT INTO payments.failed_refunds (organization_id, environment, refund_id, charge_id, payment_id, amount,
      currency, status, failure_reason)
    VALUES (${organizationId}, ${environment}, ${refund.refundId}, ${refund.chargeId}, ${refund.paymentId},
      ${refund.amount}, ${refund.currency}, ${refund.status}, ${refund.reason})
    ON CONFLICT (organization_id, environment, refund_id) DO NOTHING`,

  /** The tenants that have refunds to report, and got no such mail in the last hour. */
  due: sql<Tenant>`
    SELECT f.organization_id AS "organizationId", f.environment FROM payments.failed_refunds f
    WHERE f.mail_at <= now() AND NOT EXISTS (
      SELECT 1 FROM payments.failed_refunds t
      WHERE t.organization_id = f.organization_id AND t.environment = f.environment
        AND t.mailed_at > now() - interval '1 hour'
    )
    GROUP BY f.organization_id, f.environment ORDER BY min(f.mail_at) LIMIT ${tenantsAtOnce}`,

  /** Waits for a process that claims at the same time, so that the two don't split the refunds of one mail. */
  claim: (tenant: Tenant) => sql<FailedRefund>`
    WITH due AS MATERIALIZED (
      SELECT refund_id FROM payments.failed_refunds
      WHERE ${ofTenant(sql, tenant)} AND mail_at <= now()
      ORDER BY recorded_at LIMIT ${refundsAtOnce} FOR UPDATE
    )
    UPDATE payments.failed_refunds f SET mail_at = now() + ${claimedFor}::interval FROM due
    WHERE ${ofTenant(sql, tenant, "f")} AND f.refund_id = due.refund_id
    RETURNING f.refund_id AS "refundId", f.charge_id AS "chargeId", f.payment_id AS "paymentId",
      f.amount::float8 AS amount, f.currency, f.status, f.failure_reason AS reason`,

  /** @param wait time until the next try; null if the refunds were reported */
  settle: (tenant: Tenant, refunds: ReadonlyArray<FailedRefund>, wait: string | null) => sql`
    UPDATE payments.failed_refunds SET mail_at = now() + ${wait}::interval,
      mailed_at = CASE WHEN ${wait}::text IS NULL THEN now() END
    WHERE ${ofTenant(sql, tenant)} AND refund_id = ANY (${refunds.map(({ refundId }) => refundId)}::text[])`,

  removeOld: removeOld(sql, {
    table: "failed_refunds",
    key: ["organization_id", "environment", "refund_id"],
    old: sql`r.recorded_at < now() - interval '91 days'`,
    by: "recorded_at"
  })
}))
