import { SqlClient, type SqlError } from "@effect/sql"
import { Array as Arr, Effect } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { secretContext } from "../../engine/attempts/Secrets.ts"
import { Cipher } from "../../platform/kit/Cipher.ts"
import { answerContext } from "../../platform/kit/Idempotency.ts"
import { installationKeyContext } from "../../platform/kit/KeyedHash.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import type { MasterKey } from "../../platform/settings/Settings.ts"

/**
 * Moves everything that is encrypted at rest from older master keys to the current one, while the service runs.
 *
 * A row is replaced only if it is unchanged since it was read, so workers, requests and a second rotation lose nothing.
 * Progress is in the rows themselves: a stopped rotation is simply run again.
 */

/** The kinds of data that are encrypted at rest. A new table with ciphertexts belongs here. */
export type EncryptedKind = "signing secrets" | "stored answers" | "installation keys"

/** The context that a row's ciphertext is bound to. */
export const contextOf: Readonly<Record<EncryptedKind, (tenant: Tenant, id: string) => string>> = {
  "signing secrets": secretContext,
  "stored answers": answerContext,
  "installation keys": (_, name) => installationKeyContext(name)
}

interface EncryptedTable {
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
export const noUuid = "00000000-0000-0000-0000-000000000000"

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

export interface RotationProgress {
  readonly kind: EncryptedKind
  readonly reencrypted: number
  /** How many of this kind were encrypted under other keys when the rotation began. */
  readonly total: number
}

/** Rows left under a key that is not the current one. */
export interface LeftUnderKey {
  readonly masterKeyId: string
  readonly kind: EncryptedKind
  readonly count: number
  /** Whether the key is among the given ones: without it, these rows can't be read. */
  readonly known: boolean
}

/** A ciphertext that its master key does not decrypt: it was altered, or the id belongs to other key bytes. */
export interface Unreadable {
  readonly kind: EncryptedKind
  /** Null for a key of the installation. */
  readonly organizationId: string | null
  readonly environment: string | null
  readonly masterKeyId: string
}

export interface RotationReport {
  /** The id of the key that everything is re-encrypted under. */
  readonly current: string
  readonly reencrypted: number
  readonly left: ReadonlyArray<LeftUnderKey>
  readonly unreadable: ReadonlyArray<Unreadable>
  /** Ids of given keys that are no longer used. */
  readonly unused: ReadonlyArray<string>
}

interface Row extends Tenant {
  readonly id: string
  readonly masterKeyId: string
  readonly ciphertext: Buffer
}

/** Rows per statement: few enough that a request for one of them waits only milliseconds. */
const defaultBatchSize = 200

/** The maximum number of passes. Another pass finds rows that were meanwhile written under an older key. */
const maxPasses = 3

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

    page: (keyIds: ReadonlyArray<string>, after: readonly [string, string, string], limit: number) =>
      sql<Row>`
        SELECT ${organization} AS "organizationId", ${environment} AS environment, ${id}::text AS id, master_key_id AS "masterKeyId",
          ${ciphertext} AS ciphertext
        FROM ${table} t
        WHERE master_key_id = ANY(${keyIds}::text[])
          AND (${organization}, ${environment}, ${id}) > (${after[0]}::uuid, ${after[1]}, ${after[2]}::${idType})
        ORDER BY 1, 2, t.${id} LIMIT ${limit}`,

