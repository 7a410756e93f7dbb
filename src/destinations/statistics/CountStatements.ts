import type { SqlClient, Statement } from "@effect/sql"
import { boundaryAt } from "../../platform/kit/Ids.ts"
import { chargeOf, hasPayment, isRefundOfCharge, paymentOf } from "../../platform/storage/partitions/EventIndexes.ts"
import { resentWithin, slotMillis, type TimeRange } from "./Slots.ts"

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

/** The end of an INSERT into `delivery_counts AS k`: adds to a count that exists. */
const addToCount = `ON CONFLICT (organization_id, environment, day, pass, slot, endpoint_id)
    DO UPDATE SET delivered = k.delivered + EXCLUDED.delivered, failed = k.failed + EXCLUDED.failed,
      queued = k.queued + EXCLUDED.queued`

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
    ${sql.literal(addToCount)}
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

/**
 * The statements that count a range of time for all tenants, and those that settle a slot. They need `alongIndex`:
 * rows are then read in id order along the primary key, from the first of the range to the last, and not along
 * another index that also begins with the tenant but covers the whole day.
 */

/** Which count: 1 is the first, soon; 2 is the final one. */
export type Pass = 1 | 2

/** SQL: the payload has one form, so it is searched, which takes half as long as parsing JSON. */
const numberIn = (data: string, field: string): string =>
  `split_part(split_part(split_part(${data}, '"${field}":', 2), ',', 1), '}', 1)`

const textIn = (data: string, field: string): string => `split_part(split_part(${data}, '"${field}":"', 2), '"', 1)`

/**
 * SQL: whether a text is a whole number, and whether it is a currency. A team's own catalog may have such types with
 * other fields, which are not payments. Not regular expressions, which would take longer than all the rest.
 */
const isNumber = (text: string): string =>
  `(rtrim(${text}, '0123456789') IN ('', '-') AND ${text} <> '-' AND length(${text}) BETWEEN 1 AND 18)`
const isCurrency = (text: string): string =>
  `(length(${text}) = 3 AND rtrim(${text}, 'abcdefghijklmnopqrstuvwxyz') = '')`

/** The most events of one payment or charge that are read. Only a refund loop produces more. */
const mostOfPayment = 1000

/** SQL: the key of a refunded charge, from its id and that of its payment, if any, whatever their form. */
const chargeKey = (row: string): string => `md5(concat_ws(' ', ${row}.charge, ${row}.payment))::uuid`

/**
 * SQL: the amount of a charge's refunds that failed between two events. The provider subtracts it from the total refunded, so
 * the same amount may be refunded once more.
 *
 * @param of the name of the row with the tenant
 */
const failedRefunds = (of: string, charge: string, from: string, until: string): string => `COALESCE((
  SELECT sum(f.amount) FROM payments.failed_refunds f
  WHERE f.organization_id = ${of}.organization_id AND f.environment = ${of}.environment AND f.charge_id = ${charge}
    AND payments.id_at(f.recorded_at)::text > ${from} AND payments.id_at(f.recorded_at)::text < ${until}
), 0)`

/**
 * SQL: the amount refunded of a charge before the first of its refunds `r`: a refund event has the total refunded so
 * far. It is taken from the events before, and, since these may have been removed, from the amount kept when they were
 * finally counted. A payment has few events, and a charge without a payment even fewer: indexes find them, and the
 * fences keep the planner from reading all of a tenant's events instead. If a payment has more events than are read,
 * its further refunds count as 0.
 */
const refundedBefore = `GREATEST(0, (
  SELECT t.refunded - ${failedRefunds("r", "r.charge", "t.event_id", "r.first")} FROM payments.refunded_in_part t
  WHERE t.organization_id = r.organization_id AND t.environment = r.environment AND t.charge_key = ${chargeKey("r")}
    AND t.event_id < r.first
), (
  SELECT CASE WHEN count(*) >= ${mostOfPayment} THEN r.refunded ELSE
    max(CASE WHEN ${isNumber(numberIn("p.payload", "amount_refunded"))}
      THEN ${numberIn("p.payload", "amount_refunded")}::numeric - ${failedRefunds("r", "r.charge", "p.id", "r.first")} END)
    FILTER (WHERE p.organization_id = r.organization_id AND p.environment = r.environment AND p.id < r.first
      AND p.type = 'payment.refunded' AND ${chargeOf("p.payload")} = r.charge) END
  FROM (
    (SELECT * FROM payments.events p WHERE ${hasPayment("p", "r.payment")} LIMIT ${mostOfPayment})
    UNION ALL
    (SELECT * FROM payments.events p WHERE r.payment IS NULL AND ${isRefundOfCharge("p", "r.charge")}
      LIMIT ${mostOfPayment})
  ) p
))`

/** SQL: the amount in the data of an event `e` of a payment. */
const amountOfEvent = `CASE e.type WHEN 'payment.succeeded' THEN ${numberIn("e.data", "amount_received")}
          WHEN 'payment.failed' THEN ${numberIn("e.data", "amount")}
          ELSE ${numberIn("e.data", "amount_refunded")} END`

