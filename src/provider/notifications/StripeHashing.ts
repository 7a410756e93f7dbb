import { createHmac } from "node:crypto"
import { Redacted } from "effect"
import Stripe from "stripe"
import { HmacKey, HmacSha256 } from "../../kit/HmacSha256.ts"

/** The longest text, in characters, that is hashed in the buffer that is kept between calls. */
const maxKept = 64 * 1024

const hmac = new HmacSha256()

/** The HMAC that the provider's package verifies with, for one secret, whose key is prepared once. */
export class StripeHashing extends Stripe.CryptoProvider {
  readonly #key: HmacKey

  constructor(secret: Redacted.Redacted) {
    super()
    this.#key = new HmacKey(Redacted.value(secret))
  }

  /** @param secret must be the constructor's secret */
  override computeHMACSignature(payload: string, secret: string): string {
    if (payload.length > maxKept) return createHmac("sha256", secret).update(payload, "utf8").digest("hex")
    hmac.setBody(payload)
    return hmac.sign(this.#key, "", "hex")
  }
}
