import { SqlClient } from "@effect/sql"
import { Duration, Effect } from "effect"
import { removeOld } from "../storage/Batches.ts"
import type { Encrypted } from "./Cipher.ts"
import { ofTenant, type Tenant } from "./Tenant.ts"

const keepFor = "24 hours"

/** How long a request may run before it is considered dead and another with the same key may take over. */
const leaseFor = Duration.seconds(60)

export interface Keyed {
  readonly tenant: Tenant
  readonly key: string
  /** What the request does, e.g. `products.create`: the same key with another operation is refused. */
  readonly operation: string
}

interface Stored {
  readonly operation: string
  readonly requestHash: Buffer
  readonly status: number | null
  readonly masterKeyId: string | null
  readonly answer: Buffer | null
}

/** The statements on idempotency keys. A try holds its key by a lease until an answer is stored. */
export const makeIdempotencyRepo = Effect.map(SqlClient.SqlClient, (sql) => {
  const ofKey = ({ key, tenant }: Keyed) => sql`${ofTenant(sql, tenant)} AND key = ${key}`
  const outlived = sql`k.created_at < now() - ${keepFor}::interval`

  return {
    /**
     * Claims the key if it is new, expired, free, or left by a try of the same request that died or whose outcome is
     * open. Returns how many tries under it were refused; no row if the key is taken.
     */
    claim: ({ key, operation, tenant }: Keyed, requestHash: Buffer, lease: string) => sql<{
      readonly refusals: number
    }>`
      INSERT INTO payments.idempotency_keys AS k
        (organization_id, environment, key, operation, request_hash, lease, locked_until)
      VALUES (${tenant.organizationId}, ${tenant.environment}, ${key}, ${operation}, ${requestHash}, ${lease},
        now() + ${Duration.toMillis(leaseFor)} * interval '1 millisecond')
      ON CONFLICT (organization_id, environment, key) DO UPDATE SET
        operation = excluded.operation, request_hash = excluded.request_hash, lease = excluded.lease,
        locked_until = excluded.locked_until, status = NULL, answer = NULL, master_key_id = NULL,
        created_at = now(), free = false, uncertain = NOT (${outlived} OR k.free),
        refusals = CASE WHEN ${outlived} THEN 0 ELSE k.refusals END
      WHERE ${outlived}
        OR (k.locked_until < now()
          AND (k.free OR (k.operation = excluded.operation AND k.request_hash = excluded.request_hash)))
      RETURNING refusals`,

    find: (keyed: Keyed) => sql<Stored>`
      SELECT operation, request_hash AS "requestHash", status, master_key_id AS "masterKeyId", answer
      FROM payments.idempotency_keys WHERE ${ofKey(keyed)}`,

    /** Stores the answer under the lease; returns no row if another request has taken the key in the meantime. */
    store: (keyed: Keyed, lease: string, status: number, { ciphertext, masterKeyId }: Encrypted) => sql`
      UPDATE payments.idempotency_keys SET
        locked_until = NULL, status = ${status}, answer = ${ciphertext}, master_key_id = ${masterKeyId}
      WHERE ${ofKey(keyed)} AND lease = ${lease} AND answer IS NULL
      RETURNING 1`,

    /** Deletes the key without storing an answer. */
    delete: (keyed: Keyed, lease: string) => sql`
      DELETE FROM payments.idempotency_keys WHERE ${ofKey(keyed)} AND lease = ${lease} AND answer IS NULL`,

    /**
     * Releases the key: after a refusal, to any request; after an open outcome, or a refusal that followed one, only to
     * the same request, whose effects then keep their key.
     */
    release: (keyed: Keyed, lease: string, isRefusal: boolean) => {
      const refused = sql`(${isRefusal} AND NOT uncertain)`
      return sql`
        UPDATE payments.idempotency_keys SET
          locked_until = '-infinity', free = ${refused}, refusals = refusals + ${refused}::int
        WHERE ${ofKey(keyed)} AND lease = ${lease} AND answer IS NULL AND locked_until <> '-infinity'`
    },

    kept: (tenant: Tenant, keys: ReadonlyArray<string>) => sql<{ readonly key: string }>`
      SELECT key FROM payments.idempotency_keys
      WHERE ${ofTenant(sql, tenant)} AND key = ANY (${keys}::text[]) AND created_at >= now() - ${keepFor}::interval`,

    clean: removeOld(sql, {
      table: "idempotency_keys",
      key: ["organization_id", "environment", "key"],
      old: sql`r.created_at < now() - ${keepFor}::interval`,
      by: "created_at"
    })
  }
})
