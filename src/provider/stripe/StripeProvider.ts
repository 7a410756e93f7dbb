import { Effect, Layer } from "effect"
import { Metrics, type MetricsWriter } from "../../telemetry/Metrics.ts"
import { stripeAccounts } from "../account/StripeAccount.ts"
import { stripeCheckout } from "../checkout/StripeCheckout.ts"
import { Provider } from "../Provider.ts"
import { stripePaymentLinks } from "../payment-links/StripePaymentLinks.ts"
import { stripeMoney } from "../payments/StripePayments.ts"
import { stripeCatalog } from "../products/StripeProducts.ts"
import { stripePromotionCodes } from "../promotion-codes/StripePromotionCodes.ts"
import { stripeSubscriptions } from "../subscriptions/StripeSubscriptions.ts"
import { makeStripeCall, type StripeProviderOptions } from "./StripeCall.ts"
import { stripeNotifications } from "./StripeNotifications.ts"
import { stripeReports } from "./StripeReports.ts"

export type { StripeProviderOptions } from "./StripeCall.ts"

const makeProvider = (options: StripeProviderOptions, metrics: MetricsWriter | null): Provider["Type"] => {
  const call = makeStripeCall(options, metrics)
  return {
    ...stripeAccounts(call),
    ...stripeMoney(call),
    ...stripeSubscriptions(call),
    ...stripeCatalog(call),
    ...stripeCheckout(call, options),
    ...stripePaymentLinks(call),
    ...stripePromotionCodes(call),
    ...stripeNotifications(options),
    ...stripeReports(call)
  }
}

/** `Provider` over the `stripe` package. Calls in an environment without credentials answer `provider_unavailable`. */
export const stripeProviderLayer = (options: StripeProviderOptions): Layer.Layer<Provider> =>
  Layer.effect(
    Provider,
    Effect.map(Metrics, (metrics) => makeProvider(options, metrics))
  )
