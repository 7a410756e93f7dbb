import { SqlClient, type SqlError } from "@effect/sql"
import { Duration, Effect } from "effect"
import { EventType } from "../events/Catalog.ts"
import type { DeliveryState } from "../events/DeliveryState.ts"
import { eventId } from "../events/Envelope.ts"
import { environments } from "../events/Environment.ts"
import { deliveryId, type EndpointId, type OrganizationId } from "../kit/Ids.ts"
import { defaultPageSize } from "../kit/Request.ts"
import type { Tenant } from "../kit/Tenant.ts"
import { batchSize, inBatches } from "../storage/Batches.ts"
import type { ListReceipts, Receipt, ReceiptEvent, ReceiptKey } from "./Receipt.ts"

interface StoredEvent {
  readonly id: string
  readonly type: EventType
  readonly payload: string
  readonly skipped: number
}

/** The ids that a notification's events have, if there are any. */
const possibleEventIds = ({ environment, providerEventId }: ReceiptKey): ReadonlyArray<string> =>
  EventType.literals.map((type) => eventId({ environment, providerEventId, type }))

/** Reading receipts, and removing them when their retention is over. Nothing outside the slice imports this. */
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
      ...(outcome === undefined ? [] : [sql`r.outcome = ${outcome}`]),
      ...(type === undefined ? [] : [sql`r.type = ${type}`]),
      ...(since === undefined ? [] : [sql`r.received_at >= ${since}`]),
      ...(before === undefined
        ? []
        : [
            sql`(r.received_at, r.provider_event_id) < (
              SELECT b.received_at, b.provider_event_id FROM payments.receipts b
              WHERE b.environment = ${environment} AND b.provider_event_id = ${before})`
          ])
    ]
    return Effect.map(
      sql<Receipt>`
        SELECT ${columns} FROM payments.receipts r WHERE ${sql.and(conditions)}
        ORDER BY r.received_at DESC, r.provider_event_id DESC LIMIT ${limit + 1}`,
      (rows) => ({ data: rows.slice(0, limit), has_more: rows.length > limit })
    )
  }

  /** The events that a notification became, found by their ids: no index leads from a notification to them. */
  const storedEvents = (
    { organizationId }: { readonly organizationId: OrganizationId },
    key: ReceiptKey
  ): Effect.Effect<ReadonlyArray<StoredEvent>, SqlError.SqlError> =>
    sql<StoredEvent>`
      SELECT e.id, e.type, e.payload, (
        SELECT count(*)::int FROM payments.skipped_events s
        WHERE s.organization_id = e.organization_id AND s.environment = e.environment AND s.event_id = e.id
      ) AS skipped
      FROM payments.events e
      WHERE e.organization_id = ${organizationId} AND e.environment = ${key.environment}
        AND e.id = ANY(${possibleEventIds(key)}::text[])
      ORDER BY e.type DESC`

  /** The ids of all deliveries that an event may have: to every endpoint that exists or existed. */
  const possibleDeliveryIds = (tenant: Tenant, events: ReadonlyArray<StoredEvent>, receivedAt: Date) =>
    Effect.map(
      sql<{ id: EndpointId }>`
        SELECT id FROM payments.endpoints
        WHERE organization_id = ${tenant.organizationId} AND environment = ${tenant.environment}`,
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
    const counts = yield* sql<{ eventId: string; state: DeliveryState; count: number }>`
      SELECT event_id AS "eventId", state, count(*)::int AS count FROM payments.deliveries
      WHERE organization_id = ${organizationId} AND environment = ${environment} AND id = ANY(${ids}::uuid[])
      GROUP BY event_id, state`
    return events.map(({ id, skipped, type }): ReceiptEvent => {
      const countOf = (state: DeliveryState) =>
        counts.find((row) => row.eventId === id && row.state === state)?.count ?? 0
      const deliveries = { queued: countOf("queued"), delivered: countOf("delivered"), failed: countOf("failed") }
      return { id, type, deliveries, skipped }
    })
  })

  const clean = (retention: Duration.Duration) =>
    Effect.forEach(
      environments,
      (environment) =>
        inBatches(
          Effect.map(
            sql`
              WITH old AS MATERIALIZED (
                SELECT environment, provider_event_id FROM payments.receipts
                WHERE environment = ${environment}
                  AND received_at < now() - ${Duration.toSeconds(retention)} * interval '1 second'
                ORDER BY received_at LIMIT ${batchSize} FOR UPDATE SKIP LOCKED
              )
              DELETE FROM payments.receipts r USING old
              WHERE r.environment = old.environment AND r.provider_event_id = old.provider_event_id
              RETURNING 1`,
            (rows) => rows.length
          )
        ),
      { discard: true }
    )

  return { find, list, storedEvents, eventsOf, clean }
})
