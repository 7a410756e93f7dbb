import { SqlClient } from "@effect/sql"
import { Effect, Option } from "effect"
import { canSign, signingSecretIds } from "../../engine/attempts/Signing.ts"
import type { Filters } from "../../events/Filters.ts"
import { type DeliveryId, type EndpointId, type EventReplayId, firstIdAt, millisOf } from "../../platform/kit/Ids.ts"
import { ofTenant, type Tenant } from "../../platform/kit/Tenant.ts"
import { removeOld } from "../../platform/storage/Batches.ts"
import { alongIndex } from "../../platform/storage/BoundedReads.ts"
import { anyRow } from "../../platform/storage/Database.ts"
import { holdDays, keepDays } from "../../platform/storage/partitions/DayPartitions.ts"
import { clockDifference } from "../deliveries/DeliveriesRepo.ts"
import { furtherDeliveries } from "../publishing/PublicationStatement.ts"
import type { EventReplay, ListEventReplays } from "./Api.ts"

/** A step adds deliveries only to an endpoint with fewer due ones than this: live traffic goes first. */
const mostDue = 20

/** The most that may wait in all, for an endpoint that is down: more would only wait for its next attempts. */
const mostWaiting = 500

/** How many events a step looks at. */
const eventsPerStep = 500

/** The longest time for which an open transaction that may have stored events delays a replay. */
const longestTransaction = "10 minutes"

export interface LockedReplay extends Tenant {
  readonly id: EventReplayId
  readonly endpointId: EndpointId
  readonly deleted: boolean
  /** The requested types that are still subscribed to. */
  readonly types: ReadonlyArray<string>
  readonly filters: Filters
  readonly secretIds: ReadonlyArray<string>
  /** The last key that was processed, and the first one after the replay's range. */
  readonly reached: string
  readonly end: string
}

/** Without a payload if it is of another type, or of a day that is about to be removed. */
export interface LookedAtEvent {
  readonly key: string
  readonly id: string
  readonly payload: string | null
  readonly filterSubjects: string | null
}

export interface CoveringReplay {
  readonly id: EventReplayId
  readonly endpointId: EndpointId
}

export interface ReplayStep {
  readonly deliveries: ReadonlyArray<{ readonly id: DeliveryId; readonly eventKey: string }>
  readonly skipped: number
  readonly reached: string
  readonly state: EventReplay["state"]
}

interface Row extends Omit<EventReplay, "reachedAt"> {
  readonly reached: string
}

const toReplay = ({ reached, ...row }: Row): EventReplay => ({
  ...row,
  reachedAt: row.state === "finished" ? row.until : new Date(millisOf(reached))
})

const makeParts = (sql: SqlClient.SqlClient) => {
  const columns = sql.literal(`
    r.id, r.endpoint_id AS "endpointId", r.since, r.until, r.types, r.state, r.queued::float8, r.skipped::float8, r.reached,
    r.created_at AS "createdAt", r.finished_at AS "finishedAt"`)
  const ofEndpoint = (tenant: Tenant, endpointId: EndpointId) =>
    sql`${ofTenant(sql, tenant, "r")} AND r.endpoint_id = ${endpointId}`
  /** Whether at least `count` rows of the queue are the endpoint's, among those that the condition selects. */
  const hasWaiting = (count: number, which: string) =>
    sql.literal(`(SELECT count(*) FROM (
      SELECT 1 FROM payments.delivery_queue q
      WHERE q.organization_id = r.organization_id AND q.environment = r.environment AND q.endpoint_id = r.endpoint_id
        ${which} LIMIT ${count}) AS waiting) >= ${count}`)
  /**
   * Whether an event `e` is of these types, and of a day that can be kept. A day's table may still exist after its
   * removal began, until its readers have finished.
   */
  const isWanted = (types: ReadonlyArray<string>) => sql`
    e.type = ANY (${types}::text[]) AND payments.day_of(e.id::uuid) IN (SELECT day FROM payments.days)`

  return { sql, columns, ofEndpoint, hasWaiting, isWanted }
}

type Parts = ReturnType<typeof makeParts>

