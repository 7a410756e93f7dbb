import { SqlClient, type SqlError } from "@effect/sql"
import { Data, Effect } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { Cipher } from "../../platform/kit/Cipher.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import type { MasterKey } from "../../platform/settings/Settings.ts"
import { contextOf, type EncryptedKind, noUuid } from "./MasterKeyRotation.ts"

/** The master keys are not those of the database. The message is for operators: it names the key's id, not the key. */
export class WrongMasterKeys extends Data.TaggedError("WrongMasterKeys")<{
  readonly message: string
  /** The key that is missing, or whose bytes are not those that encrypted the stored data. */
  readonly masterKeyId: string
}> {}

interface Sample extends Tenant {
  readonly kind: EncryptedKind
  readonly id: string
  readonly masterKeyId: string
  readonly ciphertext: Buffer
}

/** How to get the key back; a local start without the setting has its key in its data directory. */
const remedy = (masterKeyId: string, secretsFile: string | undefined): string =>
  secretsFile === undefined
    ? `Add it to MASTER_KEYS as ${masterKeyId}:<base64 of 32 bytes>. If it is lost, see "A lost master key" in src/docs/guides/operating.md, or /docs/operating on any other process.`
    : `MASTER_KEYS is not set, so the key is the one in ${secretsFile}. Start with the DATA_DIR that was first used with ` +
      "this database, copy the secrets.json of that directory over this one, or set MASTER_KEYS to the key."

/**
 * Tries the master keys on stored data, in one query: the installation's key, a signing secret, preferably one under an
 * unknown key, and the newest stored answer. A process with wrong keys fails at startup, not at the first delivery.
 *
 * @param options.secretsFile the file that the key comes from, if `MASTER_KEYS` is not set
 */
export const checkMasterKeys = (options: {
  readonly masterKeys: NonEmptyReadonlyArray<MasterKey>
  readonly secretsFile?: string
}): Effect.Effect<void, WrongMasterKeys | SqlError.SqlError, SqlClient.SqlClient> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const cipher = yield* Cipher
    const known = options.masterKeys.map(({ id }) => id)
    const samples = yield* sql<Sample>`
      (SELECT 'signing secrets' AS kind, organization_id AS "organizationId", environment, id::text AS id,
          master_key_id AS "masterKeyId", ciphertext
        FROM payments.endpoint_secrets ORDER BY master_key_id = ANY(${known}::text[]), created_at DESC LIMIT 1)
      UNION ALL
      (SELECT 'stored answers', organization_id, environment, key, master_key_id, answer
        FROM payments.idempotency_keys WHERE answer IS NOT NULL ORDER BY created_at DESC LIMIT 1)
      UNION ALL
      (SELECT 'installation keys', ${noUuid}::uuid, '', name, master_key_id, ciphertext
        FROM payments.installation_keys LIMIT 1)`
    yield* Effect.forEach(
      samples,
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
