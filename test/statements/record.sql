/* mark */ WITH
result AS MATERIALIZED (
  SELECT * FROM unnest(
    $1::tid[],
    $2::uuid[],
    $3::uuid[],
    $4::float8[],
    $5::int[],
    $6::smallint[],
    $7::text[],
    $8::text[],
    $9::bigint[]
  ) AS r (place, id, lease, started_at, duration_ms, http_status, error_code, state, delay_ms)
), ended AS (
      DELETE FROM payments.delivery_queue q USING result r
      WHERE q.ctid = r.place AND CASE WHEN q.id = r.id THEN q.lease = r.lease END AND r.state <> 'queued'
      RETURNING q.organization_id, q.environment, q.endpoint_id, q.id, q.attempt_count AS number,
        q.next_trigger AS trigger, r.lease, r.started_at, r.duration_ms, r.http_status, r.error_code, r.state
    ), waiting AS (
      UPDATE payments.delivery_queue q SET
        lease = NULL, leased_until = NULL, next_attempt_at = now() + r.delay_ms * interval '1 millisecond'
      FROM result r
      WHERE q.ctid = r.place AND CASE WHEN q.id = r.id THEN q.lease = r.lease END AND r.state = 'queued'
      RETURNING q.organization_id, q.environment, q.endpoint_id, q.id, q.attempt_count AS number,
        q.next_trigger AS trigger, r.lease, r.started_at, r.duration_ms, r.http_status, r.error_code, r.state
    ), recorded AS (
      UPDATE payments.deliveries d SET
        attempts[r.number] =
ROW(r.number, r.trigger, to_timestamp(r.started_at / 1000), r.duration_ms, r.http_status, r.error_code)
  ::payments.delivery_attempt, attempt_count = r.number, state = r.state,
        last_http_status = r.http_status, last_error_code = r.error_code,
        finished_at = CASE WHEN r.state <> 'queued' THEN now() END
      FROM (SELECT * FROM ended UNION ALL SELECT * FROM waiting) r
      WHERE d.organization_id = ANY (ARRAY[r.organization_id]) AND d.environment = r.environment AND d.id = r.id AND d.endpoint_id = r.endpoint_id
    )
    -- In most cases none. By the lease as well: a later attempt of the same delivery may be among them
    SELECT id, lease FROM result EXCEPT (SELECT id, lease FROM ended UNION ALL SELECT id, lease FROM waiting)
