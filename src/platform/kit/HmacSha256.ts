/**
 * HMAC-SHA256 (RFC 2104) by one-shot hashes. `createHmac` allocates native objects for each signature, which cost more
 * than the hashing of a short message, and again when they are collected.
 */
import { hash } from "node:crypto"

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

  /** Sets the body of the following messages; a string means its UTF-8 bytes. */
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
