import { Layer } from "effect"
import { Provider } from "./Provider.ts"
import { stripeAccounts } from "./StripeAccounts.ts"
import { makeStripeCall, type StripeProviderOptions } from "./StripeCall.ts"
import { stripeCatalog } from "./StripeCatalog.ts"
import { stripeCheckout } from "./StripeCheckout.ts"
import { stripeNotifications } from "./StripeNotifications.ts"

export type { StripeProviderOptions } from "./StripeCall.ts"

const makeProvider = (options: StripeProviderOptions): Provider["Type"] => {
  const call = makeStripeCall(options)
  return {
    ...stripeAccounts(call),
    ...stripeCatalog(call),
    ...stripeCheckout(call, options),
    ...stripeNotifications(options)
  }
}

/** `Provider` over the `stripe` package. Calls in an environment without credentials answer `provider_unavailable`. */
export const stripeProviderLayer = (options: StripeProviderOptions): Layer.Layer<Provider> =>
  Layer.sync(Provider, () => makeProvider(options))
