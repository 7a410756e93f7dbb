import { SqlClient, type SqlError } from "@effect/sql"
import { Duration, Effect } from "effect"
import type { OrganizationId } from "../../platform/kit/Ids.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"

/** An event that a transaction published by SQL. */
export interface OutboxEvent extends Tenant {
  /** The row's key, a bigint as text. */
  readonly place: string
  readonly organizationId: OrganizationId
  readonly id: string
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
  readonly createdAt: Date
}

/** Not by tenant: a round takes the waiting events of all tenants. */
export const makeOutboxRepo = Effect.map(SqlClient.SqlClient, (sql) => ({
  /** Locks the oldest waiting events that no other process has locked. */
  take: (limit: number): Effect.Effect<ReadonlyArray<OutboxEvent>, SqlError.SqlError> => sql<OutboxEvent>`
    SELECT place, organization_id AS "organizationId", environment, id, type, data, created_at AS "createdAt"
    FROM payments.outbox WHERE refusal IS NULL ORDER BY place LIMIT ${limit} FOR UPDATE SKIP LOCKED`,

  remove: (places: ReadonlyArray<string>) => sql`DELETE FROM payments.outbox WHERE place = ANY (${places}::bigint[])`,

  refuse: (place: string, reason: string) => sql`UPDATE payments.outbox SET refusal = ${reason} WHERE place = ${place}`,

  /** Removes refused events after their retention, a thousand at a time. */
  removeRefused: (keepFor: Duration.Duration) => sql`
    DELETE FROM payments.outbox WHERE place = ANY (ARRAY(
      SELECT place FROM payments.outbox
      WHERE refusal IS NOT NULL AND created_at < now() - ${`${Duration.toMillis(keepFor)} milliseconds`}::interval LIMIT 1000
    ))`
}))
