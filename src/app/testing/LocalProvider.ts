import { randomBytes } from "node:crypto"
import { Context, Effect, Layer, Option, Redacted, type Scope } from "effect"
import { type Emulator, type EmulatorError, makeEmulator } from "../../emulator/Emulator.ts"
import type { StripeProviderOptions } from "../../payments/stripe/StripeProvider.ts"

const make: Effect.Effect<LocalProvider["Type"], EmulatorError, Scope.Scope> = Effect.gen(function* () {
  const secretKey = `sk_test_${randomBytes(16).toString("hex")}`
  const webhookSecret = `whsec_${randomBytes(16).toString("hex")}`
  const emulator = yield* makeEmulator({ secretKey, webhookSecret })
  const options: StripeProviderOptions = {
    sandbox: Option.some({
      secretKey: Redacted.make(secretKey),
      webhookSecrets: [Redacted.make(webhookSecret)]
    }),
    production: Option.none(),
    oauthClientIds: { sandbox: emulator.oauthClientId },
    apiUrl: Option.some(new URL(emulator.url)),
    checkoutSuccessUrl: "https://shop.example/thanks?session_id={CHECKOUT_SESSION_ID}",
    checkoutCancelUrl: "https://shop.example/cart"
  }
  return { emulator, options }
})

/** The provider's emulator, in memory, on a free local port, with the options that the service needs to reach it. */
export class LocalProvider extends Context.Tag("connected-payments/testing/LocalProvider")<
  LocalProvider,
  {
    readonly emulator: Emulator
    /** For `stripeProviderLayer`, or the service's option `provider`. */
    readonly options: StripeProviderOptions
  }
>() {
  static readonly layer: Layer.Layer<LocalProvider, EmulatorError> = Layer.scoped(LocalProvider, make)
}
