import { randomBytes } from "node:crypto"
import type { SqlClient, SqlError } from "@effect/sql"
import { Array as Arr, Context, Effect, Layer, Redacted } from "effect"
import { Cipher, type DecryptionFailed } from "./Cipher.ts"
import { HmacKey, HmacSha256 } from "./HmacSha256.ts"
import { makeKeyedHashRepo } from "./KeyedHashRepo.ts"

/** The row of `payments.installation_keys`. */
const name = "hashes"

/** The context that the key's ciphertext is bound to. */
export const installationKeyContext = (name: string): string => `installation-key\n${name}`

/**
 * Hashes guessable values, such as a person's data, to 32 bytes: HMAC-SHA-256 under a key of the installation. A reader
 * of the database, or of a backup, can't try values without a master key.
 *
 * The key is random, and stored encrypted: hashes stay comparable when master keys are rotated.
 */
export class KeyedHash extends Context.Tag("connected-payments/kit/KeyedHash")<KeyedHash, (text: string) => Buffer>() {
  /** Under a given key. */
  static readonly under = (key: Redacted.Redacted): KeyedHash["Type"] => {
    const prepared = new HmacKey(Redacted.value(key))
    const hmac = new HmacSha256()
    return (text) => {
      hmac.setBody(text)
      return Buffer.from(hmac.sign(prepared, "", "base64"), "base64")
    }
  }

  /** Under the installation's key, which the first process creates. */
  static readonly layer: Layer.Layer<KeyedHash, SqlError.SqlError | DecryptionFailed, SqlClient.SqlClient | Cipher> =
    Layer.effect(
      KeyedHash,
      Effect.gen(function* () {
        const repo = yield* makeKeyedHashRepo
        const cipher = yield* Cipher
        const context = installationKeyContext(name)
        const stored = repo.find(name)
        // Of processes that start at the same time, one creates the key, and all read that one
        const create = Effect.gen(function* () {
          const made = yield* cipher.encrypt(Redacted.make(randomBytes(32).toString("base64")), context)
          yield* repo.insert(name, made)
        })
        const [key = yield* Effect.dieMessage("The installation's key was removed while it was created")] =
          yield* stored.pipe(Effect.filterOrElse(Arr.isNonEmptyReadonlyArray, () => Effect.zipRight(create, stored)))
        return KeyedHash.under(yield* cipher.decrypt(key, context))
      })
    )
}
