import { SqlClient, type Statement } from "@effect/sql"
import { type Duration, Effect } from "effect"
import { type DeliveryId, firstIdAt, millisOf } from "../../platform/kit/Ids.ts"
import { ofTenant, type Tenant } from "../../platform/kit/Tenant.ts"
import { boundedRead } from "../../platform/storage/BoundedReads.ts"
import type { EventRow } from "../events/EventsRepo.ts"
import type { Delivery, ListAllDeliveries } from "./Api.ts"
import {
  clockDifference,
  deliveryColumns,
  deliveryTables,
  isReadable,
  ofStateAndType,
  searchConditions
} from "./DeliveriesRepo.ts"
import { makeEventDeliveries } from "./EventDeliveries.ts"

/** Up to this many failures are sorted in memory; beyond it, scanning in order finds them quickly. */
const fewFailures = 5000

const makeParts = Effect.fnUntraced(function* (keepFor: Duration.Duration) {
  const sql = yield* SqlClient.SqlClient
  const deliveriesOf = yield* makeEventDeliveries(keepFor)
  const readable = sql.literal(isReadable(keepFor))
  const bounded = boundedRead(sql)
  return { keepFor, sql, deliveriesOf, readable, bounded }
})

type Parts = Effect.Effect.Success<ReturnType<typeof makeParts>>

const makeConditions = ({ sql }: Parts) => {
  /**
   * The lower bound of the ids of deliveries created at a time (Unix seconds) or later. Ids hold the creation time, by
   * processes' clocks; only those of a replay's deliveries hold the time of the replay, which may have run for long.
   */
  const firstIdSince = (tenant: Tenant, seconds: number) =>
    Effect.map(
      sql<{ readonly id: string }>`
        SELECT r.id FROM payments.event_replays r
        WHERE ${ofTenant(sql, tenant, "r")} AND (r.finished_at IS NULL OR r.finished_at >= to_timestamp(${seconds}))
        ORDER BY r.id LIMIT 1`,
      ([replay]) => {
        const since = (seconds - clockDifference) * 1000
        return firstIdAt(replay === undefined ? since : Math.min(since, millisOf(replay.id)))
      }
    )

  const conditionsOf = (tenant: Tenant, query: ListAllDeliveries, firstId: string | undefined) => [
    ...searchConditions(sql, tenant, query),
    ...(query.endpoint_id === undefined ? [] : [sql`d.endpoint_id = ${query.endpoint_id}`]),
    ...(firstId === undefined ? [] : [sql`d.id >= ${firstId}::uuid`])
  ]

  return { firstIdSince, conditionsOf }
}

