import { Either, Redacted } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { anySecret, type Form, parsed } from "./Forms.ts"

/** A key that encrypts signing secrets at rest: its id is stored with each ciphertext. */
export interface MasterKey {
  readonly id: string
  /** 32 bytes. */
  readonly key: Redacted.Redacted<Uint8Array>
}

/** Master keys as `id:base64 of 32 bytes`, comma-separated; each id once. */
export const masterKeys: Form<NonEmptyReadonlyArray<MasterKey>> = parsed(anySecret, (value) => {
  const keys: Array<MasterKey> = []
  for (const part of Redacted.value(value).split(",")) {
    const [id, encoded, ...rest] = part.trim().split(":")
    const bytes = Buffer.from(encoded ?? "", "base64")
    // Node skips characters that are not base64, such as quotes
    const isWhole = /^[\w+/-]{43}=?$/.test(encoded ?? "") && bytes.length === 32
    if (id === undefined || !/^[A-Za-z0-9_-]{1,32}$/.test(id) || rest.length > 0 || !isWhole) {
      return Either.left("must be a list of <id>:<base64 of 32 bytes>, comma-separated, the current key first")
    }
    keys.push({ id, key: Redacted.make(new Uint8Array(bytes)) })
  }
  const [first, ...others] = keys
  return first === undefined || new Set(keys.map((key) => key.id)).size !== keys.length
    ? Either.left("must name each key id once")
    : Either.right([first, ...others])
})
