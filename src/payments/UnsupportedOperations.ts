import { String as Str } from "effect"
import { isOperation, type ProviderOperation, supports } from "./OwnProvider.ts"
import type { ProviderShape } from "./Provider.ts"

/** Of these kinds of objects, each operation of the API needs the one of the same name: `prices.get`, `retrievePrice`. */
const kinds = [
  "BalanceTransaction",
  "Charge",
  "CheckoutSession",
  "Customer",
  "Dispute",
  "PaymentIntent",
  "PaymentLink",
  "Payout",
  "Price",
  "Product",
  "PromotionCode",
  "Refund",
  "Subscription"
]

const verbs = { cancel: "cancel", create: "create", expire: "expire", get: "retrieve", list: "list", update: "update" }

const ofKinds = kinds.flatMap((kind) =>
  Object.entries(verbs).flatMap(([name, verb]) => {
    const operation = `${verb}${kind}${name === "list" ? "s" : ""}`
    return isOperation(operation) ? [[`${Str.uncapitalize(kind)}s.${name}`, [operation]] as const] : []
  })
)

const page: ReadonlyArray<ProviderOperation> = ["retrievePrice", "retrieveProduct", "createCheckoutSession"]

/** The provider's operations that each operation of the API needs, by group and name. Unlisted ones need none. */
const needs: Readonly<Record<string, ReadonlyArray<ProviderOperation>>> = {
  ...Object.fromEntries(ofKinds),
  "account.balance": ["retrieveBalance"],
  "account.get": ["retrieveAccount"],
  "account.payoutSettings": ["retrievePayoutSettings"],
  "accountConnection.startOauth": ["redeemAuthorization"],
  "accountConnection.startOnboarding": ["createAccount", "createOnboardingUrl"],
  "accountPages.authorized": ["redeemAuthorization"],
  "accountPages.refresh": ["createOnboardingUrl"],
  "accountPages.returned": ["createOnboardingUrl"],
  "checkoutPages.create": page,
  "checkoutPages.delete": page,
  "checkoutPages.get": page,
  "checkoutPages.list": page,
  "checkoutPages.update": page,
  "checkoutSessions.lineItems": ["listSessionLines"],
  "inbound.receive": ["verifyNotification"],
  "inbound.receiveThin": ["verifyThinNotification"],
  "payPages.page": ["createCheckoutSession"],
  "payPages.submit": ["createCheckoutSession"],
  "paymentLinks.lineItems": ["listLinkLines"],
  "productImages.upload": ["createProduct"],
  "promotionCodes.create": ["listPromotionCodes", "createCoupon", "deleteCoupon", "createPromotionCode"],
  "search.payments": ["searchPaymentIntents"]
}

/** The operations of the API that a provider does not support, as `group.name`: they are in no document and no list of tools. */
export const unsupportedOperations = (provider: ProviderShape): ReadonlySet<string> =>
  new Set(
    Object.entries(needs).flatMap(([operation, calls]) =>
      calls.every((call) => supports(provider, call)) ? [] : [operation]
    )
  )
