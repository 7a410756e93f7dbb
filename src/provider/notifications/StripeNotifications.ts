import { isUtf8 } from "node:buffer"
import { Clock, Effect, Option, Redacted } from "effect"
import Stripe from "stripe"
import { SignatureInvalid } from "../../errors/Errors.ts"
import { environments } from "../../events/Environment.ts"
import { spanned } from "../../telemetry/Spans.ts"
import type { StripeProviderOptions } from "../stripe/StripeCall.ts"
import type { NotificationsPort, VerifiedNotification } from "./Port.ts"

/** How far the time of a notification may be off, in either direction (contract 8.3). */
const toleranceSeconds = 300

/** The `t=` of a signature header; undefined if there are two, which two readers could read differently. */
const timestampOf = (header: string): number | undefined => {
  const times = header.split(",").filter((part) => part.trim().startsWith("t="))
  const [time] = times
  return times.length === 1 && time !== undefined && /^\s*t=\d{1,12}\s*$/.test(time)
    ? Number(time.trim().slice(2))
    : undefined
}

const byteOrderMark = Buffer.from("\uFEFF")

/**
 * Whether the bytes are exactly the text that is verified: the package drops a byte order mark and replaces invalid UTF-8,
 * so it would confirm bytes that nobody signed.
 */
const isPlainText = (body: Buffer): boolean => isUtf8(body) && !body.subarray(0, 3).equals(byteOrderMark)

/** Whether the header signs these bytes under the secret. `now` in milliseconds. */
const isSigned = (body: Buffer, header: string, secret: string, now: number): boolean => {
  const { signature } = Stripe.webhooks
  if (signature === null) return false
  try {
    return signature.verifyHeader(body, header, secret, toleranceSeconds, undefined, now)
  } catch (error) {
    if (error instanceof Stripe.errors.StripeSignatureVerificationError) return false
    throw error
  }
}

/** The bytes parsed as JSON; undefined if they are not JSON. Never throws, however deeply they are nested. */
const parsed = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString("utf8"))
  } catch {
    return undefined
  }
}

/** Signatures of Stripe's notifications. */
export const stripeNotifications = (
  options: StripeProviderOptions
): Pick<NotificationsPort, "verifyNotification" | "verifyThinNotification"> => {
  const secrets = environments.flatMap((environment) =>
    Option.match(options[environment], {
      onNone: () => [],
      onSome: ({ webhookSecrets }) => webhookSecrets.map((secret) => ({ environment, secret }))
    })
  )

  /** Finds the secret that signed the bytes; nothing of them is parsed before. */
  const verify = Effect.fnUntraced(function* (bytes: Uint8Array, header: string | undefined) {
    const now = yield* Clock.currentTimeMillis
    const time = header === undefined ? undefined : timestampOf(header)
    if (header === undefined || time === undefined || Math.abs(now / 1000 - time) > toleranceSeconds) {
      return yield* new SignatureInvalid()
    }
    const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const signer = isPlainText(body)
      ? secrets.find(({ secret }) => isSigned(body, header, Redacted.value(secret), now))
      : undefined
    return signer === undefined
      ? yield* new SignatureInvalid()
      : ({ environment: signer.environment, event: parsed(body) } satisfies VerifiedNotification)
  })

  return {
    verifyNotification: spanned("Provider.verifyNotification", verify),
    verifyThinNotification: spanned("Provider.verifyThinNotification", verify)
  }
}
