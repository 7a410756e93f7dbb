import { SqlClient, type SqlError, type Statement } from "@effect/sql"
import { Clock, Effect } from "effect"
import { type MatchedEvent, publicationValues } from "../destinations/publishing/Publication.ts"
import { isAmong, matchingPart, storingParts } from "../destinations/publishing/PublicationStatement.ts"
import { type HandOff, type LeasedRow, leasedRows } from "../engine/queue/Enqueue.ts"
import type { EventType } from "../events/Catalog.ts"
import { recordDisconnection } from "../payments/DisconnectionStatement.ts"
import type { Environment } from "../platform/kit/Environment.ts"
import { receiptMonths } from "../platform/storage/partitions/ReceiptMonths.ts"
import { parametersOf } from "../platform/storage/Statements.ts"
import { tenantVersion } from "./ContextStatement.ts"
import type { MalformedPart, Receipt, ReceiptOutcome } from "./Receipt.ts"

/**
 * The partition that stores a receipt. A unique key can't span the months' tables, so all copies of a notification must
 * lead to the same one:
 *
 * - An already stored receipt stays where it is, and its copy is counted there.
 * - A new one goes to the month in which it was created at the provider, which is the same for all its copies.
 * - If that time is implausible (by a wrong clock), or there is no table for its month, it goes to `receipts_undated`.
 *
 * Copies with the same time are found for as long as the receipt is kept, and even those with another time for four
 * weeks.
 */
export type ReceiptPartition =
  | MonthPartition
  /** All tables must be searched: the receipt is old or its time implausible. */
  | { readonly kind: "searched" }

/**
 * The table of this month or the last one, which nearly all receipts go to; `others` are the further tables that might
 * already contain the notification, in which case this statement does not store it.
 */
export interface MonthPartition {
  readonly kind: "month"
  readonly month: string
  readonly others: ReadonlyArray<string>
}

interface Filed {
  readonly providerCreatedAt: Date
}

const millisPerDay = 24 * 3600 * 1000

const searched: ReceiptPartition = { kind: "searched" }

const monthOf = (time: Date): string => time.toISOString().slice(0, 7)

const lastMonth = (now: Date): string => monthOf(new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, 1)))

/** How far ahead the provider's clock may be for its time to be believed, in days. */
export const clockAhead = 1

/** The month in two days' time: receipts may already be stored under it. */
const comingMonth = (now: Date): string => monthOf(new Date(now.getTime() + 2 * clockAhead * millisPerDay))

export const tableOf = (month: string): string => `receipts_${month.replace("-", "")}`

const lookAgain = 60_000

interface Tables {
  readonly months: ReadonlySet<string>
  readonly loadedAt: number
}

/** Finds the partitions of receipts. Caches which months have tables: these exist for as long as they matter here. */
export const makeReceiptPartitions = Effect.map(SqlClient.SqlClient, (sql) => {
  let known: Tables | undefined

  const load = (now: number) =>
    Effect.map(Effect.provideService(receiptMonths, SqlClient.SqlClient, sql), (months) => {
      known = { months, loadedAt: now }
      return known
    })

  const partitionOf = (
    { months }: Tables,
    now: Date,
    recent: ReadonlyArray<string>,
    { providerCreatedAt }: Filed
  ): ReceiptPartition => {
    const month = monthOf(providerCreatedAt)
    if (!recent.includes(month) || !months.has(month)) return searched
    return {
      kind: "month",
      month,
      others: [
        "receipts_undated",
        ...[...new Set([...recent, comingMonth(now)])]
          .filter((other) => other !== month && months.has(other))
          .map(tableOf)
      ]
    }
  }

  return <R extends Filed>(
    receipts: ReadonlyArray<R>
  ): Effect.Effect<ReadonlyArray<readonly [ReceiptPartition, ReadonlyArray<R>]>, SqlError.SqlError> =>
    Effect.flatMap(Clock.currentTimeMillis, (millis) => {
      const now = new Date(millis)
      const isEnough = (tables: Tables) => tables.months.has(comingMonth(now)) || millis < tables.loadedAt + lookAgain
      const tables =
        known !== undefined && isEnough(known) ? Effect.succeed(known) : Effect.withTracerEnabled(load(millis), false)
      return Effect.map(tables, (tables) => {
        const recent = [monthOf(now), lastMonth(now)]
        const partitions = new Map<string, [ReceiptPartition, Array<R>]>()
        for (const receipt of receipts) {
          const partition = partitionOf(tables, now, recent, receipt)
          const key = partition.kind === "month" ? partition.month : partition.kind
          const found = partitions.get(key)
          if (found === undefined) partitions.set(key, [partition, [receipt]])
          else found[1].push(receipt)
        }
        return [...partitions.values()]
      })
    })
})

