/* 0 */ WITH looked AS NOT MATERIALIZED (
    SELECT ctid AS tid, endpoint_id, next_attempt_at, leased_until FROM payments.delivery_queue
    WHERE next_attempt_at >= ANY (ARRAY[$1::timestamptz]) AND next_attempt_at <= now()
  ), next AS MATERIALIZED (
    SELECT tid, endpoint_id, next_attempt_at FROM looked WHERE CASE WHEN leased_until IS NULL OR leased_until <= now()
THEN endpoint_id NOT IN (SELECT unnest($2::uuid[])) END ORDER BY next_attempt_at LIMIT $3
  ), asked AS MATERIALIZED (
    SELECT a.tid, w.endpoint_id, a.next_attempt_at
    FROM unnest($4::uuid[],
      $5::timestamptz[],
      $6::int[]) AS w (endpoint_id, since, room)
    CROSS JOIN LATERAL (
      SELECT ctid AS tid, next_attempt_at FROM payments.delivery_queue
      WHERE (endpoint_id, next_attempt_at) >= (w.endpoint_id, w.since)
        AND (endpoint_id, next_attempt_at) <= (w.endpoint_id, now())
        AND (leased_until IS NULL OR leased_until <= now())
      ORDER BY endpoint_id, next_attempt_at LIMIT w.room
    ) AS a
  ), due AS (
    SELECT * FROM next UNION ALL SELECT * FROM asked
  ), chosen AS MATERIALIZED (
    SELECT tid FROM (
      SELECT due.tid, due.next_attempt_at, COALESCE(busy.cap, $7) AS cap, COALESCE(busy.attempts, 0)
        + row_number() OVER (PARTITION BY due.endpoint_id ORDER BY due.next_attempt_at) AS turn
      FROM due LEFT JOIN unnest($8::uuid[], $9::int[],
        $10::int[])
        AS busy (endpoint_id, attempts, cap) ON busy.endpoint_id = due.endpoint_id
    ) AS ranked
    WHERE turn <= cap
    ORDER BY turn, next_attempt_at ASC
    LIMIT $11
  ), locked AS MATERIALIZED (
    -- Rows are named by their place, and through an array: with a join here, a stale plan exceeds the limit
    SELECT ctid AS tid, organization_id, environment, id, endpoint_id, lease, attempt_count, next_trigger, claimed_at,
      abandoned
    FROM payments.delivery_queue
    WHERE ctid = ANY (ARRAY(SELECT tid FROM chosen))
      -- Again, of the row as it is once it is locked; in a form that no index serves: without statistics yet,
      -- one would be read from end to end for it
      AND CASE WHEN leased_until IS NULL OR leased_until <= now() THEN next_attempt_at <= now() END
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
    DELETE FROM payments.delivery_queue WHERE ctid = ANY (ARRAY(SELECT tid FROM locked WHERE (lease IS NOT NULL AND (abandoned >= 5 OR attempt_count >= 12 AND (lease IS NOT NULL AND lease <> ALL (ARRAY(SELECT lease FROM unconfirmed)))))))
  ), interrupted AS MATERIALIZED (
    SELECT payments.record_interrupted(organization_id, environment, id, attempt_count, next_trigger, claimed_at,
      (lease IS NOT NULL AND (abandoned >= 5 OR attempt_count >= 12 AND (lease IS NOT NULL AND lease <> ALL (ARRAY(SELECT lease FROM unconfirmed))))))
    FROM locked WHERE (lease IS NOT NULL AND lease <> ALL (ARRAY(SELECT lease FROM unconfirmed))) OR (lease IS NOT NULL AND (abandoned >= 5 OR attempt_count >= 12 AND (lease IS NOT NULL AND lease <> ALL (ARRAY(SELECT lease FROM unconfirmed)))))
  ), claimed AS (
    -- In one update with those that rest: another one would read the whole table while its plan is stale
    UPDATE payments.delivery_queue SET
      lease = CASE WHEN GREATEST(CASE WHEN lease IS NOT NULL THEN ('{0,30000,300000,1800000,10800000,43200000}'::float8[])[abandoned + 1] END, CASE WHEN endpoint_id = ANY (ARRAY(SELECT id FROM deleted)) THEN 120000 END) > 0 THEN NULL ELSE $12::uuid END, claimed_at = now(),
      attempt_count = attempt_count + CASE WHEN GREATEST(CASE WHEN lease IS NOT NULL THEN ('{0,30000,300000,1800000,10800000,43200000}'::float8[])[abandoned + 1] END, CASE WHEN endpoint_id = ANY (ARRAY(SELECT id FROM deleted)) THEN 120000 END) > 0 THEN 0 ELSE 1 END
        - CASE WHEN lease IS NULL OR (lease IS NOT NULL AND lease <> ALL (ARRAY(SELECT lease FROM unconfirmed))) THEN 0 ELSE 1 END,
      abandoned = abandoned + CASE WHEN lease IS NULL THEN 0 ELSE 1 END,
      interrupted = interrupted + (lease IS NOT NULL AND lease <> ALL (ARRAY(SELECT lease FROM unconfirmed)))::int,
      leased_until = CASE WHEN GREATEST(CASE WHEN lease IS NOT NULL THEN ('{0,30000,300000,1800000,10800000,43200000}'::float8[])[abandoned + 1] END, CASE WHEN endpoint_id = ANY (ARRAY(SELECT id FROM deleted)) THEN 120000 END) > 0 THEN NULL
        ELSE now() + $13 * interval '1 millisecond' END,
      next_attempt_at = CASE WHEN GREATEST(CASE WHEN lease IS NOT NULL THEN ('{0,30000,300000,1800000,10800000,43200000}'::float8[])[abandoned + 1] END, CASE WHEN endpoint_id = ANY (ARRAY(SELECT id FROM deleted)) THEN 120000 END) > 0
        THEN now() + GREATEST(CASE WHEN lease IS NOT NULL THEN ('{0,30000,300000,1800000,10800000,43200000}'::float8[])[abandoned + 1] END * (0.8 + random() * 0.3999999999999999), CASE WHEN endpoint_id = ANY (ARRAY(SELECT id FROM deleted)) THEN 120000 END) * interval '1 millisecond'
        ELSE next_attempt_at END
    WHERE ctid = ANY (ARRAY(SELECT tid FROM locked WHERE NOT (lease IS NOT NULL AND (abandoned >= 5 OR attempt_count >= 12 AND (lease IS NOT NULL AND lease <> ALL (ARRAY(SELECT lease FROM unconfirmed)))))))
    RETURNING ctid AS tid, organization_id, environment, id, attempt_count, interrupted, next_trigger, endpoint_id,
      event_id, secret_ids, created_at, traceparent, lease
  ), unconfirmed_itself AS (
    INSERT INTO payments.unconfirmed_claims
    SELECT $14::uuid WHERE EXISTS (SELECT FROM claimed WHERE lease IS NOT NULL)
  )
  -- About the claim, in one row; then the deliveries, without it
  SELECT json_build_object(
      'claimedAt', date_part('epoch', now()) * 1000,
      'pages', COALESCE(
        pg_relation_size(to_regclass('payments.deliveries_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD'))), 0
      ) / 8192,
      'queuePages', pg_relation_size('payments.delivery_queue') / 8192,
      -- Are read, so that they happen. The commit need not wait for the disk: see makeClaim
      'interrupted', (SELECT count(*) FROM interrupted),
      'synchronousCommit', set_config('synchronous_commit', 'off', true),
      'more', (SELECT count(*) FROM next) >= $15,
      -- A row that is stored late has the time when its transaction began: look back a little
      'place', LEAST((SELECT min(next_attempt_at) FROM next), now() - interval '2 seconds')::text,
      'askedFor', (SELECT json_agg(json_build_array(endpoint_id, first)) FROM (
        SELECT endpoint_id, min(next_attempt_at)::text AS first FROM asked GROUP BY endpoint_id
      ) AS a),
      'nextDueInMillis', date_part('epoch', (
        SELECT next_attempt_at FROM payments.delivery_queue
        WHERE next_attempt_at > now() ORDER BY next_attempt_at LIMIT 1
      ) - now()) * 1000
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
  ) e WHERE d.lease IS NOT NULL
