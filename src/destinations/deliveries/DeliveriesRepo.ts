import { SqlClient, type Statement } from "@effect/sql"
import { Duration, Effect, Option } from "effect"
import { deliveryWindow, maxAttempts, type ResendCandidate, resendRefusal } from "../../engine/attempts/Outcome.ts"
import { mayBeUnsigned, rotationOverlap, signsDelivery } from "../../engine/attempts/Signing.ts"
import { enqueue } from "../../engine/queue/Enqueue.ts"
import { amountFields } from "../../events/Filters.ts"
import { type DeliveryId, type EndpointId, firstIdAt } from "../../platform/kit/Ids.ts"
import { ofTenant, type Tenant } from "../../platform/kit/Tenant.ts"
import { removeOld } from "../../platform/storage/Batches.ts"
import { timedRead } from "../../platform/storage/BoundedReads.ts"
import { anyRow, firstRow, transaction } from "../../platform/storage/Database.ts"
import { useDays } from "../../platform/storage/partitions/DayPartitions.ts"
import { paymentOf } from "../../platform/storage/partitions/EventIndexes.ts"
import { makePreparing } from "../../platform/storage/Statements.ts"
import { countSoon } from "../statistics/CountStatements.ts"
import type { Attempt, Delivery, ListDeliveries } from "./Api.ts"

/**
 * Rows past their retention are not read, even while their day's table still holds them: a day is removed as a whole,
 * and any replay or re-send keeps it for all organizations.
 */

/** SQL: the earliest time at which something that is kept may have ended. */
export const keptSince = (keepFor: Duration.Duration): string =>
  `now() - ${Duration.toMillis(keepFor)} * interval '1 millisecond'`

/** SQL: whether a delivery `d` may be read. */
export const isReadable = (keepFor: Duration.Duration): string =>
  `(d.state = 'queued' OR d.finished_at >= ${keptSince(keepFor)})`

/** An attempt as the database's JSON. */
export type StoredAttempt = Omit<Attempt, "startedAt"> & { readonly startedAt: string }

export interface StoredDetail extends Delivery {
  readonly payload: string
  readonly attempts: ReadonlyArray<StoredAttempt>
}

export interface ResendOutcome extends ResendCandidate {
  readonly requeued: boolean
}

export interface WantedOfEvent {
  readonly from: number
  readonly until: number
  readonly ids: ReadonlyArray<DeliveryId>
  readonly limit: number
  readonly conditions: ReadonlyArray<Statement.Fragment>
}

export interface MissingReferences {
  readonly id: string
  readonly delivery: boolean
  readonly event: boolean
  readonly endpoint: boolean
}

/** How many waiting deliveries are checked: those that have waited longest, since broken ones stay. */
const referencesLookedAt = 1000

export const makeResendSql = Effect.map(SqlClient.SqlClient, (sql) => {
  const ofEndpoint = sql.literal(`
    SELECT s.id FROM payments.endpoint_secrets s
    WHERE s.organization_id = d.organization_id AND s.environment = d.environment AND s.endpoint_id = d.endpoint_id`)

  const signing = sql`(${ofEndpoint} AND s.id = ANY (d.secret_ids) AND ${sql.literal(signsDelivery("s", "d"))})`

  /** Whether none of the delivery's secrets may sign any more. */
  const unsigned = sql`NOT EXISTS ${signing}`

  /** The endpoint's current secret, as an array; null if it has none. */
  const currentSecret = sql`(SELECT array_agg(id) FROM (${ofEndpoint} AND s.retired_at IS NULL) AS current)`

  return {
    /** The condition of a re-send, as in `resendRefusal`, except for the endpoint's deletion. */
    mayBeResent: sql`d.state = 'failed' AND d.attempt_count < ${maxAttempts}
      AND d.created_at >= now() - ${Duration.toSeconds(deliveryWindow)} * interval '1 second'`,

    /**
     * Queues a delivery for one manual attempt, together with `enqueue`. It is signed with its own secrets, or with the
     * endpoint's current one if none of those may still sign. If there is no current one either, since its master key
     * was lost, it waits for one: see `Destinations`.
     */
    requeue: sql`state = 'queued', finished_at = NULL,
      secret_ids = CASE WHEN ${unsigned} THEN COALESCE(${currentSecret}, d.secret_ids) ELSE d.secret_ids END`,

    unsigned,
    currentSecret
  }
})

