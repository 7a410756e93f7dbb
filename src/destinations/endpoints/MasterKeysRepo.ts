import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import type { Tenant } from "../../platform/kit/Tenant.ts"

/** The kinds of data that are encrypted at rest. A new table with ciphertexts belongs here. */
export type EncryptedKind = "signing secrets" | "stored answers" | "installation keys"

export interface EncryptedTable {
  readonly kind: EncryptedKind
  readonly table: string
  /** Whether its primary key begins with organization and environment. */
  readonly ofTenants: boolean
  /** The last column of the primary key. */
  readonly id: string
  readonly idType: "uuid" | "text"
  /** A value that sorts before every id. */
  readonly beforeAll: string
  readonly ciphertext: string
}

/** The placeholder for rows without an organization; sorts before every id. */
const noUuid = "00000000-0000-0000-0000-000000000000"

/** The tables with ciphertexts; each has a column `master_key_id`. */
export const encryptedTables: ReadonlyArray<EncryptedTable> = [
  {
    kind: "signing secrets",
    table: "payments.endpoint_secrets",
    ofTenants: true,
    id: "id",
    idType: "uuid",
    beforeAll: noUuid,
    ciphertext: "ciphertext"
  },
  {
    kind: "stored answers",
    table: "payments.idempotency_keys",
    ofTenants: true,
    id: "key",
    idType: "text",
    beforeAll: "",
    ciphertext: "answer"
  },
  {
    kind: "installation keys",
    table: "payments.installation_keys",
    ofTenants: false,
    id: "name",
    idType: "text",
    beforeAll: "",
    ciphertext: "ciphertext"
  }
]

/** A row with a ciphertext. Without a tenant, it has placeholders. */
export interface EncryptedRow extends Tenant {
  readonly id: string
  readonly masterKeyId: string
  readonly ciphertext: Buffer
}

type Place = Pick<EncryptedRow, "organizationId" | "environment" | "id">

const statementsOf = (sql: SqlClient.SqlClient, of: EncryptedTable) => {
  const table = sql.literal(of.table)
  const id = sql.literal(of.id)
  const idType = sql.literal(of.idType)
  const ciphertext = sql.literal(of.ciphertext)
  const organization = sql.literal(of.ofTenants ? "t.organization_id" : `'${noUuid}'::uuid`)
  const environment = sql.literal(of.ofTenants ? "t.environment" : "''")
  return {
    countByKey: sql<{ masterKeyId: string; count: number }>`
      SELECT master_key_id AS "masterKeyId", count(*)::int AS count FROM ${table}
      WHERE ${ciphertext} IS NOT NULL GROUP BY master_key_id`,

    page: (keyIds: ReadonlyArray<string>, after: Place | undefined, limit: number) =>
      sql<EncryptedRow>`
        SELECT ${organization} AS "organizationId", ${environment} AS environment, ${id}::text AS id, master_key_id AS "masterKeyId",
          ${ciphertext} AS ciphertext
        FROM ${table} t
        WHERE master_key_id = ANY(${keyIds}::text[])
          AND (${organization}, ${environment}, ${id}) > (${after?.organizationId ?? noUuid}::uuid, ${after?.environment ?? ""},
            ${after?.id ?? of.beforeAll}::${idType})
        ORDER BY 1, 2, t.${id} LIMIT ${limit}`,

    /** Returns how many rows were replaced: those unchanged since they were read. */
    replace: (
      masterKeyId: string,
      changes: ReadonlyArray<{ readonly row: EncryptedRow; readonly fresh: Uint8Array }>
    ) =>
      Effect.map(
        sql`
          UPDATE ${table} t SET master_key_id = ${masterKeyId}, ${ciphertext} = decode(n.fresh, 'base64')
          FROM unnest(
            ${changes.map(({ row }) => row.organizationId)}::uuid[], ${changes.map(({ row }) => row.environment)}::text[],
            ${changes.map(({ row }) => row.id)}::${idType}[],
            ${changes.map(({ row }) => row.ciphertext.toString("base64"))}::text[],
            ${changes.map(({ fresh }) => Buffer.from(fresh).toString("base64"))}::text[]
          ) AS n (organization_id, environment, id, stale, fresh)
          WHERE ${organization} = n.organization_id AND ${environment} = n.environment AND t.${id} = n.id
            AND t.${ciphertext} = decode(n.stale, 'base64')
          RETURNING 1`,
        (rows) => rows.length
      )
  }
}

export const makeMasterKeysRepo = Effect.map(SqlClient.SqlClient, (sql) => ({
  tables: encryptedTables.map((of) => ({ ...of, ...statementsOf(sql, of) })),

  /** A row of each kind, preferably one under an unknown key. */
  samples: (knownKeyIds: ReadonlyArray<string>) => sql<EncryptedRow & { readonly kind: EncryptedKind }>`
      (SELECT 'signing secrets' AS kind, organization_id AS "organizationId", environment, id::text AS id,
          master_key_id AS "masterKeyId", ciphertext
        FROM payments.endpoint_secrets ORDER BY master_key_id = ANY(${knownKeyIds}::text[]), created_at DESC LIMIT 1)
      UNION ALL
      (SELECT 'stored answers', organization_id, environment, key, master_key_id, answer
        FROM payments.idempotency_keys WHERE answer IS NOT NULL ORDER BY created_at DESC LIMIT 1)
      UNION ALL
      (SELECT 'installation keys', ${noUuid}::uuid, '', name, master_key_id, ciphertext
        FROM payments.installation_keys LIMIT 1)`
}))
