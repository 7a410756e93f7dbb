import { SqlClient, type SqlError } from "@effect/sql"
import { Duration, Effect } from "effect"
import { eventKey } from "../destinations/publishing/EventKey.ts"
import { EventType } from "../events/Catalog.ts"
import type { DeliveryState } from "../events/DeliveryState.ts"
import { eventId } from "../events/Envelope.ts"
import { environments } from "../platform/kit/Environment.ts"
import { deliveryId, type EndpointId, type OrganizationId } from "../platform/kit/Ids.ts"
import { defaultPageSize, pageOf } from "../platform/kit/Request.ts"
import type { Tenant } from "../platform/kit/Tenant.ts"
import { removeOld } from "../platform/storage/Batches.ts"
import { boundedRead } from "../platform/storage/BoundedReads.ts"
import { addReceiptMonths, rareOutcomes, removeReceiptMonths } from "../platform/storage/ReceiptMonths.ts"
import type { ListReceipts, Receipt, ReceiptEvent, ReceiptKey, ReceiptPage } from "./Receipt.ts"

interface StoredEvent {
  readonly id: string
  /** Its id in the database. */
  readonly key: string
  readonly type: EventType
  readonly payload: string
  readonly skipped: number
}

/** Maximum number of receipts read for one page; bounds the statement, whatever the filters. */
const mostRead = 10_000

/**
 * A row of a page, with the number of receipts read for the page and the last of them. Without a receipt, all else is
 * null.
 */
type ListedRow = { readonly looked: number; readonly last: string | null } & (
  | Receipt
  | { readonly [K in keyof Receipt]: null }
)

const isListed = (row: Receipt | { readonly [K in keyof Receipt]: null }): row is Receipt =>
  row.providerEventId !== null

/** The ids in the database that a notification's events would have. */
const possibleEventKeys = ({
  environment,
  providerEventId,
  receivedAt
}: ReceiptKey & Pick<Receipt, "receivedAt">): ReadonlyArray<string> =>
  EventType.literals.map((type) => eventKey(eventId({ environment, providerEventId, type }), receivedAt))

