import type { SqlClient, SqlError, Statement } from "@effect/sql"
import { Duration, Effect } from "effect"
import { v7 } from "uuid"
import type { EndpointId } from "../../platform/kit/Ids.ts"
import type { RunStatement } from "../../platform/storage/Statements.ts"
import {
  arrayOf,
  type ClaimNew,
  type ClaimOfLanes,
  type ClaimRow,
  type LanesClaim,
  type NewClaim,
  type Plans,
  readClaim,
  type Sweep
} from "./Claim.ts"
import { automaticDelays, jitter, maxAbandoned, maxAttempts } from "./RetryPolicy.ts"

/** How many newly due rows a claim looks at, the newest first. */
const window = 1024

/**
 * How long, in milliseconds, a delivery waits after its claim was abandoned, for the first time, the second and so on,
 * and, if its endpoint was deleted, until the housekeeping ends it. Null if it does not wait.
 */
const abandonedFor = `CASE WHEN lease IS NOT NULL THEN ('{${automaticDelays.map(Duration.toMillis).join(",")}}'::float8[])[abandoned + 1] END`
const deletedFor = "CASE WHEN endpoint_id = ANY (ARRAY(SELECT id FROM deleted)) THEN 120000 END"
const jittered = `(${jitter.min} + random() * ${jitter.max - jitter.min})`
const rests = `GREATEST(${abandonedFor}, ${deletedFor}) > 0`

/** Whether a delivery's claim was abandoned after its confirmation, so that its attempt counts. */
const cutOff = "(lease IS NOT NULL AND lease <> ALL (ARRAY(SELECT lease FROM unconfirmed)))"
const usedUp = `(lease IS NOT NULL AND (abandoned >= ${maxAbandoned - 1} OR attempt_count >= ${maxAttempts} AND ${cutOff}))`

/** Whether nobody holds a row's delivery. */
const free = "(leased_until IS NULL OR leased_until <= now())"

/**
 * The claims: each a statement that leases due deliveries and returns everything their attempts need, then one that
 * confirms that this arrived. Attempts begin after that, so a claim that was abandoned unconfirmed has sent nothing, and
 * takes no attempt. One abandoned later takes an attempt, `interrupted`.
 *
 * Deliveries of dead workers are claimed again, delayed as long as before the automatic attempt of the same number, or
 * given up after `maxAbandoned` abandoned claims, confirmed or not, the last of which is listed as `interrupted`.
 * Abandoned claims use up none of the automatic attempts, and don't end a manual one. Deliveries of deleted endpoints
 * are not claimed.
 *
 * Conditions are written so that the planner has no choice but to follow the index in its order and stop at the limit:
 * it knows little about a table that is empty one minute and full the next. It expects a range written as `>=` and `<=`
 * to hold few rows, and would read them all and then sort; `>= ANY` of one value means the same and avoids that. With a
 * range of whole rows and the matching order, only the index of that order is used.
 */
