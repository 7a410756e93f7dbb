import { SqlClient, type SqlError } from "@effect/sql"
import { Duration, Effect } from "effect"
import { eventKey } from "../destinations/publishing/Publication.ts"
import { publicationParts } from "../destinations/publishing/PublicationStatement.ts"
import { EventType } from "../events/Catalog.ts"
import type { DeliveryState } from "../events/DeliveryState.ts"
import { eventId } from "../events/Envelope.ts"
import { Provider } from "../payments/Provider.ts"
import { type Environment, environments } from "../platform/kit/Environment.ts"
import { deliveryId, type EndpointId } from "../platform/kit/Ids.ts"
import { defaultPageSize, pageOf } from "../platform/kit/Request.ts"
import { ofTenant, type Tenant } from "../platform/kit/Tenant.ts"
import { removeOld } from "../platform/storage/Batches.ts"
import { boundedRead } from "../platform/storage/BoundedReads.ts"
import { addDayOf } from "../platform/storage/partitions/DayPartitions.ts"
import { addReceiptMonths, rareOutcomes, removeReceiptMonths } from "../platform/storage/partitions/ReceiptMonths.ts"
import type { Decision } from "./Decision.ts"
import type {
  FindMissing,
  ListReceipts,
  Receipt,
  ReceiptEvent,
  ReceiptKey,
  ReceiptOutcome,
  ReceiptPage
} from "./Receipt.ts"
import { claimsMilestone, unlessMilestoneIsTaken } from "./ReceiptStatement.ts"

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

/** Without a receipt, all but the number of receipts read and the last of them is null. */
type ListedRow = { readonly looked: number; readonly last: string | null } & (
  | Receipt
  | { readonly [K in keyof Receipt]: null }
)

const isListed = (row: Receipt | { readonly [K in keyof Receipt]: null }): row is Receipt =>
  row.providerEventId !== null

const possibleEventKeys = (
  provider: string,
  { environment, providerEventId, receivedAt }: ReceiptKey & Pick<Receipt, "receivedAt">
): ReadonlyArray<string> =>
  EventType.literals.map((type) => eventKey(eventId({ provider, environment, providerEventId, type }), receivedAt))

export interface StoredReplay {
  readonly made: ReadonlyArray<string>
  readonly outcome: ReceiptOutcome
}

type Sql = SqlClient.SqlClient

/** Outcomes that led to nothing: the notification is malformed, or its account was not linked. */
const madeNothing: ReadonlyArray<ReceiptOutcome> = ["malformed", "unlinked"]

const makeColumns = (sql: Sql) =>
  sql.literal(`
  r.environment, r.provider_event_id AS "providerEventId", r.organization_id AS "organizationId",
  r.account_id AS "accountId", r.type, r.livemode, r.outcome, r.reason, r.duplicates, r.reconciled,
  r.provider_created_at AS "providerCreatedAt", r.received_at AS "receivedAt"`)

const makeFind =
  (sql: Sql, columns: ReturnType<typeof makeColumns>) =>
  ({ environment, providerEventId }: ReceiptKey) =>
    Effect.map(
      sql<Receipt>`
      SELECT ${columns} FROM payments.receipts r
      WHERE r.environment = ${environment} AND r.provider_event_id = ${providerEventId}`,
      ([row]) => row
    )

const makeList =
  (sql: Sql, columns: ReturnType<typeof makeColumns>) =>
  ({ before, environment, limit = defaultPageSize, organizationId, outcome, since, type }: ListReceipts) => {
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
const makeStoredEvents =
  (sql: Sql, provider: string) =>
  (
    tenant: Tenant,
    key: ReceiptKey & Pick<Receipt, "receivedAt">
  ): Effect.Effect<ReadonlyArray<StoredEvent>, SqlError.SqlError> =>
    sql<StoredEvent>`
    SELECT e.public_id AS id, e.id AS key, e.type, e.payload, (
      SELECT count(*)::int FROM payments.skipped_events s
      WHERE s.organization_id = e.organization_id AND s.environment = e.environment
        AND s.event_id = e.public_id
    ) AS skipped
    FROM payments.events e
    WHERE ${ofTenant(sql, tenant, "e")} AND e.id = ANY(${possibleEventKeys(provider, key)}::text[])
    ORDER BY e.type DESC`

const makeEventsOf = (sql: Sql, storedEvents: ReturnType<typeof makeStoredEvents>) => {
  /** The ids of all deliveries that an event may have: to every endpoint that exists, or existed when it arrived. */
  const possibleDeliveryIds = (tenant: Tenant, events: ReadonlyArray<StoredEvent>, receivedAt: Date) =>
    Effect.map(
      sql<{ id: EndpointId }>`
        SELECT id FROM payments.endpoints
        WHERE ${ofTenant(sql, tenant)}
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
      WHERE ${ofTenant(sql, tenant)} AND id = ANY(${ids}::uuid[])
      GROUP BY event_id, state`
    return events.map(({ id, key, skipped, type }): ReceiptEvent => {
      const countOf = (state: DeliveryState) =>
        counts.find((row) => row.eventKey === key && row.state === state)?.count ?? 0
      const deliveries = { queued: countOf("queued"), delivered: countOf("delivered"), failed: countOf("failed") }
      return { id, type, deliveries, skipped }
    })
  })

  return eventsOf
}

