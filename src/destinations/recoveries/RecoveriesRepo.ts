import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { enqueue } from "../../engine/queue/Enqueue.ts"
import type { EndpointId, RecoveryId } from "../../platform/kit/Ids.ts"
import { mostCounted } from "../../platform/kit/Request.ts"
import { ofTenant, type Tenant } from "../../platform/kit/Tenant.ts"
import { removeOld } from "../../platform/storage/Batches.ts"
import { firstRow } from "../../platform/storage/Database.ts"
import { useDays } from "../../platform/storage/partitions/DayPartitions.ts"
import { makeResendSql } from "../deliveries/DeliveriesRepo.ts"
import { countSoon } from "../statistics/CountStatements.ts"
import type { ListRecoveries, Recovery } from "./Api.ts"

/** Few, so that a step is short and the queue alternates between endpoints. */
const stepSize = 100

const noId = "00000000-0000-0000-0000-000000000000"

export interface Step {
  readonly queued: number
  readonly finished: boolean
}

const makeParts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const resendSql = yield* makeResendSql
  const columns = sql.literal(`
    r.id, r.endpoint_id AS "endpointId", r.since, r.state, r.total, r.queued, r.skipped, r.created_at AS "createdAt",
    r.finished_at AS "finishedAt"`)
  const ofEndpoint = (tenant: Tenant, endpointId: EndpointId) =>
    sql`${ofTenant(sql, tenant, "r")} AND r.endpoint_id = ${endpointId}`
  /** The failures that recovery `r` covers. Excludes tests: a new one can be sent instead. */
  const failures = sql`
    d.organization_id = r.organization_id AND d.environment = r.environment AND d.endpoint_id = r.endpoint_id
      AND NOT d.test AND d.failed_at IS NOT NULL AND d.failed_at <= r.created_at
      AND (d.failed_at, d.id) > (r.reached_at, r.reached_id)`

  return { sql, resendSql, columns, ofEndpoint, failures }
})

type Parts = Effect.Effect.Success<typeof makeParts>

const rows = ({ columns, failures, ofEndpoint, sql }: Parts) => ({
  findRunning: (tenant: Tenant, endpointId: EndpointId) =>
    firstRow(sql<Recovery>`
          SELECT ${columns} FROM payments.recoveries r WHERE ${ofEndpoint(tenant, endpointId)} AND r.state = 'running'`),

  find: (tenant: Tenant, endpointId: EndpointId, id: RecoveryId) =>
    firstRow(sql<Recovery>`
          SELECT ${columns} FROM payments.recoveries r WHERE ${ofEndpoint(tenant, endpointId)} AND r.id = ${id}`),

  list: (tenant: Tenant, endpointId: EndpointId, { starting_after }: ListRecoveries, limit: number) =>
    sql<Recovery>`
        SELECT ${columns} FROM payments.recoveries r
        WHERE ${ofEndpoint(tenant, endpointId)}
          AND (${starting_after ?? null}::uuid IS NULL OR r.id < ${starting_after ?? null}::uuid)
        ORDER BY r.id DESC LIMIT ${limit}`,

  insert: (tenant: Tenant, endpointId: EndpointId, id: RecoveryId, since: Date) =>
    Effect.zipRight(
      sql`
          INSERT INTO payments.recoveries
            (organization_id, environment, id, endpoint_id, since, total, reached_at, reached_id)
          VALUES (${tenant.organizationId}, ${tenant.environment}, ${id}, ${endpointId}, ${since}, 0, ${since}, ${noId})`,
      sql`
          UPDATE payments.recoveries r SET total = (
            SELECT count(*) FROM (
              SELECT 1 FROM payments.deliveries d WHERE ${failures} ORDER BY d.failed_at, d.id LIMIT ${mostCounted}
            ) AS counted
          )
          WHERE ${ofEndpoint(tenant, endpointId)} AND r.id = ${id}`
    ),

  removeOlderThan: (retentionMillis: number) =>
    removeOld(sql, {
      table: "recoveries",
      key: ["organization_id", "environment", "id"],
      old: sql`r.state = 'finished' AND r.finished_at < now() - ${retentionMillis} * interval '1 millisecond'`,
      by: "finished_at"
    })
})

const steps = ({ failures, resendSql, sql }: Parts) => ({
  /**
   * Takes one step of a running recovery: the given one, or without an id the one that has waited longest. None if
   * there is none, or other processes have locked them all. One statement, so a step is atomic, and the next one
   * continues after it.
   *
   * A delivery that fails again does so after the recovery's start, and is not handled twice. Also locks the
   * endpoint's row, against a concurrent deletion.
   */
  step: (id: RecoveryId | null) =>
    firstRow(sql<Step>`
        WITH recovery AS MATERIALIZED (
          SELECT r.*, p.deleted_at IS NOT NULL AS deleted FROM payments.recoveries r JOIN payments.endpoints p
            ON p.organization_id = r.organization_id AND p.environment = r.environment AND p.id = r.endpoint_id
          WHERE r.state = 'running' AND (${id}::uuid IS NULL OR r.id = ${id}::uuid)
          ORDER BY r.stepped_at LIMIT 1 FOR UPDATE OF r SKIP LOCKED FOR SHARE OF p
        ), failed AS MATERIALIZED (
          SELECT d.* FROM recovery r CROSS JOIN LATERAL (
            SELECT d.organization_id, d.environment, d.id, d.failed_at, r.deleted FROM payments.deliveries d
            WHERE ${failures} ORDER BY d.failed_at, d.id LIMIT ${stepSize} FOR UPDATE
          ) d
        ), requeued AS (
          UPDATE payments.deliveries d SET ${resendSql.requeue}
          FROM failed f
          WHERE d.organization_id = f.organization_id AND d.environment = f.environment AND d.id = f.id
            AND NOT f.deleted AND ${resendSql.mayBeResent}
          RETURNING d.*
        ), queued AS (${enqueue(sql, "requeued", "manual")}), used AS (${useDays(sql, "requeued")}),
        looked AS (${countSoon(sql, "requeued")}), counted AS (
          SELECT (SELECT count(*) FROM failed)::int AS seen, (SELECT count(*) FROM requeued)::int AS queued
        ), advanced AS (
          SELECT r.organization_id, r.environment, r.id, r.queued + c.queued AS queued,
            r.skipped + c.seen - c.queued AS skipped, c.seen < ${stepSize} AS finished, r.total
          FROM recovery r CROSS JOIN counted c
        )
        UPDATE payments.recoveries r SET
          queued = a.queued, stepped_at = clock_timestamp(),
          -- Those that others have re-sent meanwhile were not met: they are skipped too
          skipped = CASE WHEN a.finished THEN GREATEST(a.skipped, a.total - a.queued) ELSE a.skipped END,
          -- More than were counted at the start
          total = GREATEST(a.total, a.queued + a.skipped),
          state = CASE WHEN a.finished THEN 'finished' ELSE 'running' END,
          finished_at = CASE WHEN a.finished THEN clock_timestamp() END,
          reached_at = COALESCE((SELECT failed_at FROM failed ORDER BY failed_at DESC, id DESC LIMIT 1), r.reached_at),
          reached_id = COALESCE((SELECT id FROM failed ORDER BY failed_at DESC, id DESC LIMIT 1), r.reached_id)
        FROM advanced a
        WHERE r.organization_id = a.organization_id AND r.environment = a.environment AND r.id = a.id
        RETURNING (SELECT queued FROM counted) AS queued, a.finished`)
})

export const makeRecoveriesRepo = Effect.gen(function* () {
  const parts = yield* makeParts
  return { ...rows(parts), ...steps(parts) }
})
