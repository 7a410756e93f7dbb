import type { SqlClient, Statement } from "@effect/sql"
import type { Author } from "../platform/kit/Tenant.ts"

/** The author of disconnections after the provider reported revoked access. */
export const revokedAtProvider = { kind: "provider", id: "stripe" } as const satisfies Author

/** `source` has the disconnected account's `organization_id`, `environment` and `account_id`. */
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