    /** Returns how many rows were replaced: those unchanged since they were read. */
    replace: (masterKeyId: string, changes: ReadonlyArray<{ readonly row: Row; readonly fresh: Uint8Array }>) =>
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

export interface RotationOptions {
  /** The first is the key to move to; the others are those to move from. */
  readonly masterKeys: NonEmptyReadonlyArray<MasterKey>
  /** Rows per statement. Default 200. */
  readonly batchSize?: number
  /** Called after every batch. */
  readonly onProgress?: (progress: RotationProgress) => Effect.Effect<void>
}

const makeRotation = Effect.fnUntraced(function* (options: RotationOptions) {
  const sql = yield* SqlClient.SqlClient
  const cipher = yield* Cipher
  const [{ id: current }, ...others] = options.masterKeys
  const olderIds = others.map(({ id }) => id)
  const batchSize = options.batchSize ?? defaultBatchSize
  const tables = encryptedTables.map((of) => ({ ...of, ...statementsOf(sql, of) }))

  const reencrypt = (of: EncryptedTable, row: Row) =>
    Effect.gen(function* () {
      const context = contextOf[of.kind](row, row.id)
      const { ciphertext } = yield* cipher.encrypt(yield* cipher.decrypt(row, context), context)
      return { row, fresh: ciphertext }
    }).pipe(
      Effect.mapError((): Unreadable => {
        const { environment, masterKeyId, organizationId } = row
        const whose = of.ofTenants ? { organizationId, environment } : { organizationId: null, environment: null }
        return { kind: of.kind, ...whose, masterKeyId }
      }),
      Effect.either
    )

  const movePass = Effect.fnUntraced(function* (of: (typeof tables)[number], total: number) {
    const unreadable: Array<Unreadable> = []
    let reencrypted = 0
    let after: readonly [string, string, string] = [noUuid, "", of.beforeAll]
    while (true) {
      const rows: ReadonlyArray<Row> = yield* of.page(olderIds, after, batchSize)
      const last = rows.at(-1)
      if (last === undefined) {
        return { reencrypted, unreadable }
      }
      const [refused, changes] = Arr.separate(yield* Effect.forEach(rows, (row) => reencrypt(of, row)))
      unreadable.push(...refused)
      reencrypted += changes.length === 0 ? 0 : yield* of.replace(current, changes)
      after = [last.organizationId, last.environment, last.id]
      yield* options.onProgress?.({ kind: of.kind, reencrypted, total }) ?? Effect.void
      yield* Effect.yieldNow()
    }
  })

  const leftOf = (of: (typeof tables)[number]) =>
    Effect.map(of.countByKey, (counts) =>
      counts
        .filter(({ masterKeyId }) => masterKeyId !== current)
        .map((counted): LeftUnderKey => ({ ...counted, kind: of.kind, known: olderIds.includes(counted.masterKeyId) }))
    )

  const movable = (left: ReadonlyArray<LeftUnderKey>) =>
    left.reduce((sum, { count, known }) => sum + (known ? count : 0), 0)

  const moveTable = Effect.fnUntraced(function* (of: (typeof tables)[number]) {
    let left = yield* leftOf(of)
    let reencrypted = 0
    let unreadable: ReadonlyArray<Unreadable> = []
    for (let pass = 0; pass < maxPasses && movable(left) > unreadable.length; pass++) {
      const moved = yield* movePass(of, movable(left))
      reencrypted += moved.reencrypted
      unreadable = moved.unreadable
      left = yield* leftOf(of)
    }
    return { left, reencrypted, unreadable }
  })

  return Effect.map(Effect.forEach(tables, moveTable), (moved): RotationReport => {
    const left = moved.flatMap((one) => one.left)
    return {
      current,
      reencrypted: moved.reduce((sum, one) => sum + one.reencrypted, 0),
      left,
      unreadable: moved.flatMap((one) => one.unreadable),
      unused: olderIds.filter((id) => !left.some(({ masterKeyId }) => masterKeyId === id))
    }
  })
})

/**
 * Re-encrypts everything under the other master keys with the first one. May be stopped at any time and run again.
 * Unreadable rows are left unchanged and reported; the rest is moved nevertheless.
 */
export const rotateMasterKeys = (
  options: RotationOptions
): Effect.Effect<RotationReport, SqlError.SqlError, SqlClient.SqlClient> =>
  makeRotation(options).pipe(
    Effect.flatten,
    Effect.provide(Cipher.layer(options.masterKeys)),
    Effect.withSpan("MasterKeyRotation.rotate")
  )