const makeMissing = (sql: Sql) => {
  const accountsOf = ({ environment, organizationId, since }: FindMissing) =>
    sql<Pick<Tenant, "organizationId"> & { readonly connected: boolean }>`
      SELECT organization_id AS "organizationId", status = 'connected' AS connected FROM payments.provider_accounts
      WHERE environment = ${environment}
        AND ${
          organizationId === undefined
            ? sql`(status = 'connected' OR disconnected_at >= ${since.toISOString()}::timestamptz)`
            : sql`organization_id = ${organizationId}`
        }
      ORDER BY organization_id`

  /** The events of a page that left no receipt. */
  const withoutReceipt = (environment: Environment, ids: ReadonlyArray<string>) =>
    Effect.map(
      sql<{ readonly id: string }>`
        SELECT id FROM unnest(${ids}::text[]) AS known (id)
        WHERE NOT EXISTS (
          SELECT 1 FROM payments.receipts r WHERE r.environment = ${environment} AND r.provider_event_id = known.id
        )`,
      (rows) => new Set(rows.map(({ id }) => id))
    )

  /**
   * The connected accounts, with the time since which events may lack receipts: an hour before the last comparison, as
   * a database that failed over to a replica may have lost its latest rows; at least a minute before it, as clocks
   * differ. Those compared longest ago are first.
   */
  const toReconcile = (environment: Environment) =>
    sql<Pick<Tenant, "organizationId"> & { readonly since: Date; readonly atLeastSince: Date }>`
      SELECT organization_id AS "organizationId",
        GREATEST(linked_at, reconciled_until - interval '1 hour', now() - interval '29 days') AS since,
        GREATEST(linked_at, reconciled_until - interval '1 minute', now() - interval '29 days') AS "atLeastSince"
      FROM payments.provider_accounts WHERE environment = ${environment} AND status = 'connected'
      ORDER BY reconciled_until NULLS FIRST LIMIT 1000`

  const reconciled = (tenant: Tenant, until: Date) => sql`
    UPDATE payments.provider_accounts SET reconciled_until = GREATEST(reconciled_until, ${until.toISOString()}::timestamptz)
    WHERE ${ofTenant(sql, tenant)}`

  const markReconciled = (environment: Environment, providerEventId: string) => sql`
    UPDATE payments.receipts SET reconciled = true
    WHERE environment = ${environment} AND provider_event_id = ${providerEventId}`

  return { accountsOf, withoutReceipt, toReconcile, reconciled, markReconciled }
}

/**
 * Creates the missing deliveries of a notification's events, and the events themselves if they are gone, in one
 * statement. Existing rows are unchanged. If it creates a delivery, the receipt becomes `delivered`. A receipt that
 * was `malformed` or `unlinked` gets its new outcome, and skipped events are recorded for paused endpoints, since
 * none were before.
 */
const makeInsertMissing =
  (sql: Sql) =>
  (
    tenant: Tenant,
    receipt: Receipt,
    { events, outcome, malformedPart }: Decision
  ): Effect.Effect<StoredReplay, SqlError.SqlError> => {
    const wasNothing = madeNothing.includes(receipt.outcome)
    // False for stored status events, which are replayed with the receipt's old outcome and not created again
    const becomesMore = sql`outcome = ANY (${madeNothing}::text[]) AND NOT ${madeNothing.includes(outcome)}`
    const { providerEventId, receivedAt } = receipt
    const parts = publicationParts(
      sql,
      tenant,
      { events, receivedAt, providerEventId, sourceEventId: providerEventId },
      { skippedIf: sql`${wasNothing}`, admits: unlessMilestoneIsTaken(sql) }
    )
    const newReceipt = sql`
      new_receipt AS (
        UPDATE payments.receipts
        SET organization_id = ${tenant.organizationId}, reason = ${malformedPart?.reason ?? null},
          outcome = CASE WHEN EXISTS (SELECT 1 FROM delivery) THEN 'delivered'
            WHEN NOT (${becomesMore}) THEN outcome
            WHEN ${outcome}::text = 'delivered' THEN 'no_subscriber' ELSE ${outcome}::text END
        WHERE environment = ${tenant.environment} AND provider_event_id = ${receipt.providerEventId}
          AND (EXISTS (SELECT 1 FROM delivery) OR ${becomesMore})
        RETURNING outcome
      )`
    const insert = sql<{ made: ReadonlyArray<string>; outcome: ReceiptOutcome | null }>`
      WITH milestone AS (
        UPDATE payments.provider_accounts SET first_payment_event_id = ${receipt.providerEventId}
        WHERE ${claimsMilestone(events)}
          AND ${ofTenant(sql, tenant)} AND NOT had_payments_before
          AND (first_payment_event_id IS NULL OR first_payment_event_id = ${receipt.providerEventId})
        RETURNING 1
      ), ${parts},
      ${newReceipt}
      SELECT ARRAY(SELECT m."eventId" FROM delivery d JOIN matching m ON m.id = d.id) AS made,
        (SELECT outcome FROM new_receipt) AS outcome`
    return Effect.map(Effect.zipRight(addDayOf(sql, receivedAt), insert), ([row]) => ({
      made: row?.made ?? [],
      outcome: row?.outcome ?? receipt.outcome
    }))
  }

const makeClean = (sql: Sql) => {
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

  return clean
}

/** Reads and replays receipts, and removes them after their retention. Nothing outside the slice imports this. */
export const makeReceiptsRepo = Effect.map(Effect.all([SqlClient.SqlClient, Provider]), ([sql, { name }]) => {
  const columns = makeColumns(sql)
  const find = makeFind(sql, columns)
  const list = makeList(sql, columns)
  const storedEvents = makeStoredEvents(sql, name)
  const eventsOf = makeEventsOf(sql, storedEvents)
  const missing = makeMissing(sql)
  const insertMissing = makeInsertMissing(sql)
  const clean = makeClean(sql)

  return {
    find,
    list,
    storedEvents,
    eventsOf,
    ...missing,
    insertMissing,
    clean
  }
})
