import type { SqlError } from "@effect/sql"
import { Effect } from "effect"
import type { CellDatabase } from "./CellDatabase.ts"

/**
 * The deliveries of an organization that moves wait under a lease of the mover, which does not end, so that no worker
 * takes them, and claims for others don't meet them. The lease is the organization's own id; what a dead worker has held
 * last has another one, since its attempt is to be recorded as interrupted by whoever claims it next.
 */

/** How many rows one statement leases. */
const batch = 5000

/** The lease of what a dead worker held last, in SQL. */
const abandoned = `md5('abandoned ' || organization_id::text)::uuid`

const lease = (cell: CellDatabase, organizationId: string, which: "free" | "abandoned") =>
  cell.query(
    `UPDATE payments.delivery_queue q SET
      lease = ${which === "free" ? "q.organization_id" : abandoned.replace("organization_id", "q.organization_id")},
      leased_until = 'infinity', claimed_at = COALESCE(q.claimed_at, now())
    FROM (
      SELECT organization_id, environment, id FROM payments.delivery_queue
      WHERE organization_id = $1 AND ${which === "free" ? "lease IS NULL" : "leased_until <= now()"}
      LIMIT ${batch} FOR UPDATE SKIP LOCKED
    ) f
    WHERE q.organization_id = f.organization_id AND q.environment = f.environment AND q.id = f.id
    RETURNING 1`,
    [organizationId]
  )

/**
 * Leases what waits, again and again, until nothing is under way any longer: new deliveries come leased by then, and
 * attempts that end leave none behind.
 *
 * @param onWaiting called with how many attempts are under way
 */
export const parkDeliveries = (
  cell: CellDatabase,
  organizationId: string,
  onWaiting: (underWay: number) => Effect.Effect<void>
): Effect.Effect<void, SqlError.SqlError> =>
  Effect.gen(function* () {
    for (;;) {
      const leased = [
        ...(yield* lease(cell, organizationId, "free")),
        ...(yield* lease(cell, organizationId, "abandoned"))
      ]
      if (leased.length > 0) continue
      const [row] = yield* cell.query<{ underWay: number }>(
        `SELECT count(*)::int AS "underWay" FROM payments.delivery_queue
        WHERE organization_id = $1 AND leased_until IS DISTINCT FROM 'infinity'`,
        [organizationId]
      )
      const underWay = row?.underWay ?? 0
      if (underWay === 0) return
      yield* onWaiting(underWay)
      yield* Effect.sleep("100 millis")
    }
  })

/** Gives all of it back to the workers. */
export const releaseDeliveries = (cell: CellDatabase, organizationId: string): Effect.Effect<void, SqlError.SqlError> =>
  Effect.gen(function* () {
    for (;;) {
      const released = yield* cell.query(
        `UPDATE payments.delivery_queue q SET
          lease = CASE WHEN q.lease = q.organization_id THEN NULL ELSE q.lease END,
          leased_until = CASE WHEN q.lease = q.organization_id THEN NULL ELSE now() END
        FROM (
          SELECT organization_id, environment, id FROM payments.delivery_queue
          WHERE organization_id = $1 AND leased_until = 'infinity' LIMIT ${batch}
        ) f
        WHERE q.organization_id = f.organization_id AND q.environment = f.environment AND q.id = f.id
        RETURNING 1`,
        [organizationId]
      )
      if (released.length < batch) return
    }
  })
