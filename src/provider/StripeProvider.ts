import { Effect, Layer } from "effect"
import { Metrics, type MetricsWriter } from "../kit/Metrics.ts"
import { Provider } from "./Provider.ts"
import { stripeAccounts } from "./StripeAccounts.ts"
import { makeStripeCall, type StripeProviderOptions } from "./StripeCall.ts"
import { stripeCatalog } from "./StripeCatalog.ts"
import { stripeCheckout } from "./StripeCheckout.ts"
import { stripeMoney } from "./StripeMoney.ts"
import { stripeNotifications } from "./StripeNotifications.ts"
import { stripePaymentLinks } from "./StripePaymentLinks.ts"
import { stripePromotionCodes } from "./StripePromotionCodes.ts"
import { stripeReports } from "./StripeReports.ts"
import { stripeSubscriptions } from "./StripeSubscriptions.ts"

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
