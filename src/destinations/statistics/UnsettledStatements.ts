import type { SqlClient } from "@effect/sql"
import { resentWithin, slotMillis } from "./Slots.ts"

/**
 * Deliveries whose counts may still change after their slot was settled: an endpoint's deliveries of one slot, or a
 * part of them, as long as some of them wait or may be re-sent, or a replay adds to them. They are recounted
 * periodically, and the difference is added to their day.
 *
 * The interval between recounts is half their age, which bounds how far a count is behind. A re-send shortens it.
 */

/** How many groups one statement recounts. */
const looksAtOnce = 10

/** The most deliveries in one group: a larger one is split when it is recounted. */
const mostDeliveries = 100_000

const isTheSame = `u.organization_id = j.organization_id AND u.environment = j.environment
  AND u.endpoint_id = j.endpoint_id AND u.after_id = j.after_id`

/**
 * Part of a statement that re-sends deliveries: schedules a recount of them in a minute. Skips locked rows.
 *
 * @param deliveries names the part of the statement that returns the deliveries' rows
 */
export const countSoon = (sql: SqlClient.SqlClient, deliveries: string) =>
  sql.literal(`
    UPDATE payments.unsettled_deliveries u SET look_at = now() + interval '1 minute'
    FROM (
      SELECT u.organization_id, u.environment, u.endpoint_id, u.after_id
      FROM ${deliveries} d JOIN payments.unsettled_deliveries u
        ON u.organization_id = d.organization_id AND u.environment = d.environment AND u.endpoint_id = d.endpoint_id
          AND u.after_id < d.id AND u.until_id >= d.id
      WHERE u.look_at > now() + interval '1 minute' FOR UPDATE OF u SKIP LOCKED
    ) j WHERE ${isTheSame}`)

/**
 * The statement that recounts the groups that are due, the longest overdue first. Returns how many it processed. Groups
 * whose day was removed are deleted; their last count stays.
 */
export const lookAgain = (sql: SqlClient.SqlClient, most = mostDeliveries) => sql<{ readonly looked: number }>`
  WITH due AS MATERIALIZED (
    SELECT u.* FROM payments.unsettled_deliveries u JOIN payments.workspaces w
      ON w.organization_id = u.organization_id AND w.environment = u.environment
    WHERE u.look_at <= now() ORDER BY u.look_at LIMIT ${looksAtOnce}
  ), judged AS MATERIALIZED (
    SELECT u.organization_id, u.environment, u.endpoint_id, u.after_id, u.until_id, u.slot,
      (u.slot AT TIME ZONE 'UTC')::date AS day, now() - u.slot AS age, c.cut,
      CASE WHEN k.kept THEN c.delivered ELSE u.delivered END AS delivered,
      CASE WHEN k.kept THEN c.failed ELSE u.failed END AS failed,
      CASE WHEN k.kept THEN c.queued ELSE u.queued END AS queued,
      u.delivered AS delivered_before, u.failed AS failed_before, u.queued AS queued_before, k.kept, r.grows,
      NOT k.kept OR (NOT r.grows AND c.queued = 0 AND (c.failed = 0 OR (NOT r.grew
        AND now() - u.slot > ${resentWithin} * interval '1 millisecond'))) AS settled
    FROM due u
    CROSS JOIN LATERAL (
      SELECT EXISTS (SELECT 1 FROM payments.days y WHERE y.day = (u.slot AT TIME ZONE 'UTC')::date) AS kept
    ) k
    CROSS JOIN LATERAL (
      SELECT count(*) FILTER (WHERE NOT x.test AND x.state = 'delivered') AS delivered,
        count(*) FILTER (WHERE NOT x.test AND x.state = 'failed') AS failed,
        count(*) FILTER (WHERE NOT x.test AND x.state = 'queued') AS queued,
        CASE WHEN count(*) >= ${most}::bigint THEN max(x.id::text COLLATE "C")::uuid END AS cut
      FROM (
        SELECT d.id, d.state, d.test FROM payments.deliveries d
        WHERE d.organization_id = u.organization_id AND d.environment = u.environment
          AND d.endpoint_id = u.endpoint_id AND d.id > u.after_id AND d.id <= u.until_id
        ORDER BY d.id LIMIT ${most}::bigint
      ) x
    ) c
    CROSS JOIN LATERAL (
      SELECT COALESCE(bool_or(e.finished_at IS NULL OR e.finished_at > now() - interval '1 minute'), false) AS grows,
        COALESCE(bool_or(e.finished_at > now() - ${resentWithin} * interval '1 millisecond'), false) AS grew
      FROM payments.event_replays e
      WHERE e.organization_id = u.organization_id AND e.environment = u.environment AND e.endpoint_id = u.endpoint_id
        AND e.id > payments.id_at(u.slot)
        AND e.id < payments.id_at(u.slot + ${slotMillis} * interval '1 millisecond')
    ) r
  ), counted AS (
    INSERT INTO payments.delivery_counts AS k
      (organization_id, environment, day, pass, slot, endpoint_id, delivered, failed, queued)
    SELECT organization_id, environment, day, 0, day::timestamp AT TIME ZONE 'UTC', endpoint_id,
      sum(delivered - delivered_before), sum(failed - failed_before), sum(queued - queued_before)
    FROM judged WHERE kept GROUP BY organization_id, environment, day, endpoint_id
    ON CONFLICT (organization_id, environment, day, pass, slot, endpoint_id)
    DO UPDATE SET delivered = k.delivered + EXCLUDED.delivered, failed = k.failed + EXCLUDED.failed,
      queued = k.queued + EXCLUDED.queued
  ), ended AS (
    DELETE FROM payments.unsettled_deliveries u USING judged j WHERE ${sql.literal(isTheSame)} AND j.settled
  ), waiting AS (
    UPDATE payments.unsettled_deliveries u SET
      delivered = j.delivered, failed = j.failed, queued = j.queued, until_id = COALESCE(j.cut, j.until_id),
      look_at = now() + CASE WHEN j.grows THEN interval '1 minute'
        ELSE GREATEST(interval '1 minute', LEAST(j.age / 2, interval '12 hours')) END
    FROM judged j WHERE ${sql.literal(isTheSame)} AND NOT j.settled
  ), divided AS (
    INSERT INTO payments.unsettled_deliveries (organization_id, environment, endpoint_id, after_id, until_id, slot,
      delivered, failed, queued, look_at)
    SELECT organization_id, environment, endpoint_id, cut, until_id, slot, 0, 0, 0, now()
    FROM judged WHERE kept AND cut < until_id
  )
  SELECT count(*)::int AS looked FROM judged`
