import { Effect, Option, Redacted } from "effect"
import { Provider } from "../../src/payments/Provider.ts"
import { type StripeProviderOptions, stripeProviderLayer } from "../../src/payments/stripe/StripeProvider.ts"
import { testReturnUrls } from "../harness/TestService.ts"
import { makeScriptedProvider } from "./ScriptedProvider.ts"

/** The adapter over a provider that does as it is told. */
export const scripted = (options: Partial<StripeProviderOptions> = {}) =>
  Effect.gen(function* () {
    const server = yield* makeScriptedProvider
    const layer = stripeProviderLayer({
      sandbox: Option.some({
        secretKey: Redacted.make("sk_test_scripted"),
        webhookSecrets: [Redacted.make("whsec_x")]
      }),
      production: Option.none(),
      apiUrl: Option.some(server.url),
      ...testReturnUrls,
      ...options
    })
    return { ...server, provider: yield* Effect.provide(Provider, layer) }
  })
