import type { SqlClient, SqlError } from "@effect/sql"
import { Array as Arr, Data, Effect } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { secretContext } from "../../engine/attempts/Signing.ts"
import { Cipher } from "../../platform/kit/crypto/Cipher.ts"
import { installationKeyContext } from "../../platform/kit/crypto/KeyedHash.ts"
import { answerContext } from "../../platform/kit/Idempotency.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import type { MasterKey } from "../../platform/settings/Settings.ts"
import { type EncryptedKind, type EncryptedRow, type EncryptedTable, makeMasterKeysRepo } from "./MasterKeysRepo.ts"

/**
 * Moves everything that is encrypted at rest from older master keys to the current one, while the service runs.
 *
 * A row is replaced only if it is unchanged since it was read, so workers, requests and a second rotation lose nothing.
 * Progress is in the rows themselves: a stopped rotation is simply run again.
 */

/** The context that a row's ciphertext is bound to. */
const contextOf: Readonly<Record<EncryptedKind, (tenant: Tenant, id: string) => string>> = {
  "signing secrets": secretContext,
  "stored answers": answerContext,
  "installation keys": (_, name) => installationKeyContext(name)
}

export interface RotationProgress {
  readonly kind: EncryptedKind
  readonly reencrypted: number
  readonly total: number
}

export interface LeftUnderKey {
  readonly masterKeyId: string
  readonly kind: EncryptedKind
  readonly count: number
  /** Whether the key is among the given ones: without it, these rows can't be read. */
  readonly known: boolean
}

/** A ciphertext that its master key does not decrypt: it was altered, or the id belongs to other key bytes. */
export interface UnreadableCiphertext {
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
  readonly unreadable: ReadonlyArray<UnreadableCiphertext>
  /** Ids of given keys that are no longer used. */
  readonly unused: ReadonlyArray<string>
}

/** Rows per statement: few enough that a request for one of them waits only milliseconds. */
const defaultBatchSize = 200

/** The maximum number of passes. Another pass finds rows that were meanwhile written under an older key. */
const maxPasses = 3

export interface RotationOptions {
  /** The first is the key to move to; the others are those to move from. */
  readonly masterKeys: NonEmptyReadonlyArray<MasterKey>
  /** Rows per statement. Default 200. */
  readonly batchSize?: number
  readonly onProgress?: (progress: RotationProgress) => Effect.Effect<void>
}

const movable = (left: ReadonlyArray<LeftUnderKey>) =>
  left.reduce((sum, { count, known }) => sum + (known ? count : 0), 0)

const reportOf = (
  moved: ReadonlyArray<Pick<RotationReport, "left" | "reencrypted" | "unreadable">>,
  current: string,
  olderIds: ReadonlyArray<string>
): RotationReport => {
  const left = moved.flatMap((one) => one.left)
  return {
    current,
    reencrypted: moved.reduce((sum, one) => sum + one.reencrypted, 0),
    left,
    unreadable: moved.flatMap((one) => one.unreadable),
    unused: olderIds.filter((id) => !left.some(({ masterKeyId }) => masterKeyId === id))
  }
}

const unreadableOf = (of: EncryptedTable, row: EncryptedRow): UnreadableCiphertext => {
  const { environment, masterKeyId, organizationId } = row
  const whose = of.ofTenants ? { organizationId, environment } : { organizationId: null, environment: null }
  return { kind: of.kind, ...whose, masterKeyId }
}