export const makeClaims = (sql: SqlClient.SqlClient, run: RunStatement, plans: Plans) => {
  /** `chosen` are parts of the statement, the last of which names the rows to claim; `summary` what it says besides. */
  const claim = <Claim extends NewClaim | LanesClaim>(
    lease: Duration.Duration,
    chosen: Statement.Fragment,
    summary: Statement.Fragment
  ) =>
    Effect.suspend(() => {
      const id = v7()
      const claimed = Effect.map(
        run(
          sql<ClaimRow<Claim>>`
      ${plans.mark} WITH ${chosen}, locked AS MATERIALIZED (
        -- Rows are named by their place, and through an array: with a join here, a stale plan exceeds the limit
        SELECT ctid AS tid, organization_id, environment, id, endpoint_id, lease, attempt_count, next_trigger, claimed_at,
          abandoned
        FROM payments.delivery_queue
        WHERE ctid = ANY (ARRAY(SELECT tid FROM chosen))
          -- Again, of the row as it is once it is locked; in a form that no index serves: without statistics yet,
          -- one would be read from end to end for it
          AND CASE WHEN ${sql.literal(free)} THEN next_attempt_at <= now() END
        FOR UPDATE SKIP LOCKED
      ), deleted AS MATERIALIZED (
        SELECT e.id FROM (SELECT DISTINCT organization_id, environment, endpoint_id FROM locked) l
        CROSS JOIN LATERAL (
          SELECT e.id FROM payments.endpoints e WHERE e.organization_id = l.organization_id
            AND e.environment = l.environment AND e.id = l.endpoint_id AND e.deleted_at IS NOT NULL OFFSET 0
        ) e
      ), unconfirmed AS MATERIALIZED (
        SELECT lease FROM payments.unconfirmed_claims WHERE lease = ANY (ARRAY(SELECT lease FROM locked))
      ), given_up AS (
        DELETE FROM payments.delivery_queue WHERE ctid = ANY (ARRAY(SELECT tid FROM locked WHERE ${sql.literal(usedUp)}))
      ), interrupted AS MATERIALIZED (
        SELECT payments.record_interrupted(organization_id, environment, id, attempt_count, next_trigger, claimed_at,
          ${sql.literal(usedUp)})
        FROM locked WHERE ${sql.literal(`${cutOff} OR ${usedUp}`)}
      ), claimed AS (
        -- In one update with those that rest: another one would read the whole table while its plan is stale
        UPDATE payments.delivery_queue SET
          lease = CASE WHEN ${sql.literal(rests)} THEN NULL ELSE ${id}::uuid END, claimed_at = now(),
          attempt_count = attempt_count + CASE WHEN ${sql.literal(rests)} THEN 0 ELSE 1 END
            - CASE WHEN lease IS NULL OR ${sql.literal(cutOff)} THEN 0 ELSE 1 END,
          abandoned = abandoned + CASE WHEN lease IS NULL THEN 0 ELSE 1 END,
          interrupted = interrupted + ${sql.literal(cutOff)}::int,
          leased_until = CASE WHEN ${sql.literal(rests)} THEN NULL
            ELSE now() + ${Duration.toMillis(lease)} * interval '1 millisecond' END,
          next_attempt_at = CASE WHEN ${sql.literal(rests)}
            THEN now() + ${sql.literal(`GREATEST(${abandonedFor} * ${jittered}, ${deletedFor})`)} * interval '1 millisecond'
            ELSE next_attempt_at END
        WHERE ctid = ANY (ARRAY(SELECT tid FROM locked WHERE NOT ${sql.literal(usedUp)}))
        RETURNING ctid AS tid, organization_id, environment, id, attempt_count, interrupted, next_trigger, endpoint_id,
          event_id, secret_ids, created_at, traceparent, lease
      ), unconfirmed_itself AS (
        INSERT INTO payments.unconfirmed_claims
        SELECT ${id}::uuid WHERE EXISTS (SELECT FROM claimed WHERE lease IS NOT NULL)
      )
      -- About the claim, in one row; then the deliveries, without it
      SELECT json_build_object(
          'claimedAt', date_part('epoch', now()) * 1000,
          'pages', COALESCE(
            pg_relation_size(to_regclass('payments.deliveries_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD'))), 0
          ) / 8192,
          'queuePages', pg_relation_size('payments.delivery_queue') / 8192,
          -- Is read, so that it happens
          'interrupted', (SELECT count(*) FROM interrupted),
          ${summary}
        ) AS claim, NULL::uuid AS "organizationId", NULL::text AS environment, NULL::uuid AS id, NULL::smallint AS attempt,
        NULL::smallint AS interrupted, NULL::text AS trigger, NULL::uuid AS "endpointId", NULL::text AS "eventId", NULL::text AS traceparent,
        NULL::text AS payload, NULL::text AS "secretIds", NULL::float8 AS "createdAt", NULL::tid AS ctid
      UNION ALL
      SELECT NULL, d.organization_id, d.environment, d.id, d.attempt_count, d.interrupted, d.next_trigger, d.endpoint_id, e.public_id,
        d.traceparent, e.payload, array_to_string(d.secret_ids, ','), date_part('epoch', d.created_at) * 1000, d.tid
      -- Not a join, for which a plan may read every day's table
      FROM claimed d CROSS JOIN LATERAL (
        SELECT e.public_id, e.payload FROM payments.events e
        WHERE e.organization_id = d.organization_id AND e.environment = d.environment AND e.id = d.event_id LIMIT 1
      ) e WHERE d.lease IS NOT NULL`
        ),
        (rows) => readClaim(rows, id)
      ).pipe(Effect.tap((found) => plans.note(found)))
      // Without a wait for the disk: if the database crashes just then, an interrupted attempt is not listed
      const confirm = run(sql`
        DELETE FROM payments.unconfirmed_claims
        WHERE lease = ${id} AND set_config('synchronous_commit', 'off', true) = 'off'`)
      return Effect.tap(claimed, ({ deliveries }) => (deliveries.length === 0 ? Effect.void : confirm))
    })

  const claimNew = ({
    lease,
    leftOut,
    limit,
    perEndpoint,
    since
  }: ClaimNew): Effect.Effect<NewClaim, SqlError.SqlError> =>
    claim<NewClaim>(
      lease,
      sql`
      seen AS MATERIALIZED (
        SELECT ctid AS tid, endpoint_id, next_attempt_at, ${sql.literal(free)} AS free FROM payments.delivery_queue
        WHERE next_attempt_at >= ANY (ARRAY[${since}::timestamptz]) AND next_attempt_at <= now()
        ORDER BY next_attempt_at DESC LIMIT ${window}
      ), chosen AS MATERIALIZED (
        SELECT tid FROM (
          SELECT tid, next_attempt_at, row_number() OVER (PARTITION BY endpoint_id ORDER BY next_attempt_at) AS turn
          FROM seen
          -- Not \`= ANY\`, which compares one by one: there may be thousands
          WHERE free AND endpoint_id NOT IN (SELECT unnest(${arrayOf(leftOut, (id) => id)}::uuid[]))
        ) AS ranked
        WHERE turn <= ${perEndpoint} ORDER BY turn, next_attempt_at LIMIT ${limit}
      )`,
      sql`
          'isFull', (SELECT count(*) FROM seen) >= ${window},
          -- A row that is stored late is due since its transaction began: look back a little
          'next', (now() - interval '500 milliseconds')::text,
          'waiting', (SELECT COALESCE(json_agg(DISTINCT endpoint_id), '[]') FROM seen
            WHERE free AND tid NOT IN (SELECT tid FROM chosen)),
          'nextDueInMillis', date_part('epoch', (
            SELECT next_attempt_at FROM payments.delivery_queue
            WHERE next_attempt_at > now() ORDER BY next_attempt_at LIMIT 1
          ) - now()) * 1000`
    )

  const claimOfLanes = ({ lanes, lease }: ClaimOfLanes): Effect.Effect<LanesClaim, SqlError.SqlError> =>
    claim<LanesClaim>(
      lease,
      sql`
      chosen AS MATERIALIZED (
        SELECT d.tid, w.endpoint_id, d.next_attempt_at
        FROM unnest(${arrayOf(lanes, ({ endpointId }) => endpointId)}::uuid[],
          ${arrayOf(lanes, ({ from }) => `"${from}"`)}::timestamptz[],
          ${arrayOf(lanes, ({ room }) => room)}::int[]) AS w (endpoint_id, since, room)
        CROSS JOIN LATERAL (
          SELECT ctid AS tid, next_attempt_at FROM payments.delivery_queue
          WHERE (endpoint_id, next_attempt_at) >= (w.endpoint_id, w.since)
            AND (endpoint_id, next_attempt_at) <= (w.endpoint_id, now()) AND ${sql.literal(free)}
          ORDER BY endpoint_id, next_attempt_at LIMIT w.room
        ) AS d
      )`,
      sql`
          'found', (SELECT COALESCE(json_agg(f), '[]') FROM (
            SELECT endpoint_id AS "endpointId", min(next_attempt_at)::text AS first, count(*) AS count
            FROM chosen GROUP BY endpoint_id
          ) AS f)`
    )

  const sweep = (after: string, limit: number): Effect.Effect<Sweep, SqlError.SqlError> =>
    Effect.map(
      run(sql<{ readonly endpointId: EndpointId; readonly isDue: boolean }>`
      ${plans.mark} WITH RECURSIVE visited AS (
        (SELECT endpoint_id, 1 AS number FROM payments.delivery_queue WHERE endpoint_id > ${after}::uuid
         ORDER BY endpoint_id, next_attempt_at LIMIT 1)
        UNION ALL
        SELECT n.endpoint_id, visited.number + 1 FROM visited CROSS JOIN LATERAL (
          SELECT endpoint_id FROM payments.delivery_queue WHERE endpoint_id > visited.endpoint_id
          ORDER BY endpoint_id, next_attempt_at LIMIT 1
        ) n WHERE visited.number < ${limit}
      )
      SELECT endpoint_id AS "endpointId", EXISTS (
        SELECT FROM payments.delivery_queue q
        WHERE (q.endpoint_id, q.next_attempt_at) >= (visited.endpoint_id, '-infinity')
          AND (q.endpoint_id, q.next_attempt_at) <= (visited.endpoint_id, now()) AND ${sql.literal(free)}
        ORDER BY q.endpoint_id, q.next_attempt_at LIMIT 1 OFFSET 0
      ) AS "isDue" FROM visited ORDER BY number`),
      (rows) => ({
        last: rows.length < limit ? null : (rows.at(-1)?.endpointId ?? null),
        due: rows.filter(({ isDue }) => isDue).map(({ endpointId }) => endpointId)
      })
    )

  return { claimNew, claimOfLanes, sweep }
}