/** Reads receipts, and removes them after their retention. Nothing outside the slice imports this. */
export const makeReceiptRecordsRepo = Effect.map(SqlClient.SqlClient, (sql) => {
  const columns = sql.literal(`
    r.environment, r.provider_event_id AS "providerEventId", r.organization_id AS "organizationId",
    r.account_id AS "accountId", r.type, r.livemode, r.outcome, r.reason, r.duplicates,
    r.provider_created_at AS "providerCreatedAt", r.received_at AS "receivedAt"`)

  const find = ({ environment, providerEventId }: ReceiptKey) =>
    Effect.map(
      sql<Receipt>`
        SELECT ${columns} FROM payments.receipts r
        WHERE r.environment = ${environment} AND r.provider_event_id = ${providerEventId}`,
      ([row]) => row
    )

  const list = ({
    before,
    environment,
    limit = defaultPageSize,
    organizationId,
    outcome,
    since,
    type
  }: ListReceipts) => {
    const conditions = [
      sql`r.environment = ${environment}`,
      ...(organizationId === undefined ? [] : [sql`r.organization_id = ${organizationId}`]),
      ...(since === undefined ? [] : [sql`r.received_at >= ${since}`]),
      ...(before === undefined
        ? []
        : [
            sql`(r.received_at, r.provider_event_id) < (
              SELECT b.received_at, b.provider_event_id FROM payments.receipts b
              WHERE b.environment = ${environment} AND b.provider_event_id = ${before})`
          ])
    ]
    const isRare = rareOutcomes.some((rare) => rare === outcome)
    // A literal: with a parameter, the planner could not tell that the index of rare outcomes contains them all
    if (isRare) conditions.push(sql`r.outcome = ${sql.literal(`'${outcome}'`)}`)
    const wanted = [
      ...(outcome === undefined || isRare ? [] : [sql`r.outcome = ${outcome}`]),
      ...(type === undefined ? [] : [sql`r.type = ${type}`])
    ]
    const newest = sql.literal("ORDER BY r.received_at DESC, r.provider_event_id DESC")
    // Other outcomes and types are not indexed: without a bound, a search for a missing type would read all receipts
    const most = wanted.length === 0 ? limit + 1 : mostRead
    return Effect.map(
      sql<ListedRow>`
        WITH looked AS MATERIALIZED (
          SELECT r.* FROM payments.receipts r WHERE ${sql.and(conditions)} ${newest} LIMIT ${most}
        )
        SELECT ${columns}, l.looked, l.last FROM (
          SELECT count(*)::int AS looked, (array_agg(o.provider_event_id ORDER BY o.received_at, o.provider_event_id))[1] AS last
          FROM looked o
        ) l LEFT JOIN LATERAL (
          SELECT r.* FROM looked r ${wanted.length === 0 ? sql`` : sql`WHERE ${sql.and(wanted)}`} ${newest} LIMIT ${limit + 1}
        ) r ON true
        ${newest}`.pipe(boundedRead(sql)),
      (rows): ReceiptPage => {
        const { looked = 0, last = null } = rows[0] ?? {}
        const found = rows.flatMap(({ last: _last, looked: _looked, ...row }) => (isListed(row) ? [row] : []))
        const page = pageOf(found, limit)
        if (page.has_more) return { ...page, next: page.data.at(-1)?.providerEventId ?? null }
        // The receipts after the last one read were not examined
        return looked < most ? { ...page, next: null } : { ...page, has_more: true, next: last }
      }
    )
  }

  /** The events that a notification became, found by their ids: no index leads from a notification to them. */
  const storedEvents = (
    { organizationId }: { readonly organizationId: OrganizationId },
    key: ReceiptKey & Pick<Receipt, "receivedAt">
  ): Effect.Effect<ReadonlyArray<StoredEvent>, SqlError.SqlError> =>
    sql<StoredEvent>`
      SELECT e.public_id AS id, e.id AS key, e.type, e.payload, (
        SELECT count(*)::int FROM payments.skipped_events s
        WHERE s.organization_id = e.organization_id AND s.environment = e.environment
          AND s.event_id = e.public_id
      ) AS skipped
      FROM payments.events e
      WHERE e.organization_id = ${organizationId} AND e.environment = ${key.environment}
        AND e.id = ANY(${possibleEventKeys(key)}::text[])
      ORDER BY e.type DESC`

  /** The ids of all deliveries that an event may have: to every endpoint that exists, or existed when it arrived. */
  const possibleDeliveryIds = (tenant: Tenant, events: ReadonlyArray<StoredEvent>, receivedAt: Date) =>
    Effect.map(
      sql<{ id: EndpointId }>`
        SELECT id FROM payments.endpoints
        WHERE organization_id = ${tenant.organizationId} AND environment = ${tenant.environment}
          -- Clocks of processes and database may differ a little
          AND (deleted_at IS NULL OR deleted_at > ${receivedAt.toISOString()}::timestamptz - interval '1 hour')`,
      (endpoints) =>
        events.flatMap((event) =>
          endpoints.map((endpoint) => deliveryId({ eventId: event.id, endpointId: endpoint.id, receivedAt }))
        )
    )

  const eventsOf = Effect.fnUntraced(function* (receipt: Receipt) {
    const { environment, organizationId, receivedAt } = receipt
    if (organizationId === null) {
      return []
    }
    const tenant = { organizationId, environment }
    const events = yield* storedEvents(tenant, receipt)
    const ids = yield* possibleDeliveryIds(tenant, events, receivedAt)
    const counts = yield* sql<{ eventKey: string; state: DeliveryState; count: number }>`
      SELECT event_id AS "eventKey", state, count(*)::int AS count FROM payments.deliveries
      WHERE organization_id = ${organizationId} AND environment = ${environment} AND id = ANY(${ids}::uuid[])
      GROUP BY event_id, state`
    return events.map(({ id, key, skipped, type }): ReceiptEvent => {
      const countOf = (state: DeliveryState) =>
        counts.find((row) => row.eventKey === key && row.state === state)?.count ?? 0
      const deliveries = { queued: countOf("queued"), delivered: countOf("delivered"), failed: countOf("failed") }
      return { id, type, deliveries, skipped }
    })
  })

  /** Removes old receipts that are not in a month's table. */
  const cleanUndated = (retention: Duration.Duration) =>
    Effect.forEach(
      environments,
      (environment) =>
        removeOld(sql, {
          table: "receipts_undated",
          key: ["environment", "provider_event_id"],
          old: sql`r.environment = ${environment}
            AND r.received_at < now() - ${Duration.toSeconds(retention)} * interval '1 second'`,
          by: "received_at"
        }),
      { discard: true }
    )

  /** @param session the client that removes tables: see `sessionClient` */
  const clean = (retention: Duration.Duration, session: SqlClient.SqlClient = sql) =>
    Effect.all([
      addReceiptMonths,
      Effect.provideService(removeReceiptMonths(retention), SqlClient.SqlClient, session),
      cleanUndated(retention)
    ]).pipe(Effect.asVoid, Effect.provideService(SqlClient.SqlClient, sql))

  return { find, list, storedEvents, eventsOf, clean }
})