const makeRotation = Effect.fnUntraced(function* (options: RotationOptions) {
  const { tables } = yield* makeMasterKeysRepo
  const cipher = yield* Cipher
  const [{ id: current }, ...others] = options.masterKeys
  const olderIds = others.map(({ id }) => id)
  const batchSize = options.batchSize ?? defaultBatchSize

  const reencrypt = (of: EncryptedTable, row: EncryptedRow) =>
    Effect.gen(function* () {
      const context = contextOf[of.kind](row, row.id)
      const { ciphertext } = yield* cipher.encrypt(yield* cipher.decrypt(row, context), context)
      return { row, fresh: ciphertext }
    }).pipe(
      Effect.mapError(() => unreadableOf(of, row)),
      Effect.either
    )

  const movePass = Effect.fnUntraced(function* (of: (typeof tables)[number], total: number) {
    const unreadable: Array<UnreadableCiphertext> = []
    let reencrypted = 0
    let after: EncryptedRow | undefined
    while (true) {
      const rows: ReadonlyArray<EncryptedRow> = yield* of.page(olderIds, after, batchSize)
      if (rows.length === 0) {
        return { reencrypted, unreadable }
      }
      const [refused, changes] = Arr.separate(yield* Effect.forEach(rows, (row) => reencrypt(of, row)))
      unreadable.push(...refused)
      reencrypted += changes.length === 0 ? 0 : yield* of.replace(current, changes)
      after = rows.at(-1)
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

  const moveTable = Effect.fnUntraced(function* (of: (typeof tables)[number]) {
    let left = yield* leftOf(of)
    let reencrypted = 0
    let unreadable: ReadonlyArray<UnreadableCiphertext> = []
    for (let pass = 0; pass < maxPasses && movable(left) > unreadable.length; pass++) {
      const moved = yield* movePass(of, movable(left))
      reencrypted += moved.reencrypted
      unreadable = moved.unreadable
      left = yield* leftOf(of)
    }
    return { left, reencrypted, unreadable }
  })

  return Effect.map(Effect.forEach(tables, moveTable), (moved) => reportOf(moved, current, olderIds))
})

/** May be stopped and run again; unreadable rows are left unchanged and reported. */
export const rotateMasterKeys = (
  options: RotationOptions
): Effect.Effect<RotationReport, SqlError.SqlError, SqlClient.SqlClient> =>
  makeRotation(options).pipe(
    Effect.flatten,
    Effect.provide(Cipher.layer(options.masterKeys)),
    Effect.withSpan("MasterKeyRotation.rotate")
  )

/** The master keys are not those of the database. The message is for operators: it names the key's id, not the key. */
export class WrongMasterKeys extends Data.TaggedError("WrongMasterKeys")<{
  readonly message: string
  /** The key that is missing, or whose bytes are not those that encrypted the stored data. */
  readonly masterKeyId: string
}> {}

/** How to get the key back; a local start without the setting has its key in its data directory. */
const remedy = (masterKeyId: string, secretsFile: string | undefined): string =>
  secretsFile === undefined
    ? `Add it to MASTER_KEYS as ${masterKeyId}:<base64 of 32 bytes>. If it is lost, see "A lost master key" in src/docs/guides/operating.md, or /docs/operating on any other process.`
    : `MASTER_KEYS is not set, so the key is the one in ${secretsFile}. Start with the DATA_DIR that was first used with ` +
      "this database, copy the secrets.json of that directory over this one, or set MASTER_KEYS to the key."

/**
 * Tries the master keys on stored data, a row of each kind. A process with wrong keys fails at startup, not at the
 * first delivery.
 *
 * @param options.secretsFile the file that the key comes from, if `MASTER_KEYS` is not set
 */
export const checkMasterKeys = (options: {
  readonly masterKeys: NonEmptyReadonlyArray<MasterKey>
  readonly secretsFile?: string
}): Effect.Effect<void, WrongMasterKeys | SqlError.SqlError, SqlClient.SqlClient> =>
  Effect.gen(function* () {
    const repo = yield* makeMasterKeysRepo
    const cipher = yield* Cipher
    const known = options.masterKeys.map(({ id }) => id)
    yield* Effect.forEach(
      yield* repo.samples(known),
      ({ kind, masterKeyId, ...row }) =>
        cipher.decrypt({ masterKeyId, ciphertext: row.ciphertext }, contextOf[kind](row, row.id)).pipe(
          Effect.mapError(() => {
            const problem = known.includes(masterKeyId)
              ? `the key "${masterKeyId}" is not the one that encrypted the database's ${kind}, though its id is the same.`
              : `the key "${masterKeyId}" is missing: ${kind} in the database are encrypted under it.`
            return new WrongMasterKeys({
              masterKeyId,
              message: `MASTER_KEYS: ${problem} ${remedy(masterKeyId, options.secretsFile)}`
            })
          })
        ),
      { discard: true }
    )
  }).pipe(Effect.provide(Cipher.layer(options.masterKeys)), Effect.withSpan("MasterKeyCheck.check"))
