import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto"
import { Context, Data, Effect, Layer, Redacted } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { MasterKey } from "../../settings/Settings.ts"

/** An encrypted secret as it is stored: the master key's id beside `iv (12 bytes) | tag (16) | ciphertext`. */
export interface Encrypted {
  readonly masterKeyId: string
  readonly ciphertext: Uint8Array
}

/** Its master key is missing, or the row was altered or belongs elsewhere. For operators. */
export class DecryptionFailed extends Data.TaggedError("DecryptionFailed")<{
  readonly message: string
  readonly cause?: unknown
}> {}

const ivLength = 12
const tagLength = 16

/** Encrypts secrets at rest with AES-256-GCM under master keys that can be rotated. */
export class Cipher extends Context.Tag("connected-payments/kit/Cipher")<
  Cipher,
  {
    /** `context` names the row: a ciphertext moved to another row does not decrypt. */
    readonly encrypt: (secret: Redacted.Redacted, context: string) => Effect.Effect<Encrypted>
    readonly decrypt: (encrypted: Encrypted, context: string) => Effect.Effect<Redacted.Redacted, DecryptionFailed>
  }
>() {
  /** The first key encrypts; all decrypt. */
  static readonly layer = (masterKeys: NonEmptyReadonlyArray<MasterKey>): Layer.Layer<Cipher> =>
    Layer.succeed(Cipher, make(masterKeys))
}

const make = (masterKeys: NonEmptyReadonlyArray<MasterKey>): Cipher["Type"] => {
  const [current] = masterKeys
  const byId = new Map(masterKeys.map((masterKey) => [masterKey.id, masterKey.key]))

  const open = (key: Uint8Array, ciphertext: Uint8Array, context: string): string => {
    const decipher = createDecipheriv("aes-256-gcm", key, ciphertext.subarray(0, ivLength), {
      authTagLength: tagLength
    })
    decipher.setAAD(Buffer.from(context))
    decipher.setAuthTag(ciphertext.subarray(ivLength, ivLength + tagLength))
    return Buffer.concat([decipher.update(ciphertext.subarray(ivLength + tagLength)), decipher.final()]).toString(
      "utf8"
    )
  }

  return {
    encrypt: (secret, context) =>
      Effect.sync(() => {
        const iv = randomBytes(ivLength)
        const cipher = createCipheriv("aes-256-gcm", Redacted.value(current.key), iv, { authTagLength: tagLength })
        cipher.setAAD(Buffer.from(context))
        const sealed = Buffer.concat([cipher.update(Redacted.value(secret), "utf8"), cipher.final()])
        return { masterKeyId: current.id, ciphertext: Buffer.concat([iv, cipher.getAuthTag(), sealed]) }
      }),
    decrypt: ({ ciphertext, masterKeyId }, context) => {
      const key = byId.get(masterKeyId)
      return key === undefined
        ? new DecryptionFailed({ message: `The master key "${masterKeyId}" is not among MASTER_KEYS` })
        : Effect.try({
            try: () => Redacted.make(open(Redacted.value(key), ciphertext, context)),
            catch: (cause) =>
              new DecryptionFailed({ message: `A secret does not decrypt under master key "${masterKeyId}"`, cause })
          })
    }
  }
}
