import { SqlClient } from "@effect/sql"
import { type Duration, Effect } from "effect"
import { firstIdAt } from "../../platform/kit/Ids.ts"
import { ofTenant, type Tenant } from "../../platform/kit/Tenant.ts"
import { boundedRead, timedRead } from "../../platform/storage/BoundedReads.ts"
import { firstRow } from "../../platform/storage/Database.ts"
import { hasPayment, hasPublicId } from "../../platform/storage/partitions/EventIndexes.ts"
import { keptSince } from "../deliveries/DeliveriesRepo.ts"
import type { ListEvents } from "./Api.ts"

export interface EventRow {
  /** Its id in the database: see `eventKey`. */
  readonly key: string
  readonly id: string
  readonly type: string
  readonly payload: string
  readonly createdAt: Date
}

/** Statements that `boundedRead` runs. */
const makeStatements = (sql: SqlClient.SqlClient, keepFor: Duration.Duration) => {
  const kept = sql.literal(`e.created_at >= ${keptSince(keepFor)}`)
  const columns = sql.literal(`
    e.id AS key, e.public_id AS id, e.type, e.payload, e.created_at AS "createdAt"`)
  const isWanted = sql.literal(hasPublicId("e", "wanted.id"))
  const isOfWanted = sql.literal(hasPayment("e", "wanted.id"))

  const page = (tenant: Tenant, query: ListEvents, after: string | undefined, limit: number) => {
    const { created_gte: from, created_lte: until, payment_id: paymentId, type } = query
    const keys = [
      ...(after === undefined ? [] : [sql`e.id < ${after}`]),
      ...(from === undefined ? [] : [sql`e.id >= ${firstIdAt(from * 1000)}`]),
      // Includes the whole second
      ...(until === undefined ? [] : [sql`e.id < ${firstIdAt((until + 1) * 1000)}`])
    ]
    const events = paymentId === undefined ? sql`payments.events` : sql`of_payment`
    const conditions = [
      ofTenant(sql, tenant, "e"),
      ...keys,
      kept,
      ...(type === undefined ? [] : [sql`e.type = ${type}`])
    ]
    const rows = sql<EventRow>`
      SELECT ${columns} FROM ${events} e WHERE ${sql.and(conditions)} ORDER BY e.id DESC LIMIT ${limit}`
    if (paymentId === undefined) return rows
    // By the payment alone at first: until a day's table has statistics, the planner expects a tenant to have just as
    // few events
    return sql<EventRow>`
      WITH of_payment AS MATERIALIZED (
        SELECT e.* FROM (SELECT ${paymentId}::text AS id) AS wanted
        JOIN payments.events e ON ${isOfWanted} WHERE ${sql.and(keys)}
      ) ${rows}`
  }

  /** The statement of one event. The tenant is compared last, for the same reason as in `page`. */
  const byId = (tenant: Tenant, id: string) => sql<EventRow>`
    WITH of_id AS MATERIALIZED (
      SELECT e.* FROM (SELECT ${id}::text AS id) AS wanted
      JOIN payments.events e ON ${isWanted}
    )
    SELECT ${columns} FROM of_id e WHERE ${ofTenant(sql, tenant, "e")} LIMIT 1`

  return { page, byId }
}

/** The SQL of stored events, private to this slice. Events stored longer ago than `keepFor` are not listed. */
export const makeEventsRepo = Effect.fnUntraced(function* (keepFor: Duration.Duration) {
  const sql = yield* SqlClient.SqlClient
  const { byId, page } = makeStatements(sql, keepFor)
  const bounded = boundedRead(sql)

  return {
    page,
    byId,

    /**
     * Events, newest first by the time in the key: scans backwards along the primary key. A payment's events are few,
     * and found by an index of their own.
     *
     * @param after the key of the last event of the previous page
     */
    list: (tenant: Tenant, query: ListEvents, after: string | undefined, limit: number) => {
      const rows = page(tenant, query, after, limit)
      const isFiltered = query.type !== undefined || query.created_gte !== undefined
      return query.payment_id === undefined && isFiltered ? bounded(rows) : timedRead(sql)(rows)
    },

    find: (tenant: Tenant, id: string) => firstRow(byId(tenant, id)),

    bounded
  }
})
