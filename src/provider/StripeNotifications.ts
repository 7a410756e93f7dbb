import { Clock, Effect, Option, Redacted } from "effect"
import Stripe from "stripe"
import { SignatureInvalid } from "../Errors.ts"
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

/** The operations of `Provider` on notifications. */
export const stripeNotifications = (options: StripeProviderOptions) => {
  const verifyUnder = (
    environment: Environment,
    secret: Redacted.Redacted,
    body: Buffer,
    header: string,
    now: number
  ): Effect.Effect<VerifiedNotification, SignatureInvalid> =>
    Effect.try({
      try: () => ({
        environment,
        event: Stripe.webhooks.constructEvent(body, header, Redacted.value(secret), toleranceSeconds, undefined, now)
      }),
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

  const verifyNotification = Effect.fn("Provider.verifyNotification")(function* (
    bytes: Uint8Array,
    header: string | undefined
  ) {
    const now = yield* Clock.currentTimeMillis
    const time = header === undefined ? undefined : timestampOf(header)
    if (header === undefined || time === undefined || Math.abs(now / 1000 - time) > toleranceSeconds) {
      return yield* new SignatureInvalid()
    }
    const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const attempts = secrets.map(({ environment, secret }) => verifyUnder(environment, secret, body, header, now))
    return yield* attempts.length === 0 ? new SignatureInvalid() : Effect.firstSuccessOf(attempts)
  })

  return { verifyNotification } satisfies Partial<Provider["Type"]>
}