/** How far the clocks of a process and of the database may differ, in seconds. */
export const clockDifference = 3600

/**
 * SQL: a part of an event's `data`. The team's own events may hold anything: a part of another form is null, and nothing
 * is unescaped.
 */
const ofData = (part: string): string =>
  `(SELECT ${part} FROM (SELECT e.payload::json -> 'data' AS data OFFSET 0) AS body)`

const numberIn = (field: string): string =>
  `CASE WHEN (data -> '${field}')::text ~ '^[0-9]{1,15}$' THEN (data -> '${field}')::text::float8 END`

export const deliveryColumns = `
  ${paymentOf("e.payload")} AS "paymentId", ${ofData(`COALESCE(${amountFields.map(numberIn).join(", ")})`)} AS amount,
  ${ofData(`substring((data -> 'currency')::text FROM '^"([a-z]{3})"$')`)} AS currency,
  d.id, d.endpoint_id AS "endpointId", e.public_id AS "eventId", e.type, d.state, d.test,
  COALESCE(q.attempt_count, d.attempt_count) AS "attemptCount",
  CASE WHEN isfinite(q.leased_until) THEN q.leased_until ELSE q.next_attempt_at END AS "nextAttemptAt", d.created_at AS "createdAt",
  d.finished_at AS "finishedAt", d.last_http_status AS "lastHttpStatus", d.last_error_code AS "lastErrorCode"`

/** A delivery `d` with its event `e`, and its row in the queue `q` if it is waiting. */
export const deliveryTables = `
  payments.deliveries d JOIN payments.events e
    ON e.organization_id = d.organization_id AND e.environment = d.environment AND e.id = d.event_id
  LEFT JOIN payments.delivery_queue q
    ON q.organization_id = d.organization_id AND q.environment = d.environment AND q.id = d.id`

/** The age, in milliseconds, below which all of a delivery's secrets still sign it. */
const oldestSigned = Duration.toMillis(rotationOverlap) - clockDifference * 1000

/** The conditions of a search on the delivery `d` alone, without those on its state and event. */
export const searchConditions = (
  sql: SqlClient.SqlClient,
  tenant: Tenant,
  { created_gte: from, created_lte: until, starting_after: after }: ListDeliveries
): ReadonlyArray<Statement.Fragment> => [
  ofTenant(sql, tenant, "d"),
  ...(after === undefined ? [] : [sql`d.id < ${after}`]),
  ...(from === undefined ? [] : [sql`d.created_at >= to_timestamp(${from})`]),
  // Includes the whole second, as if times were stored in seconds
  ...(until === undefined
    ? []
    : [
        sql`d.created_at < to_timestamp(${until}::bigint + 1)`,
        // Ids begin with a time from a process's clock, so the index skips newer deliveries
        sql`d.id < ${firstIdAt((until + clockDifference) * 1000)}::uuid`
      ])
]

export const ofStateAndType = (
  sql: SqlClient.SqlClient,
  { state, type }: ListDeliveries
): ReadonlyArray<Statement.Fragment> => [
  ...(state === undefined ? [] : [sql`d.state = ${state}`]),
  ...(type === undefined ? [] : [sql`e.type = ${type}`])
]

const makeParts = Effect.fnUntraced(function* (keepFor: Duration.Duration) {
  const sql = yield* SqlClient.SqlClient
  const prepare = yield* makePreparing
  const resendSql = yield* makeResendSql
  const columns = sql.literal(deliveryColumns)
  const joined = sql.literal(deliveryTables)
  const readable = sql.literal(isReadable(keepFor))
  return { keepFor, sql, prepare, resendSql, columns, joined, readable }
})

type Parts = Effect.Effect.Success<ReturnType<typeof makeParts>>

