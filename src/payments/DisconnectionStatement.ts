import type { SqlClient, Statement } from "@effect/sql"
import type { Author } from "../platform/kit/Tenant.ts"

/** The author of disconnections after the provider reported revoked access. */
export const revokedAtProvider = { kind: "provider", id: "stripe" } as const satisfies Author

/**
 * SQL that records in the audit log the disconnections of the common table expression `source`: its columns are the
 * `organization_id`, `environment` and `account_id` of the disconnected account, in at most one row.
 */
export const recordDisconnection = (
  sql: SqlClient.SqlClient,
  source: string,
  { auditId, requestId }: { readonly auditId: Statement.Fragment; readonly requestId: Statement.Fragment }
): Statement.Fragment => sql`
  INSERT INTO payments.audit_log
    (organization_id, id, environment, author_kind, author_id, action, target_type, target_id, request_id)
  SELECT organization_id, ${auditId}::uuid, environment, ${sql.literal(`'${revokedAtProvider.kind}'`)},
    ${sql.literal(`'${revokedAtProvider.id}'`)}, 'account.disconnected', 'account', account_id, ${requestId}::text
  FROM ${sql.literal(source)}`
