import { SqlClient, type Statement } from "@effect/sql"
import { Effect } from "effect"
import type { Environment } from "../../platform/kit/Environment.ts"
import type { OrganizationId } from "../../platform/kit/Ids.ts"
import { type Author, ofTenant, type Tenant } from "../../platform/kit/Tenant.ts"
import { anyRow } from "../../platform/storage/Database.ts"
import { makePreparing, parametersOf } from "../../platform/storage/Statements.ts"
import type { ApiKey as ApiKeyShown } from "./Api.ts"
import {
  type CredentialLimitsRow,
  type CredentialPolicies,
  credentialLimitColumns,
  takeCredentialTokens
} from "./CredentialLimitsStatements.ts"

/** An API key as it is stored and shown: never the key itself (contract 2.1). */
export type KeyRecord = typeof ApiKeyShown.Type & { readonly organizationId: OrganizationId }

export interface KeyRow extends Pick<KeyRecord, "id" | "organizationId" | "environment" | "prefix" | "permissions"> {
  /** Milliseconds until it expires; null if it does not. */
  readonly expiresIn: number | null
}

type Prepare = Effect.Effect.Success<typeof makePreparing>

const presentedKeys = (sql: SqlClient.SqlClient, prepare: Prepare) => {
  const isUsable = sql.literal("revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())")

  const usable = (hash: Buffer | Statement.Fragment) => sql<KeyRow>`
    SELECT id, organization_id AS "organizationId", environment, key_prefix AS prefix, permissions,
      (extract(epoch FROM expires_at - now()) * 1000)::float8 AS "expiresIn"
    FROM payments.api_keys
    WHERE key_hash = ${hash} AND ${isUsable}`

  return {
    usable,

    /** `admit` also takes tokens, `look` writes nothing. Prepared once, since only parameters differ. */
    prepared: (policies: CredentialPolicies) => {
      const parameters = parametersOf(sql, ["hash", "own", "returned", "organization", "organizationReturned"])
      return {
        admit: prepare<KeyRow & CredentialLimitsRow>(sql`
          WITH caller AS MATERIALIZED (${usable(parameters.hash)}),
            ${takeCredentialTokens(sql, "key", policies, parameters)}
          SELECT caller.*, ${credentialLimitColumns(sql)}
          FROM caller LEFT JOIN own ON true LEFT JOIN shared ON true`),
        look: prepare<KeyRow & Partial<CredentialLimitsRow>>(usable(parameters.hash))
      }
    },

    existing: (hashes: ReadonlyArray<Buffer>) => sql<{ readonly hash: Buffer }>`
      SELECT key_hash AS hash FROM payments.api_keys WHERE key_hash = ANY(${hashes}::bytea[]) AND ${isUsable}`,

    touch: (ids: ReadonlyArray<string>) => sql`
      UPDATE payments.api_keys SET last_used_at = date_trunc('minute', now())
      WHERE id = ANY (${ids}::uuid[]) AND (last_used_at IS NULL OR last_used_at < date_trunc('minute', now()))`
  }
}

const records = (sql: SqlClient.SqlClient) => {
  const columns = sql.literal(`
    id, organization_id AS "organizationId", environment, name, key_prefix AS prefix, last_four AS "lastFour",
    permissions, created_at AS "createdAt", expires_at AS "expiresAt", last_used_at AS "lastUsedAt",
    CASE WHEN created_by_id IS NOT NULL THEN json_build_object('kind', created_by_kind, 'id', created_by_id) END
      AS "createdBy"`)

  return {
    hasAtLeast: (organizationId: OrganizationId, count: number) =>
      anyRow(sql`
          SELECT 1 FROM payments.api_keys WHERE organization_id = ${organizationId} AND revoked_at IS NULL
          OFFSET ${count - 1} LIMIT 1`),

    insert: (
      key: Omit<KeyRecord, "createdAt" | "lastUsedAt" | "createdBy"> & {
        readonly hash: Buffer
        readonly author: Author
      }
    ) => sql<KeyRecord>`
      INSERT INTO payments.api_keys
        (id, organization_id, environment, name, key_hash, key_prefix, last_four, permissions, expires_at,
          created_by_kind, created_by_id)
      VALUES (${key.id}, ${key.organizationId}, ${key.environment}, ${key.name}, ${key.hash}, ${key.prefix},
        ${key.lastFour}, ${key.permissions}::text[], ${key.expiresAt}, ${key.author.kind}, ${key.author.id})
      RETURNING ${columns}`,

    list: (tenant: Tenant) => sql<KeyRecord>`
      SELECT ${columns} FROM payments.api_keys WHERE ${ofTenant(sql, tenant)} AND revoked_at IS NULL ORDER BY id DESC`,

    createdBy: (organizationId: OrganizationId, personId: string) => sql<
      Pick<KeyRecord, "id" | "environment" | "permissions">
    >`
      SELECT id, environment, permissions FROM payments.api_keys
      WHERE organization_id = ${organizationId} AND created_by_kind = 'person' AND created_by_id = ${personId}
        AND revoked_at IS NULL`
  }
}

const revocations = (sql: SqlClient.SqlClient) => {
  const revoke = (organizationId: OrganizationId, which: Statement.Fragment) => sql<{
    readonly id: string
    readonly environment: Environment
    readonly hash: Buffer
  }>`
    UPDATE payments.api_keys SET revoked_at = now()
    WHERE organization_id = ${organizationId} AND ${which} AND revoked_at IS NULL
    RETURNING id, environment, key_hash AS hash`

  return {
    revoke: ({ environment, organizationId }: Tenant, id: string) =>
      revoke(organizationId, sql`environment = ${environment} AND id = ${id}`),

    revokeThese: (organizationId: OrganizationId, ids: ReadonlyArray<string>) =>
      revoke(organizationId, sql`id = ANY (${ids}::uuid[])`),

    revokeAll: (organizationId: OrganizationId) => revoke(organizationId, sql`true`)
  }
}

export const makeKeysRepo = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return { ...presentedKeys(sql, yield* makePreparing), ...records(sql), ...revocations(sql) }
})