const reads = ({ columns, joined, prepare, readable, sql }: Parts) => {
  const detail = prepare<StoredDetail>(sql`
    SELECT ${columns}, e.payload, COALESCE((
      SELECT json_agg(json_build_object('number', a.number, 'trigger', a.trigger, 'startedAt', a.started_at,
        'durationMs', a.duration_ms, 'httpStatus', a.http_status, 'errorCode', a.error_code) ORDER BY a.number)
      FROM unnest(d.attempts) a WHERE a.number IS NOT NULL
    ), '[]') AS attempts
    FROM ${joined}
    WHERE d.organization_id = ${"organization"} AND d.environment = ${"environment"} AND d.id = ${"id"}
      AND ${readable}`)

  return {
    hasDelivery: (tenant: Tenant, endpointId: EndpointId, id: DeliveryId) =>
      anyRow(sql`
        SELECT 1 FROM payments.deliveries d
        WHERE ${ofTenant(sql, tenant, "d")} AND d.endpoint_id = ${endpointId} AND d.id = ${id}`),

    /** Newest first: ids begin with their time. Takes at most 3 seconds: filters may match little of a long history. */
    list: (tenant: Tenant, endpointId: EndpointId, query: ListDeliveries, limit: number) => {
      const conditions = [
        ...searchConditions(sql, tenant, query),
        sql`d.endpoint_id = ${endpointId}`,
        readable,
        ...ofStateAndType(sql, query)
      ]
      return timedRead(sql)(sql<Delivery>`
        SELECT ${columns} FROM ${joined} WHERE ${sql.and(conditions)} ORDER BY d.id DESC LIMIT ${limit}`)
    },

    find: (tenant: Tenant, id: DeliveryId) =>
      firstRow(sql<Delivery>`SELECT ${columns} FROM ${joined} WHERE ${ofTenant(sql, tenant, "d")} AND d.id = ${id}`),

    /**
     * An event's deliveries, newest first: those created between `from` and `until` (Unix milliseconds), and those with
     * the given ids. No index leads from an event to its deliveries.
     */
    ofEvent: (tenant: Tenant, eventKey: string, { conditions, from, ids, limit, until }: WantedOfEvent) => {
      const its = sql.and([ofTenant(sql, tenant, "d"), readable, sql`d.event_id = ${eventKey}`, ...conditions])
      return sql<Delivery>`
        SELECT * FROM (
          SELECT ${columns} FROM ${joined}
          WHERE ${its} AND d.id >= ${firstIdAt(from)}::uuid AND d.id < ${firstIdAt(until)}::uuid
          UNION ALL
          SELECT ${columns} FROM ${joined} WHERE ${its} AND d.id = ANY (${ids}::uuid[])
        ) AS of_event ORDER BY id DESC LIMIT ${limit}`
    },

    findDetail: (tenant: Tenant, id: DeliveryId) => firstRow(detail([tenant.organizationId, tenant.environment, id]))
  }
}

const resending = ({ readable, resendSql, sql }: Parts) => {
  const ofResend = (tenant: Tenant, id: DeliveryId) => sql`
    FROM payments.deliveries d JOIN payments.endpoints p
      ON p.organization_id = d.organization_id AND p.environment = d.environment AND p.id = d.endpoint_id
    WHERE ${ofTenant(sql, tenant, "d")} AND d.id = ${id} AND ${readable}`
  /** Locks against concurrent re-sends, the recording of an attempt and the endpoint's deletion. */
  const lockForResend = (tenant: Tenant, id: DeliveryId) =>
    sql`SELECT 1 ${ofResend(tenant, id)} FOR UPDATE OF d FOR SHARE OF p`
  const readForResend = (tenant: Tenant, id: DeliveryId) => sql<ResendCandidate>`
    SELECT d.state, d.attempt_count AS "attemptCount", p.deleted_at IS NOT NULL AS "endpointDeleted",
      (EXTRACT(EPOCH FROM now() - d.created_at) * 1000)::float8 AS "ageMillis" ${ofResend(tenant, id)}`
  const requeue = (tenant: Tenant, id: DeliveryId) => sql`
    WITH requeued AS (
      UPDATE payments.deliveries d SET ${resendSql.requeue} WHERE ${ofTenant(sql, tenant, "d")} AND d.id = ${id} RETURNING d.*
    ), used AS (${useDays(sql, "requeued")}), counted AS (${countSoon(sql, "requeued")})
    ${enqueue(sql, "requeued", "manual")}`

  return {
    /** If it may be re-sent. Returns its previous state; none if there is no such delivery. */
    resend: (tenant: Tenant, id: DeliveryId) =>
      transaction(sql)(
        Effect.gen(function* () {
          yield* lockForResend(tenant, id)
          // A separate statement: the first would still see other rows as they were before it waited for the lock
          const [candidate] = yield* readForResend(tenant, id)
          if (candidate === undefined) return Option.none<ResendOutcome>()
          const requeued = Option.isNone(resendRefusal(candidate))
          if (requeued) yield* requeue(tenant, id)
          return Option.some<ResendOutcome>({ ...candidate, requeued })
        })
      )
  }
}

