import { Effect, Layer, Option } from "effect"
import { stripeName } from "../../events/Envelope.ts"
import { Metrics, type MetricsWriter } from "../../platform/telemetry/Metrics.ts"
import { stripeAccount } from "../account/StripeAccount.ts"
import { stripeCheckoutSessions } from "../checkout-sessions/StripeCheckoutSessions.ts"
import { stripeConnecting } from "../connecting/StripeConnecting.ts"
import { stripeEvents } from "../notifications/StripeEvents.ts"
import { stripeNotifications } from "../notifications/StripeNotifications.ts"
import { Provider, type ProviderShape } from "../Provider.ts"
import { stripePaymentLinks } from "../payment-links/StripePaymentLinks.ts"
import { stripePayments } from "../payments/StripePayments.ts"
import { stripePrices } from "../prices/StripePrices.ts"
import { stripeProducts } from "../products/StripeProducts.ts"
import { stripePromotionCodes } from "../promotion-codes/StripePromotionCodes.ts"
import { stripeSubscriptions } from "../subscriptions/StripeSubscriptions.ts"
import { makeStripeCall, type StripeProviderOptions } from "./StripeCall.ts"

export type { StripeProviderOptions } from "./StripeCall.ts"

/** For programs that make no call. */
export const withoutCredentials: StripeProviderOptions = {
  sandbox: Option.none(),
  production: Option.none(),
  apiUrl: Option.none(),
  checkoutSuccessUrl: "",
  checkoutCancelUrl: ""
}

export const stripeProvider = (options: StripeProviderOptions, metrics: MetricsWriter | null): ProviderShape => {
  const call = makeStripeCall(options, metrics)
  return {
    name: stripeName,
    ...stripeAccount(call),
    ...stripeCheckoutSessions(call, options),
    ...stripeConnecting(call, options),
    ...stripeEvents(call),
    ...stripeNotifications(options),
    ...stripePaymentLinks(call),
    ...stripePayments(call),
    ...stripePrices(call),
    ...stripeProducts(call),
    ...stripePromotionCodes(call),
    ...stripeSubscriptions(call)
  }
}

/** `Provider` on the `stripe` package. Calls in an environment without credentials fail with `provider_unavailable`. */
export const stripeProviderLayer = (options: StripeProviderOptions): Layer.Layer<Provider> =>
  Layer.effect(
    Provider,
    Effect.map(Metrics, (metrics) => stripeProvider(options, metrics))
  )
