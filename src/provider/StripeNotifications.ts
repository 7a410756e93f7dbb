import { isUtf8 } from "node:buffer"
import { Clock, Effect, Option, Predicate, Redacted } from "effect"
import Stripe from "stripe"
import { SignatureInvalid } from "../Errors.ts"
import { spanned } from "../kit/Spans.ts"
import { type Environment, environments } from "../Settings.ts"
import type { Provider, VerifiedNotification } from "./Provider.ts"
import type { StripeProviderOptions } from "./StripeCall.ts"

/** Notifications of Stripe. */

/** How far a notification's time may be off, in both directions (contract, Signature, rule 3). */
const toleranceSeconds = 300

/** The one `t=` of a signature header. Two of them could be read differently by two readers, so they are refused. */
const timestampOf = (header: string): number | undefined => {
  const times = header.split(",").filter((part) => part.trim().startsWith("t="))
  const [time] = times
  return times.length === 1 && time !== undefined && /^\s*t=\d{1,12}\s*$/.test(time)
    ? Number(time.trim().slice(2))
    : undefined
}

const byteOrderMark = Buffer.from("\uFEFF")

/**
 * Whether the bytes say what the text that is verified says: the package drops a byte order mark and replaces what is no
 * UTF-8, and so would confirm bytes that nobody signed.
 */
const isPlainText = (body: Buffer): boolean => isUtf8(body) && !body.subarray(0, 3).equals(byteOrderMark)

/** Checks the signature and reads the body; throws where either is not what it should be. `now` in milliseconds. */
type Verify = (body: Buffer, header: string, secret: string, now: number) => unknown

const snapshot: Verify = (body, header, secret, now) =>
  Stripe.webhooks.constructEvent(body, header, secret, toleranceSeconds, undefined, now)

/** The package reads thin notifications with a client alone, whose key and API version have no part in it. */
const thin: Verify = (body, header, secret, now) => {
  Stripe.webhooks.signature?.verifyHeader(body, header, secret, toleranceSeconds, undefined, now)
  const event: unknown = JSON.parse(body.toString("utf8"))
  if (Stripe.webhooks.signature === null || !Predicate.hasProperty(event, "object") || event.object !== thinObject) {
    throw new Error("The body is not a thin notification's")
  }
  return event
}

const thinObject = "v2.core.event"

/** The operations of `Provider` on notifications. */
export const stripeNotifications = (options: StripeProviderOptions) => {
  const verifyUnder = (
    { environment, secret }: { readonly environment: Environment; readonly secret: Redacted.Redacted },
    verify: Verify,
    body: Buffer,
    header: string,
    now: number
  ): Effect.Effect<VerifiedNotification, SignatureInvalid> =>
    Effect.try({
      try: () => ({ environment, event: verify(body, header, Redacted.value(secret), now) }),
      catch: (cause) =>
        cause instanceof Stripe.errors.StripeSignatureVerificationError
          ? new SignatureInvalid()
          : new SignatureInvalid({ message: "The notification is signed, but its body is not a provider's event." })
    })

  const secrets = environments.flatMap((environment) =>
    Option.match(options[environment], {
      onNone: () => [],
      onSome: ({ webhookSecrets }) => webhookSecrets.map((secret) => ({ environment, secret }))
    })
  )

  const verifying = (verify: Verify) =>
    Effect.fnUntraced(function* (bytes: Uint8Array, header: string | undefined) {
      const now = yield* Clock.currentTimeMillis
      const time = header === undefined ? undefined : timestampOf(header)
      if (header === undefined || time === undefined || Math.abs(now / 1000 - time) > toleranceSeconds) {
        return yield* new SignatureInvalid()
      }
      const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      if (!isPlainText(body)) return yield* new SignatureInvalid()
      const attempts = secrets.map((secret) => verifyUnder(secret, verify, body, header, now))
      return yield* attempts.length === 0 ? new SignatureInvalid() : Effect.firstSuccessOf(attempts)
    })

  return {
    verifyNotification: spanned("Provider.verifyNotification", verifying(snapshot)),
    verifyThinNotification: spanned("Provider.verifyThinNotification", verifying(thin))
  } satisfies Partial<Provider["Type"]>
}