const reads = ({ columns, ofEndpoint, sql }: Parts) => ({
  isRunning: (tenant: Tenant, endpointId: EndpointId) =>
    anyRow(sql`SELECT 1 FROM payments.event_replays r WHERE ${ofEndpoint(tenant, endpointId)} AND r.state = 'running'`),

  find: (tenant: Tenant, endpointId: EndpointId, id: EventReplayId) =>
    Effect.map(
      sql<Row>`
          SELECT ${columns} FROM payments.event_replays r WHERE ${ofEndpoint(tenant, endpointId)} AND r.id = ${id}`,
      ([row]) => Option.map(Option.fromNullable(row), toReplay)
    ),

  list: (tenant: Tenant, endpointId: EndpointId, { starting_after }: ListEventReplays, limit: number) =>
    Effect.map(
      sql<Row>`
          SELECT ${columns} FROM payments.event_replays r
          WHERE ${ofEndpoint(tenant, endpointId)}
            AND (${starting_after ?? null}::uuid IS NULL OR r.id < ${starting_after ?? null}::uuid)
          ORDER BY r.id DESC LIMIT ${limit}`,
      (rows) => rows.map(toReplay)
    ),

  /** The newest replays before an id that may have sent an event of this time and type. */
  covering: (
    tenant: Tenant,
    { receivedAt, type }: { readonly receivedAt: Date; readonly type: string },
    page: { readonly before: string; readonly limit: number }
  ) =>
    sql<CoveringReplay>`
        SELECT r.id, r.endpoint_id AS "endpointId" FROM payments.event_replays r
        WHERE ${ofTenant(sql, tenant, "r")} AND r.since <= ${receivedAt.toISOString()}::timestamptz
          AND r.until > ${receivedAt.toISOString()}::timestamptz
          AND r.queued > 0 AND (r.types IS NULL OR ${type}::text = ANY (r.types)) AND r.id < ${page.before}::uuid
        ORDER BY r.id DESC LIMIT ${page.limit}`,

  /** Whether any replay is running, including one that waits for room at its endpoint. */
  hasRunning: anyRow(sql`
        SELECT 1 FROM payments.event_replays r
        JOIN payments.endpoints p ON p.organization_id = r.organization_id AND p.environment = r.environment
          AND p.id = r.endpoint_id AND p.active AND ${sql.literal(canSign("p"))}
        WHERE r.state = 'running' LIMIT 1`)
})

const changes = ({ ofEndpoint, sql }: Parts) => ({
  insert: (
    tenant: Tenant,
    endpointId: EndpointId,
    replay: Pick<EventReplay, "id" | "since" | "until"> & { readonly types: ReadonlyArray<string> | null }
  ) => sql`
      INSERT INTO payments.event_replays
        (organization_id, environment, id, endpoint_id, since, until, types, reached, created_at)
      VALUES (${tenant.organizationId}, ${tenant.environment}, ${replay.id}, ${endpointId},
        ${replay.since.toISOString()}::timestamptz, ${replay.until.toISOString()}::timestamptz, ${replay.types}::text[],
        ${firstIdAt(replay.since.getTime())}, clock_timestamp())`,

  cancel: (tenant: Tenant, endpointId: EndpointId, id: EventReplayId) =>
    anyRow(sql`
          UPDATE payments.event_replays r SET state = 'canceled', finished_at = clock_timestamp()
          WHERE ${ofEndpoint(tenant, endpointId)} AND r.id = ${id} AND r.state = 'running' RETURNING 1`),

  /** Removes ended replays older than the retention whose deliveries are gone. */
  removeOlderThan: (retentionMillis: number) =>
    removeOld(sql, {
      table: "event_replays",
      key: ["organization_id", "environment", "id"],
      old: sql`r.state <> 'running' AND r.finished_at < now() - ${retentionMillis} * interval '1 millisecond'
          AND NOT EXISTS (SELECT 1 FROM payments.days d WHERE d.day = payments.day_of(r.id))`,
      by: "finished_at"
    })
})

