WITH caller AS MATERIALIZED (
SELECT id, organization_id AS "organizationId", environment, key_prefix AS prefix, permissions,
  (extract(epoch FROM expires_at - now()) * 1000)::float8 AS "expiresIn"
FROM payments.api_keys
WHERE key_hash = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())),
own AS (
INSERT INTO payments.rate_limits AS b (bucket, tokens, allowed, granted, refilled_at)
SELECT source.bucket, 10000000::float8 - 0::float8 - $2::float8, true, $2::float8, clock_timestamp()
FROM (SELECT 'key:' || id AS bucket FROM caller WHERE $2::float8 > 0) AS source
ON CONFLICT (bucket) DO UPDATE SET
  tokens = (LEAST(10000000::float8, b.tokens + $3::float8 + 166666.66666666666::float8
* GREATEST(0, extract(epoch FROM clock_timestamp() - b.refilled_at))) - 0::float8) - CASE WHEN (LEAST(10000000::float8, b.tokens + $3::float8 + 166666.66666666666::float8
* GREATEST(0, extract(epoch FROM clock_timestamp() - b.refilled_at))) - 0::float8) >= 1::float8 THEN LEAST($2::float8, floor((LEAST(10000000::float8, b.tokens + $3::float8 + 166666.66666666666::float8
* GREATEST(0, extract(epoch FROM clock_timestamp() - b.refilled_at))) - 0::float8))) ELSE 0 END,
  allowed = (LEAST(10000000::float8, b.tokens + $3::float8 + 166666.66666666666::float8
* GREATEST(0, extract(epoch FROM clock_timestamp() - b.refilled_at))) - 0::float8) >= 1::float8,
  granted = CASE WHEN (LEAST(10000000::float8, b.tokens + $3::float8 + 166666.66666666666::float8
* GREATEST(0, extract(epoch FROM clock_timestamp() - b.refilled_at))) - 0::float8) >= 1::float8 THEN LEAST($2::float8, floor((LEAST(10000000::float8, b.tokens + $3::float8 + 166666.66666666666::float8
* GREATEST(0, extract(epoch FROM clock_timestamp() - b.refilled_at))) - 0::float8))) ELSE 0 END,
  refilled_at = clock_timestamp()
RETURNING b.tokens, b.granted),
shared AS (
INSERT INTO payments.rate_limits AS b (bucket, tokens, allowed, granted, refilled_at)
SELECT source.bucket, 100000000::float8 - 0::float8 - $4::float8, true, $4::float8, clock_timestamp()
FROM (
SELECT 'organization:' || caller."organizationId" AS bucket FROM caller
WHERE ($2::float8 = 0 OR EXISTS (SELECT 1 FROM own WHERE granted >= 1))
  AND $4::float8 > 0 AND caller."organizationId" IS NOT NULL) AS source
ON CONFLICT (bucket) DO UPDATE SET
  tokens = (LEAST(100000000::float8, b.tokens + $5::float8 + 1666666.6666666667::float8
* GREATEST(0, extract(epoch FROM clock_timestamp() - b.refilled_at))) - 0::float8) - CASE WHEN (LEAST(100000000::float8, b.tokens + $5::float8 + 1666666.6666666667::float8
* GREATEST(0, extract(epoch FROM clock_timestamp() - b.refilled_at))) - 0::float8) >= 1::float8 THEN LEAST($4::float8, floor((LEAST(100000000::float8, b.tokens + $5::float8 + 1666666.6666666667::float8
* GREATEST(0, extract(epoch FROM clock_timestamp() - b.refilled_at))) - 0::float8))) ELSE 0 END,
  allowed = (LEAST(100000000::float8, b.tokens + $5::float8 + 1666666.6666666667::float8
* GREATEST(0, extract(epoch FROM clock_timestamp() - b.refilled_at))) - 0::float8) >= 1::float8,
  granted = CASE WHEN (LEAST(100000000::float8, b.tokens + $5::float8 + 1666666.6666666667::float8
* GREATEST(0, extract(epoch FROM clock_timestamp() - b.refilled_at))) - 0::float8) >= 1::float8 THEN LEAST($4::float8, floor((LEAST(100000000::float8, b.tokens + $5::float8 + 1666666.6666666667::float8
* GREATEST(0, extract(epoch FROM clock_timestamp() - b.refilled_at))) - 0::float8))) ELSE 0 END,
  refilled_at = clock_timestamp()
RETURNING b.tokens, b.granted)
      SELECT caller.*, own.tokens AS "ownTokens", own.granted AS "ownGranted",
shared.tokens AS "sharedTokens", shared.granted AS "sharedGranted"
      FROM caller LEFT JOIN own ON true LEFT JOIN shared ON true
