WITH source AS MATERIALIZED (SELECT s.* FROM (
      SELECT s.*, s.provider_event_id AS source_event_id
      FROM (
        SELECT * FROM unnest($1::text[], $2::text[], $3::uuid[],
          $4::text[], $5::text[], $6::boolean[], $7::text[],
          $8::text[], $9::timestamptz[], $10::timestamptz[],
          $11::text[], $12::bigint[]) WITH ORDINALITY
          AS s (environment, provider_event_id, organization_id, account_id, type, livemode, outcome, reason,
            provider_created_at, received_at, traceparent, tenant_version, position)
        LIMIT cardinality($2::text[])
      ) s
      WHERE s.tenant_version IS NULL OR s.tenant_version = COALESCE((
  SELECT v.version FROM payments.tenant_versions v
  WHERE v.organization_id = s.organization_id AND v.environment = s.environment), 0)) s WHERE (SELECT 1 FROM payments.receipts_undated r
        WHERE r.environment = s.environment AND r.provider_event_id = s.provider_event_id) IS NULL),
matching AS (
  SELECT d.*, s.organization_id, s.environment, s.traceparent, s.source_event_id,
    p.active AND cardinality(d."secretIds") > 0 AS active
  FROM json_to_recordset($19::json)
    AS d (position bigint, id uuid, "endpointId" uuid, "eventId" text, key text, "secretIds" uuid[], type text,
      leased boolean)
  JOIN source s ON s.position = d.position
  JOIN payments.endpoints p ON p.organization_id = s.organization_id AND p.environment = s.environment
    AND p.id = d."endpointId" AND p.deleted_at IS NULL
  WHERE d.type <> 'milestone.first_payment'
), receipt AS (
    INSERT INTO payments.receipts_202611 AS r (environment, provider_event_id, organization_id, account_id, type, livemode,
      outcome, reason, provider_created_at, received_at, month)
    SELECT s.environment, s.provider_event_id, s.organization_id, s.account_id, s.type, s.livemode,
      CASE WHEN s.outcome NOT IN ('delivered', 'no_subscriber') THEN s.outcome
        WHEN s.position IN (SELECT m.position FROM matching m WHERE m.active) THEN 'delivered'
        ELSE 'no_subscriber' END,
      s.reason, s.provider_created_at, s.received_at, '2026-11-01'::date
    FROM source s
    -- Always in one order: two statements that have receipts in common never wait for each other
    ORDER BY s.environment, s.provider_event_id
    ON CONFLICT (environment, provider_event_id, month) DO UPDATE SET duplicates = r.duplicates + 1
    RETURNING r.environment, r.provider_event_id, r.duplicates = 0 AS first, r.outcome), fresh AS (
    SELECT s.* FROM source s WHERE CASE WHEN (s.environment, s.provider_event_id) IN (SELECT r.environment, r.provider_event_id FROM receipt r WHERE r.first) THEN true ELSE false END
  ),
event AS (
  INSERT INTO payments.events
    (organization_id, environment, id, public_id, type, payload, filter_subjects, provider_event_id)
  SELECT s.organization_id, s.environment, e.key, e.id, e.type, e.payload,
    e.subjects, s.provider_event_id
  FROM unnest($13::text[], $14::text[], $15::text[], $16::text[],
    $17::text[], $18::bigint[]) AS e (id, key, type, payload, subjects, position)
  JOIN fresh s ON s.position = e.position
  WHERE e.type <> 'milestone.first_payment'
  ON CONFLICT (organization_id, environment, id) DO NOTHING
  RETURNING id
), delivery AS (
  INSERT INTO payments.deliveries
    (organization_id, environment, id, endpoint_id, event_id, secret_ids, test, traceparent, attempts)
  SELECT m.organization_id, m.environment, m.id, m."endpointId", m.key, m."secretIds",
    false, m.traceparent, '{}'
  FROM matching m WHERE m.active AND CASE WHEN m.position IN (SELECT s.position FROM fresh s) THEN true ELSE false END
  ON CONFLICT (organization_id, environment, id) DO NOTHING
  RETURNING *
), queued AS (
  INSERT INTO payments.delivery_queue (organization_id, environment, id, endpoint_id, event_id, secret_ids,
    attempt_count, traceparent, created_at, lease, claimed_at, leased_until)
  SELECT d.organization_id, d.environment, d.id, d.endpoint_id, d.event_id, d.secret_ids,
    CASE WHEN d.leased THEN 1 ELSE 0 END, d.traceparent, d.created_at,
    CASE WHEN d.leased THEN $20::uuid END, CASE WHEN d.leased THEN now() END,
    CASE WHEN d.leased THEN now() + $21::float8 * interval '1 millisecond' END
  -- Not a join, see isAmong; asks once for each
  FROM (
    SELECT d.*, d.id IN (SELECT l.id FROM matching l WHERE l.leased) AS leased
    FROM delivery d OFFSET 0
  ) d
  RETURNING id, lease IS NOT NULL AS leased, ctid AS tid
), skipped AS (
  INSERT INTO payments.skipped_events
    (organization_id, environment, endpoint_id, event_id, event_key, type, provider_event_id)
  SELECT m.organization_id, m.environment, m."endpointId", m."eventId", m.key, m.type, m.source_event_id
  FROM matching m WHERE NOT m.active AND CASE WHEN m.position IN (SELECT s.position FROM fresh s) THEN true ELSE false END AND true
  ON CONFLICT (organization_id, environment, endpoint_id, event_id) DO NOTHING
  RETURNING 1
)
  SELECT (
      SELECT json_agg(json_build_array(r.environment, r.provider_event_id, r.first, r.outcome)) FROM receipt r
    ) AS receipts,
    json_agg(json_build_array(q.id, q.tid)) FILTER (WHERE q.leased) AS handed, COALESCE(bool_or(NOT q.leased), false) AS waits,
    date_part('epoch', now()) * 1000 AS "storedAt"
  FROM queued q