const locking = ({ hasWaiting, sql }: Parts) => ({
  /**
   * Locks a running replay whose endpoint is active, can be signed for and has room for more: the given one, or
   * without an id the one that has waited longest. None if there is none, other processes have locked them all, or
   * days are being removed. Also locks the endpoint's row, against a concurrent deletion. Requires a transaction.
   */
  lock: (id: EventReplayId | null) =>
    Effect.if(holdDays(sql), {
      onFalse: () => Effect.succeedNone,
      onTrue: () =>
        Effect.map(
          sql<
            Omit<LockedReplay, "types" | "end"> & {
              readonly subscribed: ReadonlyArray<string>
              readonly wanted: ReadonlyArray<string> | null
              readonly until: Date
            }
          >`
              SELECT r.organization_id AS "organizationId", r.environment, r.id, r.endpoint_id AS "endpointId",
                p.deleted_at IS NOT NULL AS deleted, COALESCE(p.events, ARRAY['payment.succeeded']) AS subscribed,
                r.types AS wanted, p.filters, COALESCE(${sql.literal(signingSecretIds("p"))}, '[]') AS "secretIds",
                r.reached, r.until
              FROM payments.event_replays r JOIN payments.endpoints p
                ON p.organization_id = r.organization_id AND p.environment = r.environment AND p.id = r.endpoint_id
              WHERE r.state = 'running' AND (${id}::uuid IS NULL OR r.id = ${id}::uuid)
                AND (p.deleted_at IS NOT NULL OR p.active AND ${sql.literal(canSign("p"))}
                  AND NOT ${hasWaiting(mostDue, "AND q.next_attempt_at <= now()")} AND NOT ${hasWaiting(mostWaiting, "")})
              ORDER BY r.stepped_at LIMIT 1 FOR UPDATE OF r SKIP LOCKED FOR SHARE OF p`,
          ([row]) =>
            Option.map(
              Option.fromNullable(row),
              ({ subscribed, until, wanted, ...replay }): LockedReplay => ({
                ...replay,
                types: subscribed.filter((type) => wanted === null || wanted.includes(type)),
                end: firstIdAt(until.getTime())
              })
            )
        )
    })
})

const steps = ({ isWanted, sql }: Parts) => ({
  /**
   * Where a replay must stop for now. Before its end only while a transaction is open that may have stored events
   * before the replay was started. These become visible when it commits, and it may have read the endpoint's state
   * from before the replay, so nothing else would send them. Events of later transactions are sent to the endpoint
   * anyway.
   */
  settledEnd: ({ end, id, ...tenant }: LockedReplay) =>
    Effect.map(
      sql<{ readonly begunAt: number | null }>`
          SELECT (date_part('epoch', min(a.xact_start)) * 1000)::float8 AS "begunAt"
          FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
          WHERE l.locktype = 'relation' AND l.relation = 'payments.events'::regclass AND l.mode = 'RowExclusiveLock'
            AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND a.pid <> pg_backend_pid()
            AND a.xact_start <= (SELECT r.created_at FROM payments.event_replays r WHERE ${ofTenant(sql, tenant, "r")} AND r.id = ${id})
            AND a.xact_start > clock_timestamp() - ${longestTransaction}::interval`,
      ([row]) => {
        if (row === undefined || row.begunAt === null) return end
        const settled = firstIdAt(row.begunAt - clockDifference * 1000)
        return settled < end ? settled : end
      }
    ),

  /** The next events of a replay, oldest first, of all types, and whether they are the last ones. */
  next: ({ end, reached, types, ...tenant }: LockedReplay) =>
    Effect.map(
      sql<LookedAtEvent>`
          SELECT e.id AS key, e.public_id AS id,
            CASE WHEN ${isWanted(types)} THEN e.payload END AS payload,
            CASE WHEN ${isWanted(types)} THEN e.filter_subjects END AS "filterSubjects"
          FROM payments.events e
          WHERE ${ofTenant(sql, tenant, "e")} AND e.id > ${reached} AND e.id < ${end}
          ORDER BY e.id LIMIT ${eventsPerStep}`.pipe((events) => Effect.zipRight(alongIndex(sql), events)),
      (events) => ({ events, last: events.length < eventsPerStep })
    ),

  store: (replay: LockedReplay, { deliveries, reached, skipped, state }: ReplayStep) => {
    const keys = deliveries.map(({ eventKey }) => eventKey)
    const insert = sql`
        WITH ${furtherDeliveries(sql, {
          ...replay,
          ids: deliveries.map(({ id }) => id),
          eventKeys: keys
        })}
        UPDATE payments.event_replays r SET
          queued = r.queued + (SELECT count(*) FROM delivery), skipped = r.skipped + ${skipped}::int,
          reached = ${reached}, stepped_at = clock_timestamp(), state = ${state},
          finished_at = CASE WHEN ${state}::text <> 'running' THEN clock_timestamp() END
        WHERE ${ofTenant(sql, replay, "r")} AND r.id = ${replay.id}`
    return Effect.asVoid(Effect.zipRight(keepDays(sql, keys, replay.id), insert))
  }
})

export const makeEventReplaysRepo = Effect.map(SqlClient.SqlClient, (sql) => {
  const parts = makeParts(sql)
  return { ...reads(parts), ...changes(parts), ...locking(parts), ...steps(parts) }
})
