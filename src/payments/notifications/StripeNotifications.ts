import { isUtf8 } from "node:buffer"
import { createHmac } from "node:crypto"
import { Effect, Option, Redacted } from "effect"
import Stripe from "stripe"
import { stripeReader } from "../../events/stripe/Translate.ts"
import { SignatureInvalid } from "../../platform/errors/Errors.ts"
import { millisNow } from "../../platform/kit/Concurrency.ts"
import { HmacKey, HmacSha256 } from "../../platform/kit/crypto/KeyedHash.ts"
import { type Environment, environments } from "../../platform/kit/Environment.ts"
import { spanned } from "../../platform/telemetry/Spans.ts"
import type { StripeProviderOptions } from "../stripe/StripeCall.ts"
import type { NotificationsPort, VerifiedNotification } from "./Port.ts"

/** The longest text, in characters, that is hashed in the buffer that is kept between calls. */
const maxKeptText = 64 * 1024

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
    if (payload.length > maxKeptText) return createHmac("sha256", secret).update(payload, "utf8").digest("hex")
    hmac.setBody(payload)
    return hmac.sign(this.#key, "", "hex")
  }
}

/** How far the time of a notification may be off, in either direction (contract 8.3). */
const toleranceSeconds = 300

/** The `t=` of a signature header; undefined if there are several, since two parsers could read different ones. */
const timestampOf = (header: string): number | undefined => {
  const times = header.split(",").filter((part) => part.trim().startsWith("t="))
  const [time] = times
  return times.length === 1 && time !== undefined && /^\s*t=\d{1,12}\s*$/.test(time)
    ? Number(time.trim().slice(2))
    : undefined
}

/** A signature of the only scheme that is verified, `v1`. */
const someSignature = /(?:^|,)\s*v1=[0-9a-f]{64}\s*(?:,|$)/

/** Whether the header has a `v1` signature and a timestamp within the tolerance. */
const mayBeSigned = (header: string | undefined, now: number): header is string => {
  const time = header === undefined ? undefined : timestampOf(header)
  return (
    header !== undefined &&
    time !== undefined &&
    Math.abs(now / 1000 - time) <= toleranceSeconds &&
    someSignature.test(header)
  )
}

const byteOrderMark = Buffer.from("\uFEFF")

/**
 * Whether the bytes are exactly the text that is verified: the package drops a byte order mark and replaces invalid
 * UTF-8, so it would confirm bytes that nobody signed.
 */
const isPlainText = (body: Buffer): boolean => isUtf8(body) && !body.subarray(0, 3).equals(byteOrderMark)

interface Signer {
  readonly environment: Environment
  readonly secret: Redacted.Redacted
  /** The package's hashing, with this secret prepared. */
  readonly hashing: Stripe.CryptoProvider
}

/** Malformed signatures make the package throw plain errors, too. */
const isSigned = (text: string, header: string, { hashing, secret }: Signer, now: number): boolean => {
  const { signature } = Stripe.webhooks
  if (signature === null) return false
  try {
    return signature.verifyHeader(text, header, Redacted.value(secret), toleranceSeconds, hashing, now)
  } catch {
    return false
  }
}

/** A text parsed as JSON; undefined if it is not JSON. Never throws, however deeply it is nested. */
const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export const stripeNotifications = (
  options: StripeProviderOptions
): Pick<
  NotificationsPort,
  "signatureHeader" | "reader" | "checkSignatureHeader" | "verifyNotification" | "verifyThinNotification"
> => {
  const signers = environments.flatMap((environment) =>
    Option.match(options[environment], {
      onNone: () => [],
      onSome: ({ webhookSecrets }) =>
        webhookSecrets.map((secret): Signer => ({ environment, secret, hashing: new StripeHashing(secret) }))
    })
  )

  /** Finds the secret that signed the bytes, before anything of them is parsed. */
  const verify = (
    bytes: Uint8Array,
    header: string | undefined
  ): Effect.Effect<VerifiedNotification, SignatureInvalid> =>
    Effect.withFiberRuntime((fiber) => {
      const now = millisNow(fiber)
      if (!mayBeSigned(header, now)) return Effect.fail(new SignatureInvalid())
      const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      if (!isPlainText(body)) return Effect.fail(new SignatureInvalid())
      const text = body.toString("utf8")
      const signer = signers.find((signer) => isSigned(text, header, signer, now))
      return signer === undefined
        ? Effect.fail(new SignatureInvalid())
        : Effect.succeed({ environment: signer.environment, event: parsed(text) })
    })

  return {
    signatureHeader: "stripe-signature",
    reader: stripeReader,
    checkSignatureHeader: (header) =>
      Effect.withFiberRuntime((fiber) =>
        mayBeSigned(header, millisNow(fiber)) ? Effect.void : Effect.fail(new SignatureInvalid())
      ),
    verifyNotification: spanned("Provider.verifyNotification", verify),
    verifyThinNotification: spanned("Provider.verifyThinNotification", verify)
  }
}
