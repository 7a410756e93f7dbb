import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, FastCheck, Redacted } from "effect"
import { Cipher } from "../../../src/platform/kit/crypto/Cipher.ts"
import type { MasterKey } from "../../../src/platform/settings/Settings.ts"

const masterKey = (id: string, byte: number): MasterKey => ({
  id,
  key: Redacted.make(new Uint8Array(32).fill(byte))
})

const old = masterKey("2025", 1)
const current = masterKey("2026", 2)

const cipherOf = (...keys: readonly [MasterKey, ...ReadonlyArray<MasterKey>]): Cipher["Type"] =>
  Effect.runSync(Effect.provide(Cipher, Cipher.layer(keys)))

const cipher = cipherOf(current)

const encrypt = (text: string, context = "row 1", by = cipher) =>
  Effect.runSync(by.encrypt(Redacted.make(text), context))

const decrypts = (encrypted: Parameters<Cipher["Type"]["decrypt"]>[0], context = "row 1", by = cipher) =>
  Effect.runSyncExit(by.decrypt(encrypted, context))

const texts = FastCheck.fullUnicodeString()

describe("an encrypted secret", () => {
  it("decrypts to what it was, whatever it was", () => {
    FastCheck.assert(
      FastCheck.property(texts, texts, (secret, context) => {
        expect(Redacted.value(Effect.runSync(cipher.decrypt(encrypt(secret, context), context)))).toBe(secret)
      })
    )
  })

  it("is another one each time, and shows nothing of the secret but its length", () => {
    const secret = "whsec_0123456789abcdefghij"
    const seen = Array.from({ length: 100 }, () => Buffer.from(encrypt(secret).ciphertext))
    expect(new Set(seen.map((bytes) => bytes.toString("hex"))).size).toBe(100)
    expect(new Set(seen.map((bytes) => bytes.subarray(0, 12).toString("hex"))).size).toBe(100)
    for (const bytes of seen) {
      expect(bytes.length).toBe(12 + 16 + secret.length)
      expect(bytes.includes("whsec_")).toBe(false)
      expect(bytes.includes(secret.slice(6, 12))).toBe(false)
    }
  })

  it("does not decrypt after any single bit was changed", () => {
    const { ciphertext, masterKeyId } = encrypt("a signing secret")
    for (let bit = 0; bit < ciphertext.length * 8; bit++) {
      const altered = Uint8Array.from(ciphertext)
      altered[bit >> 3] = (altered[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      expect(Exit.isFailure(decrypts({ ciphertext: altered, masterKeyId })), `bit ${bit}`).toBe(true)
    }
  })

  it("does not decrypt when it was cut, at any length, or lengthened", () => {
    const { ciphertext, masterKeyId } = encrypt("a signing secret")
    for (let length = 0; length < ciphertext.length; length++) {
      expect(Exit.isFailure(decrypts({ ciphertext: ciphertext.slice(0, length), masterKeyId })), `${length}`).toBe(true)
    }
    expect(Exit.isFailure(decrypts({ ciphertext: Buffer.concat([ciphertext, Buffer.of(0)]), masterKeyId }))).toBe(true)
  })

  it("does not decrypt in another row", () => {
    FastCheck.assert(
      FastCheck.property(texts, texts, (mine, other) => {
        FastCheck.pre(mine !== other)
        expect(Exit.isFailure(decrypts(encrypt("secret", mine), other))).toBe(true)
      })
    )
  })
})

describe("master keys", () => {
  it("are rotated: the first encrypts, all decrypt", () => {
    const before = encrypt("secret", "row 1", cipherOf(old))
    const rotated = cipherOf(current, old)
    expect(before.masterKeyId).toBe("2025")
    expect(Redacted.value(Effect.runSync(rotated.decrypt(before, "row 1")))).toBe("secret")
    expect(encrypt("secret", "row 1", rotated).masterKeyId).toBe("2026")
  })

  it("that are gone are named by id, in an error without secrets", () => {
    const error = Effect.runSync(
      Effect.flip(cipherOf(current).decrypt(encrypt("hush", "row 1", cipherOf(old)), "row 1"))
    )
    expect(error._tag).toBe("DecryptionFailed")
    expect(error.message).toContain("2025")
    expect(JSON.stringify(error)).not.toContain("hush")
  })

  it("of one id and other bytes do not decrypt, and the error names the id", () => {
    const impostor = cipherOf(masterKey("2025", 9))
    const error = Effect.runSync(Effect.flip(impostor.decrypt(encrypt("hush", "row 1", cipherOf(old)), "row 1")))
    expect(error._tag).toBe("DecryptionFailed")
    expect(error.message).toContain("2025")
  })
})