const rebinding = ({ resendSql, sql }: Parts) => ({
  /**
   * Binds queued deliveries whose secrets have all expired to their endpoint's current secret, so that they can be
   * signed. These are deliveries that have waited longer than a rotated secret is kept (contract 8.6). Returns how
   * many.
   *
   * Such a delivery is older than its endpoint's current secret. So this checks, for each endpoint, only the waiting
   * deliveries that precede the secret and are old enough, and reads nothing else of a long queue.
   */
  rebind: Effect.map(
    Effect.suspend(
      () => sql`
        WITH old AS MATERIALIZED (
          SELECT q.organization_id, q.environment, q.id, s.id AS secret_id FROM payments.endpoint_secrets s
          CROSS JOIN LATERAL (
            SELECT d.organization_id, d.environment, d.id FROM payments.delivery_queue d
            WHERE d.organization_id = s.organization_id AND d.environment = s.environment
              AND d.id < LEAST(${firstIdAt(Date.now() - oldestSigned)}::uuid,
                payments.first_id_of((s.created_at AT TIME ZONE 'UTC')::date + 1)::uuid)
              AND d.endpoint_id = s.endpoint_id AND d.lease IS NULL AND ${sql.literal(mayBeUnsigned("d"))}
              AND ${resendSql.unsigned}
          ) q
          WHERE s.retired_at IS NULL
        ), bound AS (
          UPDATE payments.delivery_queue d SET secret_ids = ARRAY[old.secret_id] FROM old
          WHERE d.organization_id = old.organization_id AND d.environment = old.environment AND d.id = old.id
            AND d.lease IS NULL
          RETURNING d.organization_id, d.environment, d.id, d.secret_ids
        )
        UPDATE payments.deliveries d SET secret_ids = bound.secret_ids
        FROM bound
        WHERE d.organization_id = bound.organization_id AND d.environment = bound.environment AND d.id = bound.id
        RETURNING 1`
    ),
    (rows) => rows.length
  )
})

const removeRecords = ({ keepFor, sql }: Parts, table: string, ...key: ReadonlyArray<string>) =>
  removeOld(sql, {
    table,
    key: ["organization_id", "environment", ...key],
    old: sql`r.created_at < now() - ${Duration.toMillis(keepFor)} * interval '1 millisecond'`,
    by: "created_at"
  })

const upkeep = (parts: Parts) => ({
  dangling: parts.sql<MissingReferences>`
    SELECT id, delivery, event, endpoint FROM (
      SELECT q.id,
        (SELECT 1 FROM payments.deliveries d WHERE d.organization_id = q.organization_id
          AND d.environment = q.environment AND d.id = q.id) IS NULL AS delivery,
        (SELECT 1 FROM payments.events e WHERE e.organization_id = q.organization_id
          AND e.environment = q.environment AND e.id = q.event_id) IS NULL AS event,
        (SELECT 1 FROM payments.endpoints p WHERE p.organization_id = q.organization_id
          AND p.environment = q.environment AND p.id = q.endpoint_id) IS NULL AS endpoint
      FROM (SELECT * FROM payments.delivery_queue ORDER BY next_attempt_at LIMIT ${referencesLookedAt}) AS q
    ) AS waiting WHERE delivery OR event OR endpoint`,

  /** Removes the records of skipped and published events, and of claims, whose retention has ended. */
  removeOldRecords: Effect.all([
    removeRecords(parts, "skipped_events", "endpoint_id", "event_id"),
    removeRecords(parts, "published_events", "id"),
    removeOld(parts.sql, {
      table: "unconfirmed_claims",
      key: ["lease"],
      old: parts.sql`r.lease < payments.id_at(now() - ${Duration.toMillis(parts.keepFor)} * interval '1 millisecond')`,
      by: "lease"
    })
  ])
})

/** Deliveries that ended longer ago than `keepFor` are not found. */
export const makeDeliveriesRepo = Effect.fnUntraced(function* (keepFor: Duration.Duration) {
  const parts = yield* makeParts(keepFor)
  return { ...reads(parts), ...resending(parts), ...rebinding(parts), ...upkeep(parts) }
})
