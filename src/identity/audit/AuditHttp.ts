import { HttpApiBuilder } from "@effect/platform"
import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { unknownCursor } from "../../errors/Errors.ts"
import { auditedId } from "../../kit/Audit.ts"
import { BaseApi } from "../../kit/BaseApi.ts"
import { firstIdAt } from "../../kit/Ids.ts"
import { defaultPageSize, pageOf } from "../../kit/Request.ts"
import { SlowReads } from "../../kit/SlowReads.ts"
import { boundedRead } from "../../storage/BoundedReads.ts"
import { orUnavailable } from "../../storage/Database.ts"
import { preferReplica } from "../../storage/ReadReplica.ts"
import { Principal } from "../Principal.ts"
import type { AuditRecord } from "./AuditApi.ts"
import { AuditApi, type ListAudit } from "./AuditApi.ts"

/** Sorts after every record's id. */
const afterAll = "ffffffff-ffff-ffff-ffff-ffffffffffff"

/**
 * The largest expected difference between a process's clock, from which ids are made, and the database's, in seconds.
 */
const clockDifference = 3600

/** Whether a list has filters, and so may match little of a long log. */
const isSearch = ({ limit: _limit, starting_after: _after, ...filters }: ListAudit): boolean =>
  Object.keys(filters).length > 0

export const auditHttp = HttpApiBuilder.group(BaseApi.add(AuditApi), "audit", (handlers) =>
  Effect.map(Effect.all([SqlClient.SqlClient, preferReplica, SlowReads]), ([sql, onReplica, { inTurn }]) =>
    handlers.handle(
      "list",
      Effect.fnUntraced(
        function* ({ urlParams }) {
          const principal = yield* Principal
          const { action, author_id, created_gte, created_lte, starting_after, target_id, target_type } = urlParams
          const limit = urlParams.limit ?? defaultPageSize
          const after = starting_after ?? null
          const conditions = [
            sql`id < ${after ?? afterAll}::uuid`,
            ...(action === undefined ? [] : [sql`action = ${action}`]),
            ...(author_id === undefined ? [] : [sql`author_id = ${auditedId(author_id)}`]),
            ...(target_type === undefined ? [] : [sql`target_type = ${target_type}`]),
            ...(target_id === undefined ? [] : [sql`target_id = ${auditedId(target_id)}`]),
            ...(created_gte === undefined
              ? []
              : [
                  sql`at >= to_timestamp(${created_gte})`,
                  sql`id >= ${firstIdAt((created_gte - clockDifference) * 1000)}::uuid`
                ]),
            // Includes the whole second
            ...(created_lte === undefined
              ? []
              : [
                  sql`at < to_timestamp(${created_lte}::bigint + 1)`,
                  sql`id < ${firstIdAt((created_lte + clockDifference) * 1000)}::uuid`
                ])
          ]
          const visible = sql`organization_id = ${principal.organizationId}
            AND (environment = ${principal.environment} OR environment IS NULL)`
          // One page per index: a single search would also read the other environment's records
          const pageOfEach = [sql`environment = ${principal.environment}`, sql`environment IS NULL`].map(
            (environment) => sql`(
            SELECT * FROM payments.audit_log
            WHERE organization_id = ${principal.organizationId} AND ${environment} AND ${sql.and(conditions)}
            ORDER BY id DESC LIMIT ${limit + 1})`
          )
          if (after !== null) {
            const [known] = yield* sql`SELECT 1 FROM payments.audit_log WHERE ${visible} AND id = ${after}`
            if (known === undefined) {
              return yield* unknownCursor()
            }
          }
          const page = sql<AuditRecord>`
          SELECT id, environment, json_build_object('kind', author_kind, 'id', author_id) AS author, action,
            json_build_object('type', target_type, 'id', target_id) AS target, request_id AS "requestId", at
          FROM (${sql.join(" UNION ALL ", false)(pageOfEach)}) AS records
          ORDER BY id DESC LIMIT ${limit + 1}`
          const rows = yield* isSearch(urlParams) ? boundedRead(sql)(page) : page
          return pageOf(rows, limit)
        },
        onReplica,
        orUnavailable,
        (read, { urlParams }) =>
          isSearch(urlParams) ? Effect.flatMap(Principal, (principal) => inTurn(principal)(read)) : read
      )
    )
  )
)
