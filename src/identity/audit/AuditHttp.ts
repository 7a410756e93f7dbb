import { HttpApiBuilder } from "@effect/platform"
import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { unknownCursor } from "../../errors/Errors.ts"
import { BaseApi } from "../../kit/BaseApi.ts"
import { defaultPageSize, pageOf } from "../../kit/Request.ts"
import { orUnavailable } from "../../storage/Database.ts"
import { Principal } from "../Principal.ts"
import type { AuditRecord } from "./AuditApi.ts"
import { AuditApi } from "./AuditApi.ts"

/** After the id of every record. */
const afterAll = "ffffffff-ffff-ffff-ffff-ffffffffffff"

/** Serves `AuditApi`. */
export const auditHttp = HttpApiBuilder.group(BaseApi.add(AuditApi), "audit", (handlers) =>
  Effect.map(SqlClient.SqlClient, (sql) =>
    handlers.handle(
      "list",
      Effect.fnUntraced(function* ({ urlParams }) {
        const principal = yield* Principal
        const limit = urlParams.limit ?? defaultPageSize
        const after = urlParams.starting_after ?? null
        const visible = sql`organization_id = ${principal.organizationId}
            AND (environment = ${principal.environment} OR environment IS NULL)`
        // A page of each, along an index of its own: in one search, the other environment's records would be read as well
        const pageOfEach = [sql`environment = ${principal.environment}`, sql`environment IS NULL`].map(
          (environment) => sql`(
            SELECT * FROM payments.audit_log
            WHERE organization_id = ${principal.organizationId} AND ${environment} AND id < ${after ?? afterAll}::uuid
            ORDER BY id DESC LIMIT ${limit + 1})`
        )
        if (after !== null) {
          const [known] = yield* sql`SELECT 1 FROM payments.audit_log WHERE ${visible} AND id = ${after}`.pipe(
            orUnavailable
          )
          if (known === undefined) {
            return yield* unknownCursor()
          }
        }
        const rows = yield* sql<AuditRecord>`
          SELECT id, environment, json_build_object('kind', author_kind, 'id', author_id) AS author, action,
            json_build_object('type', target_type, 'id', target_id) AS target, request_id AS "requestId", at
          FROM (${sql.join(" UNION ALL ", false)(pageOfEach)}) AS records
          ORDER BY id DESC LIMIT ${limit + 1}`.pipe(orUnavailable)
        return pageOf(rows, limit)
      })
    )
  )
)
