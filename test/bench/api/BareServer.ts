import { createHash } from "node:crypto"
import { pool, serve } from "../BareHttp.ts"

/**
 * The least that serves `GET M/deliveries/{id}`: `node:http`, `pg`, prepared statements; the same look-up of the key and
 * the same read as the service. No validation, no headers, no spans, nobody's errors. With `WITH_RATE_LIMIT` it takes
 * the token too, as the service does, in the look-up's statement.
 */

const usable = `
  SELECT id, organization_id, environment, permissions FROM payments.api_keys
  WHERE key_hash = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())`

const available = `LEAST(1e9, b.tokens + 1e7 * GREATEST(0, extract(epoch FROM clock_timestamp() - b.refilled_at)))`

const admitting = `
  WITH caller AS MATERIALIZED (${usable}),
    token AS (
      INSERT INTO payments.rate_limits AS b (bucket, tokens, allowed, refilled_at)
      SELECT 'bare:' || id, 1e9, true, clock_timestamp() FROM caller
      ON CONFLICT (bucket) DO UPDATE SET
        tokens = ${available} - CASE WHEN ${available} >= 1 THEN 1 ELSE 0 END,
        allowed = ${available} >= 1, refilled_at = clock_timestamp()
      RETURNING b.tokens, b.allowed)
  SELECT caller.*, token.tokens, token.allowed FROM caller, token`

const lookUp =
  process.env["WITH_RATE_LIMIT"] === "1" ? { name: "admit", text: admitting } : { name: "key", text: usable }

const read = {
  name: "delivery",
  text: `
    SELECT d.id, d.endpoint_id AS "endpointId", d.event_id AS "eventId", e.type, d.state, d.test,
      COALESCE(q.attempt_count, d.attempt_count) AS "attemptCount",
      COALESCE(q.leased_until, q.next_attempt_at) AS "nextAttemptAt", d.created_at AS "createdAt",
      d.finished_at AS "finishedAt", d.last_http_status AS "lastHttpStatus", d.last_error_code AS "lastErrorCode",
      e.payload::jsonb #>> '{data,payment_id}' AS "paymentId", e.payload::jsonb #> '{data,amount_received}' AS amount,
      e.payload::jsonb #>> '{data,currency}' AS currency,
      e.payload, COALESCE((
        SELECT json_agg(json_build_object('number', a.number, 'trigger', a.trigger, 'startedAt', a.started_at,
          'durationMs', a.duration_ms, 'httpStatus', a.http_status, 'errorCode', a.error_code) ORDER BY a.number)
        FROM unnest(d.attempts) a WHERE a.number IS NOT NULL
      ), '[]') AS attempts
    FROM payments.deliveries d JOIN payments.events e
      ON e.organization_id = d.organization_id AND e.environment = d.environment AND e.id = d.event_id
    LEFT JOIN payments.delivery_queue q
      ON q.organization_id = d.organization_id AND q.environment = d.environment AND q.id = d.id
    WHERE d.organization_id = $1 AND d.environment = $2 AND d.id = $3`
}

const path = /^\/v2\/organizations\/([^/]+)\/integrations\/deliveries\/([^/]+)$/

const answer = async (url: string, key: string): Promise<readonly [number, unknown]> => {
  const [, organizationId, id] = path.exec(url) ?? []
  const callers = await pool.query({ ...lookUp, values: [createHash("sha256").update(key).digest()] })
  const caller: unknown = callers.rows[0]
  if (typeof caller !== "object" || caller === null || !("organization_id" in caller) || !("environment" in caller)) {
    return [401, {}]
  }
  if (caller.organization_id !== organizationId) return [403, {}]
  const found = await pool.query({ ...read, values: [organizationId, caller.environment, id] })
  if (found.rows.length === 0) return [404, {}]
  const { payload, ...delivery } = found.rows[0]
  return [200, { ...delivery, event: JSON.parse(payload) }]
}

serve(async ({ headers, url = "" }) => {
  const [status, body] = await answer(url, String(headers["x-api-key"]))
  return [status, JSON.stringify(body)]
})
