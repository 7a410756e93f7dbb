import type { SqlClient, Statement } from "@effect/sql"

/** What triggered an attempt: the service, or a re-send. */
export type AttemptTrigger = "automatic" | "manual"

/** A lease under which deliveries are put in the queue: SQL fragments for its id and its length in milliseconds. */
export interface EnqueueLease {
  readonly id: Statement.Fragment
  readonly millis: Statement.Fragment
}

/**
 * The part of a statement that puts new deliveries in the queue. Each is due at once, or is leased with its first
 * attempt already in progress. `deliveries` is as for `enqueue`; `leased` names the part whose column `leased` tells,
 * by `id`, which deliveries are leased. Returns `id`, `leased`, and the row's place, for `leasedRows`.
 */
export const enqueueLeased = (
  sql: SqlClient.SqlClient,
  deliveries: string,
  leased: string,
  lease: EnqueueLease
): Statement.Fragment => sql`
    INSERT INTO payments.delivery_queue (organization_id, environment, id, endpoint_id, event_id, secret_ids,
      attempt_count, traceparent, created_at, lease, claimed_at, leased_until)
    SELECT d.organization_id, d.environment, d.id, d.endpoint_id, d.event_id, d.secret_ids,
      CASE WHEN d.leased THEN 1 ELSE 0 END, d.traceparent, d.created_at,
      CASE WHEN d.leased THEN ${lease.id}::uuid END, CASE WHEN d.leased THEN now() END,
      CASE WHEN d.leased THEN now() + ${lease.millis}::float8 * interval '1 millisecond' END
    -- Not a join, see isAmong; asks once for each
    FROM (
      SELECT d.*, d.id IN (SELECT l.id FROM ${sql.literal(leased)} l WHERE l.leased) AS leased
      FROM ${sql.literal(deliveries)} d OFFSET 0
    ) d
    RETURNING id, lease IS NOT NULL AS leased, ctid AS tid`

/** The leased deliveries among rows `q` of that part, each with its place, as JSON. Null if there are none. */
export const leasedRows = "json_agg(json_build_array(q.id, q.tid)) FILTER (WHERE q.leased)"

/**
 * The part of a statement that puts deliveries in the queue, due at once. Every statement that stores deliveries, or
 * queues them again, must include it: no waiting delivery may be missing from the queue.
 *
 * @param deliveries names the part of the statement that wrote the deliveries and returns their rows
 * @param trigger what triggers the attempt
 */
export const enqueue = (
  sql: SqlClient.SqlClient,
  deliveries: string,
  trigger: AttemptTrigger = "automatic"
): Statement.Fragment =>
  sql.literal(`
    INSERT INTO payments.delivery_queue (organization_id, environment, id, endpoint_id, event_id, secret_ids,
      attempt_count, next_trigger, traceparent, created_at)
    SELECT organization_id, environment, id, endpoint_id, event_id, secret_ids,
      attempt_count, '${trigger}', traceparent, created_at
    FROM ${deliveries}`)