const makePages = ({ readable, sql }: Parts) => {
  /** Not a join: without statistics of the newest days, the planner would read all rows that could be joined. */
  const ofType = (query: ListAllDeliveries) =>
    query.type === undefined
      ? []
      : [
          sql`(
            SELECT e.type FROM payments.events e
            WHERE e.organization_id = d.organization_id AND e.environment = d.environment AND e.id = d.event_id
          ) = ${query.type}`
        ]

  /** Selects the ids of a page, newest first. */
  const idsIn = (
    rows: Statement.Fragment,
    query: ListAllDeliveries,
    conditions: ReadonlyArray<Statement.Fragment>,
    limit: number
  ) => sql<{ readonly id: DeliveryId }>`
    SELECT d.id FROM ${rows} d WHERE ${sql.and([...conditions, ...ofType(query)])} ORDER BY d.id DESC LIMIT ${limit}`

  const pages = {
    /** Scans backwards along the primary key, or along the index of an endpoint's deliveries. */
    walked: (query: ListAllDeliveries, conditions: ReadonlyArray<Statement.Fragment>, limit: number) =>
      idsIn(
        sql`payments.deliveries`,
        query,
        [...conditions, readable, ...(query.state === undefined ? [] : [sql`d.state = ${query.state}`])],
        limit
      ),

    /** Scans waiting deliveries along the primary key of the queue, which holds nothing else. */
    waiting: (query: ListAllDeliveries, conditions: ReadonlyArray<Statement.Fragment>, limit: number) =>
      idsIn(sql`payments.delivery_queue`, query, conditions, limit),

    /** Reads up to `fewFailures` + 1 failures from the index that holds nothing else. */
    failures: (conditions: ReadonlyArray<Statement.Fragment>) => sql<{ readonly id: DeliveryId }>`
      SELECT d.id FROM payments.deliveries d
      WHERE ${sql.and(conditions)} AND d.failed_at IS NOT NULL AND ${readable} LIMIT ${sql.literal(String(fewFailures + 1))}`,

    among: (
      ids: ReadonlyArray<DeliveryId>,
      query: ListAllDeliveries,
      conditions: ReadonlyArray<Statement.Fragment>,
      limit: number
    ) => idsIn(sql`payments.deliveries`, query, [...conditions, sql`d.id = ANY (${ids}::uuid[])`], limit)
  }

  const failed = (query: ListAllDeliveries, conditions: ReadonlyArray<Statement.Fragment>, limit: number) =>
    Effect.flatMap(pages.failures(conditions), (found) => {
      if (found.length > fewFailures) return pages.walked(query, conditions, limit)
      const ids = found.map(({ id }) => id).toSorted((a, b) => (a < b ? 1 : -1))
      return query.type === undefined
        ? Effect.succeed(ids.slice(0, limit).map((id) => ({ id })))
        : pages.among(ids, query, conditions, limit)
    })

  return { pages, failed }
}

/** Deliveries that ended longer ago than `keepFor` are not found. */
export const makeAllDeliveriesRepo = Effect.fnUntraced(function* (keepFor: Duration.Duration) {
  const parts = yield* makeParts(keepFor)
  const conditions = makeConditions(parts)
  const pages = makePages(parts)
  /** A separate statement: otherwise the planner would overestimate the page. */
  const shown = (tenant: Tenant, ids: ReadonlyArray<DeliveryId>) =>
    Effect.map(
      parts.sql<Delivery>`
        SELECT ${parts.sql.literal(deliveryColumns)} FROM ${parts.sql.literal(deliveryTables)}
        WHERE ${ofTenant(parts.sql, tenant, "d")} AND d.id = ANY (${ids}::uuid[])`,
      (rows) => rows.toSorted((a, b) => (a.id < b.id ? 1 : -1))
    )
  const search = (tenant: Tenant, query: ListAllDeliveries, limit: number) =>
    Effect.gen(function* () {
      const firstId =
        query.created_gte === undefined ? undefined : yield* conditions.firstIdSince(tenant, query.created_gte)
      const find =
        query.state === "queued" ? pages.pages.waiting : query.state === "failed" ? pages.failed : pages.pages.walked
      const page = yield* find(query, conditions.conditionsOf(tenant, query, firstId), limit)
      return yield* shown(
        tenant,
        page.map(({ id }) => id)
      )
    })

  return {
    /** The statements that find a page, for tests of their plans. */
    pages: pages.pages,
    conditionsOf: conditions.conditionsOf,

    hasDelivery: (tenant: Tenant, id: string) =>
      Effect.map(
        parts.sql`SELECT 1 FROM payments.deliveries d WHERE ${ofTenant(parts.sql, tenant, "d")} AND d.id = ${id}`,
        (rows) => rows.length > 0
      ),

    /** Newest first. Takes at most 3 seconds. */
    list: (tenant: Tenant, query: ListAllDeliveries, limit: number) => parts.bounded(search(tenant, query, limit)),

    /** One event's deliveries, newest first. Takes at most 3 seconds. */
    listOfEvent: (tenant: Tenant, row: EventRow, query: ListAllDeliveries, limit: number) =>
      parts.bounded(
        parts.deliveriesOf(tenant, row, {
          limit,
          after: query.starting_after,
          conditions: [...conditions.conditionsOf(tenant, query, undefined), ...ofStateAndType(parts.sql, query)]
        })
      )
  }
})
