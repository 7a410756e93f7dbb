import { Effect } from "effect"
import { firstIdAt, type OrganizationId } from "../../src/kit/Ids.ts"
import type { Cell } from "./TwoCells.ts"

const dayMillis = 86_400_000

/** The beginning of a day in the past, in Unix milliseconds. */
export const dayBefore = (days: number) => (Math.floor(Date.now() / dayMillis) - days) * dayMillis

/** An id as that of the `index`th row of a time. */
const idAt = (millis: string, index: string) =>
  `(substr(h, 1, 8) || '-' || substr(h, 9) || '-7000-8000-' || lpad(to_hex(${index}), 12, '0')) FROM lpad(to_hex(${millis}), 12, '0') AS h`

/** Stores an organization's events of past days, each with its delivery and receipt, evenly over the days' hours. */
export const storePastDays = (
  cell: Cell,
  organizationId: OrganizationId,
  { days, perDay, payload = "{}" }: { readonly days: number; readonly perDay: number; readonly payload?: string }
) =>
  Effect.forEach(
    Array.from({ length: days }, (_, index) => dayBefore(index + 1)),
    (day) =>
      Effect.gen(function* () {
        yield* cell.query("SELECT payments.add_day($1::date)", [new Date(day).toISOString().slice(0, 10)])
        const rows = `
          SELECT at, n, (SELECT ${idAt("at", "n")}) AS id, to_timestamp(at / 1000.0) AS stored
          FROM generate_series(1, $3::int) AS n CROSS JOIN LATERAL (SELECT $2::bigint + (n - 1) * ${dayMillis}::bigint / $3::int AS at) AS a`
        yield* cell.query(
          `INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload, created_at)
          SELECT $1::uuid, 'sandbox', id, 'svc_evt_' || md5(id || $1::uuid::text), 'payment.succeeded', $4, stored FROM (${rows}) r`,
          [organizationId, day, perDay, payload]
        )
        yield* cell.query(
          `INSERT INTO payments.deliveries (organization_id, environment, id, endpoint_id, event_id, secret_ids, state,
            attempts, created_at, finished_at)
          SELECT $1::uuid, 'sandbox', id::uuid, $4::uuid, id, ARRAY[$4::uuid], 'delivered', '{}', stored, stored FROM (${rows}) r`,
          [organizationId, day, perDay, firstIdAt(day)]
        )
        // Before this month, a new installation has no tables by month
        for (const [table, column, isThere] of [
          ["receipts", "", "<"],
          ["receipts_by_month", ", month", ">="]
        ]) {
          yield* cell.query(
            `INSERT INTO payments.${table} (environment, provider_event_id, organization_id, type, livemode, outcome,
              provider_created_at, received_at${column})
            SELECT 'sandbox', 'evt_' || md5(id || $1::uuid::text), $1::uuid, 'payment_intent.succeeded', false, 'delivered', stored, stored
              ${column === "" ? "" : ", payments.month_of(stored)"}
            FROM (${rows}) r WHERE stored ${isThere} payments.receipt_months_from()`,
            [organizationId, day, perDay]
          )
        }
      }),
    { discard: true }
  )