const iso = (millis: number): string => new Date(millis).toISOString()

const dayOf = (slot: number): string => iso(slot).slice(0, 10)

const countingPayments = (sql: SqlClient.SqlClient, workspaces: Statement.Fragment) => ({
  /** Counts payments, without synthetic tests. Returns how many events were counted. */
  payments: (pass: Pass, { from, slot, until }: TimeRange) => sql<{ readonly counted: number }>`
    WITH said AS (
      SELECT w.organization_id, w.environment, e.id, e.type,
        ${sql.literal(amountOfEvent)} AS amount,
        ${sql.literal(textIn("e.data", "currency"))} AS currency,
        CASE e.type WHEN 'payment.refunded' THEN ${sql.literal(paymentOf("e.payload"))} END AS payment,
        CASE e.type WHEN 'payment.refunded' THEN ${sql.literal(chargeOf("e.payload"))} END AS charge,
        e.type = 'payment.refunded' AND strpos(e.data, '"fully_refunded":false') > 0 AS in_part,
        CASE e.type WHEN 'payment.refunded'
          THEN ${sql.literal(failedRefunds("w", chargeOf("e.payload"), "''", "e.id"))} END AS failed
      FROM ${workspaces} w CROSS JOIN LATERAL (
        SELECT e.id, e.type, e.payload, split_part(e.payload, '"data":', 2) AS data FROM payments.events e
        WHERE e.organization_id = w.organization_id AND e.environment = w.environment
          AND e.id >= ${boundaryAt(from)} AND e.id < ${boundaryAt(until)}
          AND e.type IN ('payment.succeeded', 'payment.failed', 'payment.refunded')
          AND e.public_id NOT LIKE 'svc\\_test\\_%'
        ORDER BY e.id OFFSET 0
      ) e OFFSET 0
    ), summed AS (
      -- Refunds by charge: the amount refunded before is then looked up once per charge, not per refund
      SELECT e.organization_id, e.environment, e.type, e.currency, e.payment, e.charge, count(*) AS count,
        sum(e.amount::numeric) AS amount, max(e.amount::numeric) AS refunded, min(e.id) AS first,
        max(e.id) AS last, bool_and(e.in_part) AS in_part
      FROM said e
      WHERE ${sql.literal(isNumber("e.amount"))} AND ${sql.literal(isCurrency("e.currency"))}
      GROUP BY e.organization_id, e.environment, e.type, e.currency, e.payment, e.charge, e.failed,
        CASE WHEN e.type = 'payment.refunded' AND e.payment IS NULL AND e.charge IS NULL THEN e.id END
      OFFSET 0
    ), compared AS MATERIALIZED (
      SELECT r.*, CASE WHEN r.type = 'payment.refunded' THEN ${sql.literal(refundedBefore)} END AS before FROM summed r
    ), counted AS MATERIALIZED (
      SELECT r.organization_id, r.environment, r.currency, split_part(r.type, '.', 2) AS kind, sum(r.count)::bigint AS count,
        sum(CASE WHEN r.type = 'payment.refunded' THEN GREATEST(0, r.refunded - r.before)
          ELSE r.amount END) AS amount
      FROM compared r
      GROUP BY r.organization_id, r.environment, r.currency, r.type
    ), kept AS (
      INSERT INTO payments.refunded_in_part AS k
        (organization_id, environment, charge_key, event_id, refunded)
      -- For a charge with refunds before and after a failure, the ones after it
      SELECT DISTINCT ON (1, 2, 3) r.organization_id, r.environment, ${sql.literal(chargeKey("r"))}, r.last,
        GREATEST(r.before, r.refunded)
      FROM compared r WHERE ${pass}::smallint = 2 AND r.in_part AND r.charge IS NOT NULL
      ORDER BY 1, 2, 3, r.last DESC
      ON CONFLICT (organization_id, environment, charge_key) DO UPDATE SET event_id = EXCLUDED.event_id,
        refunded = EXCLUDED.refunded, counted_at = now()
      WHERE k.event_id < EXCLUDED.event_id
    ), stored AS (
      INSERT INTO payments.payment_counts AS k
        (organization_id, environment, day, pass, slot, currency, kind, count, amount)
      SELECT organization_id, environment, ${dayOf(slot)}::date, ${pass}::smallint, ${iso(slot)}::timestamptz, currency,
        kind, count, amount
      FROM counted
      ON CONFLICT (organization_id, environment, day, pass, slot, currency, kind)
      DO UPDATE SET count = k.count + EXCLUDED.count, amount = k.amount + EXCLUDED.amount
    )
    SELECT COALESCE(sum(count), 0)::float8 AS counted FROM counted`
})

