import type { SqlClient, Statement } from "@effect/sql"
import { Effect } from "effect"
import { v7 } from "uuid"
import { enqueue } from "../../../src/engine/queue/Enqueue.ts"
import { inDatabase, TestService } from "../../harness/TestService.ts"
import { makeSubscriber } from "../../inbound/Notifications.ts"

/** A tenant with an endpoint, and `of`, whose deliveries are stored. */
export const makeEndpoint = Effect.gen(function* () {
  const { id, tenant } = yield* makeSubscriber()
  return { tenant, endpointId: id, of: { organizationId: tenant.id, endpointId: id } }
})

/** Deliveries as attempts have left them. Times are in seconds before now. */
export interface StoredDelivery {
  readonly organizationId: string
  readonly environment?: "sandbox" | "production"
  readonly endpointId: string
  readonly count?: number
  readonly state?: "queued" | "delivered" | "failed"
  readonly createdAgo?: number
  readonly finishedAgo?: number
  readonly attempts?: number
  readonly test?: boolean
  readonly errorCode?: string
  readonly httpStatus?: number | null
}

/** Stores deliveries, each with its event, one attempt in the history, and the endpoint's secrets; their ids. */
export const storeDeliveries = Effect.fnUntraced(function* (options: StoredDelivery) {
  const { attempts = 1, count = 1, environment = "sandbox", finishedAgo = 0, state = "failed", test = false } = options
  const createdAgo = options.createdAgo ?? finishedAgo
  const ids = Array.from({ length: count }, () => v7({ msecs: Date.now() - createdAgo * 1000 }))
  const errorCode = options.errorCode ?? (state === "failed" ? "http_error" : null)
  const httpStatus = options.httpStatus === undefined ? (state === "failed" ? 503 : 204) : options.httpStatus
  // A past day has its tables by then, and nothing of it is newer than what is stored here
  yield* inDatabase`SELECT payments.add_day(day) FROM (SELECT DISTINCT payments.day_of(id) AS day FROM unnest(${ids}::uuid[]) AS id)`
  yield* inDatabase`UPDATE payments.days SET used_at = NULL WHERE day < (now() AT TIME ZONE 'UTC')::date`
  // An event's id in the database is that of its delivery
  yield* inDatabase`
    INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload, created_at)
    SELECT ${options.organizationId}, ${environment}, id, 'svc_evt_' || id, 'payment.succeeded',
      json_build_object('id', 'svc_evt_' || id, 'type', 'payment.succeeded')::text, now() - ${createdAgo} * interval '1 second'
    FROM unnest(${ids}::uuid[]) AS id`
  yield* inDatabase`
    WITH delivery AS (
      INSERT INTO payments.deliveries (organization_id, environment, id, endpoint_id, event_id, secret_ids, state, test,
        attempt_count, attempts, created_at, finished_at, last_error_code, last_http_status)
      SELECT ${options.organizationId}, ${environment}, id, ${options.endpointId}, id::text,
        ARRAY(SELECT s.id FROM payments.endpoint_secrets s WHERE s.endpoint_id = ${options.endpointId}
          AND s.retired_at IS NULL),
        ${state}, ${test}, ${attempts},
        ARRAY[ROW(${attempts}, 'automatic', now(), NULL, NULL, NULL)::payments.delivery_attempt],
        now() - ${createdAgo} * interval '1 second',
        CASE WHEN ${state !== "queued"} THEN now() - ${finishedAgo} * interval '1 second' END,
        ${errorCode}, ${httpStatus}
      FROM unnest(${ids}::uuid[]) AS id
      RETURNING *
    )
    INSERT INTO payments.delivery_queue (organization_id, environment, id, endpoint_id, event_id, secret_ids,
      attempt_count, next_attempt_at, created_at)
    SELECT organization_id, environment, id, endpoint_id, event_id, secret_ids, attempt_count,
      now() + interval '1 day', created_at
    FROM delivery WHERE state = 'queued'`
  return ids
}, Effect.orDie)

export const statesOf = (endpointId: string) =>
  Effect.map(
    inDatabase<{ state: string; count: number }>`
      SELECT state, count(*)::int AS count FROM payments.deliveries WHERE endpoint_id = ${endpointId} GROUP BY state`,
    (rows) => Object.fromEntries(rows.map(({ count, state }) => [state, count]))
  )

/**
 * Ends what waits and fulfils a condition on the queue's columns, as if an attempt had just done so: it leaves the queue.
 * The ids of what has ended so.
 */
export const endQueued = (
  sql: SqlClient.SqlClient,
  condition: Statement.Fragment,
  state: "delivered" | "failed"
) => sql<{
  readonly id: string
}>`
  WITH gone AS (DELETE FROM payments.delivery_queue WHERE ${condition} RETURNING id, attempt_count)
  UPDATE payments.deliveries d SET state = ${state}, finished_at = now(), attempt_count = gone.attempt_count
  FROM gone WHERE d.id = gone.id RETURNING d.id`

export const endDeliveries = (ids: ReadonlyArray<string>, state: "delivered" | "failed") =>
  Effect.flatMap(TestService, ({ sql }) => endQueued(sql, sql`id = ANY (${ids}::uuid[])`, state))

/** Has what fulfils a condition on the deliveries' columns wait again, due at once, as if it had never ended. */
export const queueAgain = (sql: SqlClient.SqlClient, condition: Statement.Fragment) => sql`
  WITH back AS (
    UPDATE payments.deliveries SET state = 'queued', finished_at = NULL WHERE ${condition} RETURNING *
  ) ${enqueue(sql, "back")}`
