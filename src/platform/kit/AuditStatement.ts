import type { SqlClient } from "@effect/sql"
import type { Environment } from "./Environment.ts"
import type { OrganizationId } from "./Ids.ts"
import type { Author } from "./Tenant.ts"

export const insertAudited = (
  sql: SqlClient.SqlClient,
  shared: {
    readonly organizationId: OrganizationId
    readonly author: Author
    readonly action: string
    readonly targetType: string
    readonly requestId: string
  },
  records: ReadonlyArray<{ readonly id: string; readonly environment: Environment | null; readonly target: string }>
) => sql`
  INSERT INTO payments.audit_log
    (organization_id, id, environment, author_kind, author_id, action, target_type, target_id, request_id)
  SELECT ${shared.organizationId}, t.id, t.environment, ${shared.author.kind}, ${shared.author.id},
    ${shared.action}, ${shared.targetType}, t.target, ${shared.requestId}
  FROM unnest(${records.map(({ id }) => id)}::uuid[], ${records.map(({ environment }) => environment)}::text[],
    ${records.map(({ target }) => target)}::text[]) AS t (id, environment, target)`
