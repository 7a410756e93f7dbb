import type { SqlClient, Statement } from "@effect/sql"
import { stripeName } from "../events/Envelope.ts"

/**
 * Records a revocation that a notification of Stripe reported. `source` has the account's `organization_id`,
 * `environment` and `account_id`.
 */
export const recordDisconnection = (
  sql: SqlClient.SqlClient,
  source: string,
  { auditId, requestId }: { readonly auditId: Statement.Fragment; readonly requestId: Statement.Fragment }
): Statement.Fragment => sql`
  INSERT INTO payments.audit_log
    (organization_id, id, environment, author_kind, author_id, action, target_type, target_id, request_id)
  SELECT organization_id, ${auditId}::uuid, environment, 'provider',
    ${sql.literal(`'${stripeName}'`)}, 'account.disconnected', 'account', account_id, ${requestId}::text
  FROM ${sql.literal(source)}`
