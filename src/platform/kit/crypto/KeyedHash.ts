import { hash, randomBytes } from "node:crypto"
import { SqlClient, type SqlError } from "@effect/sql"
import { Array as Arr, Context, Effect, Layer, Redacted } from "effect"
import { Cipher, type DecryptionFailed, type Encrypted } from "./Cipher.ts"

/**
 * HMAC-SHA256 (RFC 2104) by one-shot hashes. `createHmac` allocates native objects for each signature, which cost more
 * than the hashing of a short message, and again when they are collected.
 */

/** SHA-256's block size, in bytes. */
const blockBytes = 64

/** The longest text before a body. */
const maxStart = 256

/** The offset of the body, after the room for a key's block and for the text before the body. */
const bodyAt = blockBytes + maxStart

/** A key, prepared for any number of signatures. */
export class HmacKey {
  /** The key's padded block, with which each of the two hashes begins. */
  readonly inner = Buffer.alloc(blockBytes, 0x36)
  readonly outer = Buffer.alloc(blockBytes, 0x5c)

  /** The key is the text's UTF-8 bytes. */
  constructor(key: string) {
    const bytes = Buffer.from(key)
    const block = bytes.length > blockBytes ? hash("sha256", bytes, "buffer") : bytes
    for (const [at, byte] of block.entries()) {
      this.inner[at] = byte ^ 0x36
      this.outer[at] = byte ^ 0x5c
    }
  }
}

/** Signs one message after another; a message is a short text followed by a body. It keeps the last body in memory. */
export class HmacSha256 {
  #message = Buffer.allocUnsafeSlow(4096)
  readonly #outer = Buffer.allocUnsafeSlow(blockBytes + 32)
  #end = bodyAt

  setBody(body: string | Uint8Array): void {
    const atMost = bodyAt + (typeof body === "string" ? body.length * 3 : body.byteLength)
    if (this.#message.length < atMost) this.#message = Buffer.allocUnsafeSlow(atMost * 2)
    if (typeof body === "string") {
      this.#end = bodyAt + this.#message.write(body, bodyAt)
    } else {
      this.#message.set(body, bodyAt)
      this.#end = bodyAt + body.byteLength
    }
  }

  /** Signs `start` followed by the body. `start` is ASCII, at most 256 characters: a `RangeError` otherwise. */
  sign(key: HmacKey, start: string, encoding: "hex" | "base64"): string {
    const startAt = bodyAt - start.length
    if (start.length > maxStart) throw new RangeError("the text before a signed body is too long")
    this.#message.write(start, startAt, "latin1")
    this.#message.set(key.inner, startAt - blockBytes)
    const inner = hash("sha256", this.#message.subarray(startAt - blockBytes, this.#end), "hex")
    this.#outer.set(key.outer)
    this.#outer.write(inner, blockBytes, "hex")
    return hash("sha256", this.#outer, encoding)
  }
}

/** The row of `payments.installation_keys`. */
const name = "hashes"

export const installationKeyContext = (name: string): string => `installation-key\n${name}`

/**
 * Hashes guessable values, such as a person's data, to 32 bytes: HMAC-SHA-256 under a key of the installation. A reader
 * of the database, or of a backup, can't try values without a master key.
 *
 * The key is random, and stored encrypted: hashes stay comparable when master keys are rotated.
 */
export class KeyedHash extends Context.Tag("connected-payments/kit/KeyedHash")<KeyedHash, (text: string) => Buffer>() {
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
        const sql = yield* SqlClient.SqlClient
        const cipher = yield* Cipher
        const context = installationKeyContext(name)
        const stored = sql<Encrypted>`
          SELECT master_key_id AS "masterKeyId", ciphertext FROM payments.installation_keys WHERE name = ${name}`
        // Of processes that start at the same time, one creates the key, and all read that one
        const create = Effect.gen(function* () {
          const { ciphertext, masterKeyId } = yield* cipher.encrypt(
            Redacted.make(randomBytes(32).toString("base64")),
            context
          )
          yield* sql`
            INSERT INTO payments.installation_keys (name, master_key_id, ciphertext)
            VALUES (${name}, ${masterKeyId}, ${ciphertext}) ON CONFLICT (name) DO NOTHING`
        })
        const [key = yield* Effect.dieMessage("The installation's key was removed while it was created")] =
          yield* stored.pipe(Effect.filterOrElse(Arr.isNonEmptyReadonlyArray, () => Effect.zipRight(create, stored)))
        return KeyedHash.under(yield* cipher.decrypt(key, context))
      })
    )
}