/** A notification to be stored with its events and deliveries. */
export interface NewReceipt extends Omit<Receipt, "reason" | "duplicates" | "reconciled"> {
  readonly malformedPart: MalformedPart | null
  readonly events: ReadonlyArray<MatchedEvent<EventType>>
  /** The account revoked our access: it is disconnected with the receipt, unless it was linked after that. */
  readonly deauthorizes: boolean
  readonly traceparent: string | null
}

export interface VersionedReceipt extends NewReceipt {
  /** The version that the tenant must have for the receipt to be stored; null if any version will do. */
  readonly tenantVersion: string | null
}

export interface StoredReceipt {
  /** Whether this was its first copy; a further one stores nothing. */
  readonly first: boolean
  readonly outcome: ReceiptOutcome
  /** Whether deliveries stored with it wait in the queue, because this process's worker has not taken them over. */
  readonly waits: boolean
}

export interface StoredReport {
  readonly outcome: NewReceipt["outcome"]
  readonly stored: boolean
  /** Whether some of its deliveries are queued for a worker. */
  readonly waits: boolean
  readonly malformedPart: MalformedPart | null
}

/** The outcome of a notification, from its decision and its stored receipt. */
export const reportOf =
  ({ malformedPart }: Pick<NewReceipt, "malformedPart">) =>
  ({ first, outcome, waits }: StoredReceipt): StoredReport => ({ outcome, stored: first, waits, malformedPart })

export interface ReceiptsRow {
  /** The stored receipts; null if there are none. */
  readonly receipts: ReadonlyArray<
    readonly [environment: Environment, providerEventId: string, first: boolean, outcome: ReceiptOutcome]
  > | null
  /** Their deliveries that are stored under the lease; null if there are none. */
  readonly handed: ReadonlyArray<LeasedRow> | null
  /** Whether others of their deliveries wait in the queue. */
  readonly waits: boolean
  /** In Unix milliseconds, by the database's clock. */
  readonly storedAt: number
}

/** SQL: of an account's simultaneous first payments, only one creates the milestone. */
export const unlessMilestoneIsTaken = (sql: SqlClient.SqlClient) => (type: string) =>
  sql.literal(`(${type} <> 'milestone.first_payment' OR EXISTS (SELECT 1 FROM milestone))`)

const undated = "'infinity'::date"

/**
 * SQL: the rows that a statement for this partition stores, with the columns that `receiptParts` needs: those in no
 * other table, or all if all tables are searched.
 *
 * @param rows a query with at least the columns `environment`, `provider_event_id`, `provider_created_at` and
 * `received_at`
 */
const partitionedRows = (
  sql: SqlClient.SqlClient,
  partition: ReceiptPartition,
  rows: Statement.Fragment
): Statement.Fragment => {
  if (partition.kind === "month") {
    // Not EXISTS, which the planner may turn into a join that reads a whole month
    const isAbsent = partition.others.map(
      (table) => `(SELECT 1 FROM payments.${table} r
          WHERE r.environment = s.environment AND r.provider_event_id = s.provider_event_id) IS NULL`
    )
    return sql`SELECT s.* FROM (${rows}) s WHERE ${sql.literal(isAbsent.join(" AND "))}`
  }
  return sql`
      SELECT s.*, COALESCE(s.stored_under, CASE ${sql.literal(`
          WHEN s.own_month >= payments.month_at(-1)
            AND s.provider_created_at < GREATEST(now(), s.received_at) + interval '${clockAhead} days'
            AND EXISTS (SELECT 1 FROM payments.receipt_months m WHERE m.month = s.own_month) THEN s.own_month
          ELSE ${undated} END`)}) AS month
      FROM (
        SELECT s.*, payments.month_of(s.provider_created_at) AS own_month,
          payments.month_of_receipt(s.environment, s.provider_event_id) AS stored_under
        FROM (${rows}) s
        -- Searches once
        OFFSET 0
      ) s`
}

/**
 * SQL: the parts that store the receipts of `source`, which `partitionedRows` has made. The last part, `receipt`, has
 * the stored rows, each with whether it is the first copy. They must follow `matching`.
 */
