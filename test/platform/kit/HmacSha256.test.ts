import { createHmac } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { FastCheck } from "effect"
import { HmacKey, HmacSha256 } from "../../../src/platform/kit/crypto/KeyedHash.ts"

const byNode = (key: string, start: string, body: string | Uint8Array, encoding: "hex" | "base64") =>
  createHmac("sha256", key).update(start).update(body).digest(encoding)

const ascii = FastCheck.stringOf(
  FastCheck.integer({ min: 0, max: 127 }).map((code) => String.fromCharCode(code)),
  { maxLength: 256 }
)
const key = FastCheck.oneof(
  FastCheck.fullUnicodeString({ maxLength: 200 }),
  FastCheck.constantFrom(62, 63, 64, 65).map((length) => "k".repeat(length))
)
const body = FastCheck.oneof(
  FastCheck.string16bits(),
  FastCheck.uint8Array(),
  FastCheck.constantFrom(1, 4096, 20_000).map((length) => "€".repeat(length))
)

describe("HMAC-SHA256", () => {
  it("gives what Node's own gives, for any key, start and body, one after another", () => {
    const hmac = new HmacSha256()
    FastCheck.assert(
      FastCheck.property(key, FastCheck.array(FastCheck.tuple(ascii, body), { maxLength: 4 }), (text, messages) => {
        const prepared = new HmacKey(text)
        for (const [start, one] of messages) {
          hmac.setBody(one)
          expect(hmac.sign(prepared, start, "hex")).toBe(byNode(text, start, one, "hex"))
          expect(hmac.sign(prepared, `${start.slice(1)}.`, "base64")).toBe(
            byNode(text, `${start.slice(1)}.`, one, "base64")
          )
        }
      })
    )
  })

  it("refuses a start that would not fit before the body", () => {
    const hmac = new HmacSha256()
    hmac.setBody("body")
    expect(() => hmac.sign(new HmacKey("key"), "x".repeat(257), "hex")).toThrow(RangeError)
  })
})
