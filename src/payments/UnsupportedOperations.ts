import { supports } from "./OwnProvider.ts"
import type { ProviderShape } from "./Provider.ts"

/** The provider's operations that each operation of the API needs, by group and name. Unlisted ones need none. */
const needs: Readonly<Record<string, ReadonlyArray<Parameters<typeof supports>[1]>>> = {
  "account.balance": ["retrieveBalance"],
  "account.get": ["retrieveAccount"],
  "account.payoutSettings": ["retrievePayoutSettings"],
  "accountConnection.startOauth": ["redeemAuthorization"],
  "accountConnection.startOnboarding": ["createAccount", "createOnboardingUrl"],
  "accountPages.authorized": ["redeemAuthorization"],
  "accountPages.refresh": ["createOnboardingUrl"],
  "accountPages.returned": ["createOnboardingUrl"],
  "balanceTransactions.list": ["listBalanceTransactions"],
  "charges.get": ["retrieveCharge"],
  "charges.list": ["listCharges"],
  "checkoutPages.create": ["retrievePrice", "retrieveProduct", "createCheckoutSession"],
  "checkoutPages.delete": ["retrievePrice", "retrieveProduct", "createCheckoutSession"],
  "checkoutPages.get": ["retrievePrice", "retrieveProduct", "createCheckoutSession"],
  "checkoutPages.list": ["retrievePrice", "retrieveProduct", "createCheckoutSession"],
  "checkoutPages.update": ["retrievePrice", "retrieveProduct", "createCheckoutSession"],
  "checkoutSessions.create": ["createCheckoutSession"],
  "checkoutSessions.expire": ["expireCheckoutSession"],
  "checkoutSessions.get": ["retrieveCheckoutSession"],
  "checkoutSessions.lineItems": ["listSessionLines"],
  "checkoutSessions.list": ["listCheckoutSessions"],
  "customers.get": ["retrieveCustomer"],
  "customers.list": ["listCustomers"],
  "disputes.get": ["retrieveDispute"],
  "disputes.list": ["listDisputes"],
  "inbound.receive": ["verifyNotification"],
  "inbound.receiveThin": ["verifyThinNotification"],
  "payPages.page": ["createCheckoutSession"],
  "payPages.submit": ["createCheckoutSession"],
  "paymentIntents.get": ["retrievePaymentIntent"],
  "paymentIntents.list": ["listPaymentIntents"],
  "paymentLinks.create": ["createPaymentLink"],
  "paymentLinks.get": ["retrievePaymentLink"],
  "paymentLinks.lineItems": ["listLinkLines"],
  "paymentLinks.list": ["listPaymentLinks"],
  "paymentLinks.update": ["updatePaymentLink"],
  "payouts.get": ["retrievePayout"],
  "payouts.list": ["listPayouts"],
  "prices.create": ["createPrice"],
  "prices.get": ["retrievePrice"],
  "prices.list": ["listPrices"],
  "prices.update": ["updatePrice"],
  "productImages.upload": ["createProduct"],
  "products.create": ["createProduct"],
  "products.get": ["retrieveProduct"],
  "products.list": ["listProducts"],
  "products.update": ["updateProduct"],
  "promotionCodes.create": ["listPromotionCodes", "createCoupon", "deleteCoupon", "createPromotionCode"],
  "promotionCodes.get": ["retrievePromotionCode"],
  "promotionCodes.list": ["listPromotionCodes"],
  "promotionCodes.update": ["updatePromotionCode"],
  "refunds.create": ["createRefund"],
  "refunds.get": ["retrieveRefund"],
  "refunds.list": ["listRefunds"],
  "search.payments": ["searchPaymentIntents"],
  "subscriptions.cancel": ["cancelSubscription"],
  "subscriptions.get": ["retrieveSubscription"],
  "subscriptions.list": ["listSubscriptions"],
  "subscriptions.update": ["updateSubscription"]
}

/** The operations of the API that a provider does not support, as `group.name`: they are in no document and no list of tools. */
export const unsupportedOperations = (provider: ProviderShape): ReadonlySet<string> =>
  new Set(
    Object.entries(needs).flatMap(([operation, calls]) =>
      calls.every((call) => supports(provider, call)) ? [] : [operation]
    )
  )