const receiptParts = (sql: SqlClient.SqlClient, partition: ReceiptPartition): Statement.Fragment => {
  const table = partition.kind === "month" ? tableOf(partition.month) : "receipts"
  const month = partition.kind === "month" ? `'${partition.month}-01'::date` : "s.month"
  return sql`receipt AS (${sql.literal(`
      INSERT INTO payments.${table} AS r (environment, provider_event_id, organization_id, account_id, type, livemode,
        outcome, reason, provider_created_at, received_at, month)
      SELECT s.environment, s.provider_event_id, s.organization_id, s.account_id, s.type, s.livemode,
        CASE WHEN s.outcome NOT IN ('delivered', 'no_subscriber') THEN s.outcome
          WHEN s.position IN (SELECT m.position FROM matching m WHERE m.active) THEN 'delivered'
          ELSE 'no_subscriber' END,
        s.reason, s.provider_created_at, s.received_at, ${month}
      FROM source s
      -- Always in one order: two statements that have receipts in common never wait for each other
      ORDER BY s.environment, s.provider_event_id
      ON CONFLICT (environment, provider_event_id, month) DO UPDATE SET duplicates = r.duplicates + 1
      RETURNING r.environment, r.provider_event_id, r.duplicates = 0 AS first, r.outcome`)})`
}

/** The values of receipts, each an array with one element per receipt, and those of the events published with them. */
const receiptColumns = [
  "environment",
  "providerEventId",
  "organizationId",
  "accountId",
  "type",
  "livemode",
  "outcome",
  "reason",
  "providerCreatedAt",
  "receivedAt",
  "traceparent",
  "tenantVersion",
  "eventIds",
  "eventKeys",
  "eventTypes",
  "eventPayloads",
  "eventSubjects",
  "eventPositions",
  "deliveries",
  // One for all receipts: the lease of the deliveries that this process's worker takes over as they are stored
  "lease",
  "leaseMillis"
] as const

const accountColumns = ["claimsMilestone", "deauthorizes", "auditId", "requestId"] as const

type ReceiptParameters = Readonly<Record<(typeof receiptColumns)[number], Statement.Fragment>>

interface AccountChanges {
  /** Follows `source`. Comes first: the milestone also decides what is delivered. */
  readonly milestone: Statement.Fragment
  /** Follows `fresh`, the sources whose receipt is the first copy. */
  readonly disconnection: Statement.Fragment
  readonly admits: (column: string) => Statement.Fragment
}

/**
 * A LIMIT that keeps all rows. A generic plan does not know the batch size, and would expect ten rows, or with an
 * unknown limit a tenth of them. With ten it seems so costly that PostgreSQL plans each small batch again, which takes
 * longer than the batch itself.
 */
const allOf = (sql: SqlClient.SqlClient, column: Statement.Fragment): Statement.Fragment =>
  sql`LIMIT cardinality(${column}::text[])`

/**
 * The statement that stores receipts and everything with them. Returns a `ReceiptsRow` about those that were stored:
 * those whose tenants have the required version, and that are in none of the partition's other tables.
 */
const insertionSql = (
  sql: SqlClient.SqlClient,
  partition: ReceiptPartition,
  of: ReceiptParameters,
  change: AccountChanges
): Statement.Fragment =>
  sql`
    WITH source AS MATERIALIZED (${partitionedRows(
      sql,
      partition,
      sql`
        SELECT s.*, s.provider_event_id AS source_event_id
        FROM (
          SELECT * FROM unnest(${of.environment}::text[], ${of.providerEventId}::text[], ${of.organizationId}::uuid[],
            ${of.accountId}::text[], ${of.type}::text[], ${of.livemode}::boolean[], ${of.outcome}::text[],
            ${of.reason}::text[], ${of.providerCreatedAt}::timestamptz[], ${of.receivedAt}::timestamptz[],
            ${of.traceparent}::text[], ${of.tenantVersion}::bigint[]) WITH ORDINALITY
            AS s (environment, provider_event_id, organization_id, account_id, type, livemode, outcome, reason,
              provider_created_at, received_at, traceparent, tenant_version, position)
          ${allOf(sql, of.providerEventId)}
        ) s
        WHERE s.tenant_version IS NULL OR s.tenant_version = ${tenantVersion(sql, "s")}`
    )})${change.milestone}, ${matchingPart(sql, of, change)}, ${receiptParts(sql, partition)}, fresh AS (
      SELECT s.* FROM source s WHERE ${sql.literal(
        isAmong(
          "(s.environment, s.provider_event_id)",
          "SELECT r.environment, r.provider_event_id FROM receipt r WHERE r.first"
        )
      )}
    )${change.disconnection}, ${storingParts(sql, of, {
      from: "fresh",
      admits: change.admits,
      lease: { id: of.lease, millis: of.leaseMillis }
    })}
    SELECT (
        SELECT json_agg(json_build_array(r.environment, r.provider_event_id, r.first, r.outcome)) FROM receipt r
      ) AS receipts,
      ${sql.literal(leasedRows)} AS handed, COALESCE(bool_or(NOT q.leased), false) AS waits,
      date_part('epoch', now()) * 1000 AS "storedAt"
    FROM queued q`