const countingDeliveries = (sql: SqlClient.SqlClient, workspaces: Statement.Fragment) => ({
  deliveries: (pass: Pass, { from, slot, until }: TimeRange) => sql<{ readonly counted: number }>`
    WITH counted AS MATERIALIZED (
      SELECT w.organization_id, w.environment, d.endpoint_id,
        count(*) FILTER (WHERE d.state = 'delivered') AS delivered,
        count(*) FILTER (WHERE d.state = 'failed') AS failed,
        count(*) FILTER (WHERE d.state = 'queued') AS queued
      FROM ${workspaces} w CROSS JOIN LATERAL (
        SELECT d.endpoint_id, d.state FROM payments.deliveries d
        WHERE d.organization_id = w.organization_id AND d.environment = w.environment
          AND d.id >= ${boundaryAt(from)}::uuid AND d.id < ${boundaryAt(until)}::uuid AND NOT d.test
        ORDER BY d.id OFFSET 0
      ) d GROUP BY w.organization_id, w.environment, d.endpoint_id
    ), stored AS (
      INSERT INTO payments.delivery_counts AS k
        (organization_id, environment, day, pass, slot, endpoint_id, delivered, failed, queued)
      SELECT organization_id, environment, ${dayOf(slot)}::date, ${pass}::smallint, ${iso(slot)}::timestamptz,
        endpoint_id, delivered, failed, queued
      FROM counted
      ${sql.literal(addToCount)}
    )
    SELECT COALESCE(sum(delivered + failed + queued), 0)::float8 AS counted FROM counted`
})

const settling = (sql: SqlClient.SqlClient, workspaces: Statement.Fragment) => ({
  settlePayments: (slot: number) => sql`
    WITH closed AS (
      DELETE FROM payments.payment_counts k USING ${workspaces} w
      WHERE k.slot = ${iso(slot)}::timestamptz AND k.pass > 0
        AND k.organization_id = w.organization_id AND k.environment = w.environment
      RETURNING k.*
    )
    INSERT INTO payments.payment_counts AS k
      (organization_id, environment, day, pass, slot, currency, kind, count, amount)
    SELECT organization_id, environment, day, 0, day::timestamp AT TIME ZONE 'UTC', currency, kind, count, amount
    FROM closed WHERE pass = 2
    ON CONFLICT (organization_id, environment, day, pass, slot, currency, kind)
    DO UPDATE SET count = k.count + EXCLUDED.count, amount = k.amount + EXCLUDED.amount`,

  /** The same for deliveries. Those that may still change are recorded: see `lookAgain`. */
  settleDeliveries: (slot: number) => sql`
    WITH closed AS (
      DELETE FROM payments.delivery_counts k USING ${workspaces} w
      WHERE k.slot = ${iso(slot)}::timestamptz AND k.pass > 0
        AND k.organization_id = w.organization_id AND k.environment = w.environment
      RETURNING k.*
    ), replayed AS (
      -- A replay's deliveries have the time of the replay in their ids, however long it takes
      SELECT r.organization_id, r.environment, r.endpoint_id FROM ${workspaces} w CROSS JOIN LATERAL (
        SELECT * FROM payments.event_replays r
        WHERE r.organization_id = w.organization_id AND r.environment = w.environment
          AND r.id >= ${boundaryAt(slot)}::uuid AND r.id < ${boundaryAt(slot + slotMillis)}::uuid
        OFFSET 0
      ) r
    ), settled AS MATERIALIZED (
      SELECT organization_id, environment, endpoint_id, sum(delivered) AS delivered, sum(failed) AS failed,
        sum(queued) AS queued, bool_or(changes) AS changes
      FROM (
        SELECT organization_id, environment, endpoint_id, delivered, failed, queued, failed + queued > 0 AS changes
        FROM closed WHERE pass = 2
        UNION ALL SELECT organization_id, environment, endpoint_id, 0, 0, 0, true FROM replayed
      ) AS both_kinds GROUP BY organization_id, environment, endpoint_id
    ), noted AS (
      INSERT INTO payments.unsettled_deliveries (organization_id, environment, endpoint_id, after_id, until_id, slot,
        delivered, failed, queued, look_at)
      SELECT organization_id, environment, endpoint_id, ${boundaryAt(slot)}::uuid, ${boundaryAt(slot + slotMillis)}::uuid,
        ${iso(slot)}::timestamptz, delivered, failed, queued, now()
      FROM settled WHERE changes
    )
    INSERT INTO payments.delivery_counts AS k
      (organization_id, environment, day, pass, slot, endpoint_id, delivered, failed, queued)
    SELECT organization_id, environment, ${dayOf(slot)}::date, 0, ${dayOf(slot)}::timestamp AT TIME ZONE 'UTC',
      endpoint_id, delivered, failed, queued
    FROM settled
    ${sql.literal(addToCount)}`
})

/** Creates the statements for the tenants of `workspaces`, a table expression; by default for all. */
export const makeCountStatements = (sql: SqlClient.SqlClient, workspaces = sql.literal("payments.workspaces")) => ({
  ...countingPayments(sql, workspaces),
  ...countingDeliveries(sql, workspaces),
  ...settling(sql, workspaces)
})
