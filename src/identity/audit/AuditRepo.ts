import { SqlClient } from "@effect/sql"
import { Duration, Effect } from "effect"
import { unknownCursor } from "../../platform/errors/Errors.ts"
import { auditedId } from "../../platform/kit/Audit.ts"
import { firstIdAt } from "../../platform/kit/Ids.ts"
import { defaultPageSize, pageOf } from "../../platform/kit/Request.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import { removeOld } from "../../platform/storage/Batches.ts"
import { boundedRead } from "../../platform/storage/BoundedReads.ts"
import type { AuditRecord, ListAudit } from "./Api.ts"

/** Sorts after every record's id. */
const afterAll = "ffffffff-ffff-ffff-ffff-ffffffffffff"

/** In seconds: between a process's clock, from which ids are made, and the database's. */
const clockDifference = 3600

/** Whether a list has filters, and so may match little of a long log. */
export const isSearch = ({ limit: _limit, starting_after: _after, ...filters }: ListAudit): boolean =>
  Object.keys(filters).length > 0

export const makeAuditList = Effect.map(SqlClient.SqlClient, (sql) =>
  Effect.fnUntraced(function* ({ environment, organizationId }: Tenant, query: ListAudit) {
    const { action, author_id, created_gte, created_lte, limit = defaultPageSize, target_id, target_type } = query
    const after = query.starting_after
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
    // One page per index: a single search would also read the other environment's records
    const pageOfEach = [sql`environment = ${environment}`, sql`environment IS NULL`].map(
      (place) => sql`(
        SELECT * FROM payments.audit_log WHERE organization_id = ${organizationId} AND ${place} AND ${sql.and(conditions)}
        ORDER BY id DESC LIMIT ${limit + 1})`
    )
    if (after !== undefined) {
      const [known] = yield* sql`
        SELECT 1 FROM payments.audit_log WHERE organization_id = ${organizationId}
          AND (environment = ${environment} OR environment IS NULL) AND id = ${after}`
      if (known === undefined) {
        return yield* unknownCursor()
      }
    }
    const page = sql<AuditRecord>`
      SELECT id, environment, json_build_object('kind', author_kind, 'id', author_id) AS author, action,
        json_build_object('type', target_type, 'id', target_id) AS target, request_id AS "requestId", at
      FROM (${sql.join(" UNION ALL ", false)(pageOfEach)}) AS records
      ORDER BY id DESC LIMIT ${limit + 1}`
    return pageOf(yield* isSearch(query) ? boundedRead(sql)(page) : page, limit)
  })
)

/** Removes the records older than the retention (contract 9.6), in small batches. */
export const makeAuditCleaning = (retention: Duration.Duration) =>
  Effect.map(SqlClient.SqlClient, (sql) =>
    removeOld(sql, {
      table: "audit_log",
      key: ["organization_id", "id"],
      old: sql`r.at < now() - ${Duration.toSeconds(retention)} * interval '1 second'`,
      by: "at"
    })
  )