/** For receipts of one partition that change nothing about their accounts, and so contain no milestone. */
export const batchSql = (sql: SqlClient.SqlClient, partition: ReceiptPartition): Statement.Fragment =>
  insertionSql(sql, partition, parametersOf(sql, receiptColumns), {
    milestone: sql``,
    disconnection: sql``,
    admits: (column) => sql.literal(`${column} <> 'milestone.first_payment'`)
  })

/** For one receipt that may change its account. */
export const accountSql = (sql: SqlClient.SqlClient): Statement.Fragment => {
  const of = parametersOf(sql, [...receiptColumns, ...accountColumns])
  return insertionSql(sql, { kind: "searched" }, of, {
    milestone: sql`, milestone AS (
      UPDATE payments.provider_accounts a SET first_payment_event_id = s.provider_event_id FROM source s
      WHERE ${of.claimsMilestone} AND s.stored_under IS NULL
        AND a.organization_id = s.organization_id AND a.environment = s.environment
        AND NOT a.had_payments_before AND a.first_payment_event_id IS NULL
      RETURNING 1
    )`,
    disconnection: sql`, deauthorized AS (
      UPDATE payments.provider_accounts a SET status = 'disconnected', disconnected_at = now() FROM fresh s
      WHERE ${of.deauthorizes} AND a.organization_id = s.organization_id AND a.environment = s.environment
        AND a.account_id = s.account_id AND a.status = 'connected'
        -- The provider dates to the second
        AND GREATEST(a.linked_at, a.access_confirmed_at) < s.provider_created_at + interval '1 second'
      RETURNING a.organization_id, a.environment, a.account_id
    ), disconnection AS (${recordDisconnection(sql, "deauthorized", of)})`,
    admits: unlessMilestoneIsTaken(sql)
  })
}

/** For `batchSql` and `accountSql`. Deliveries that `handOff` takes are stored under its lease. */
export const receiptValues = (
  receipts: ReadonlyArray<VersionedReceipt>,
  handOff: HandOff | null
): ReadonlyArray<unknown> => {
  const values = insertionOf(receipts, handOff)
  return receiptColumns.map((column) => values[column])
}

const insertionOf = (
  receipts: ReadonlyArray<VersionedReceipt>,
  handOff: HandOff | null
): Readonly<Record<(typeof receiptColumns)[number], unknown>> => ({
  environment: receipts.map(({ environment }) => environment),
  providerEventId: receipts.map(({ providerEventId }) => providerEventId),
  organizationId: receipts.map(({ organizationId }) => organizationId),
  accountId: receipts.map(({ accountId }) => accountId),
  type: receipts.map(({ type }) => type),
  livemode: receipts.map(({ livemode }) => livemode),
  outcome: receipts.map(({ outcome }) => outcome),
  reason: receipts.map(({ malformedPart }) => malformedPart?.reason ?? null),
  // As text: the driver would write dates in local time
  providerCreatedAt: receipts.map(({ providerCreatedAt }) => providerCreatedAt.toISOString()),
  receivedAt: receipts.map(({ receivedAt }) => receivedAt.toISOString()),
  traceparent: receipts.map(({ traceparent }) => traceparent),
  tenantVersion: receipts.map(({ tenantVersion }) => tenantVersion),
  ...publicationValues(receipts, (delivery, event, { environment, organizationId, traceparent }) =>
    handOff === null || organizationId === null
      ? false
      : handOff.offerDelivery(delivery, event, { organizationId, environment, traceparent })
  ),
  lease: handOff?.lease ?? null,
  leaseMillis: handOff?.leaseMillis ?? null
})

/** Whether events include a first payment's milestone, which only one notification of an account may create. */
export const claimsMilestone = (events: ReadonlyArray<MatchedEvent<EventType>>): boolean =>
  events.some(({ type }) => type === "milestone.first_payment")
