import { Effect } from "effect"
import type Stripe from "stripe"
import type { CreateCheckoutSession } from "./CheckoutSessionsApi.ts"
import type { Provider, SoldItems } from "./Provider.ts"
import { one, page, type StripeCall, type StripeProviderOptions, toJson, withoutSecrets } from "./StripeCall.ts"

/** Checkout at Stripe. */

/**
 * Marks sessions that this service made, in their metadata: what they sell is known here, and can be completed from the
 * provider where a crash came between the provider's answer and our record.
 */
export const sessionMarker = { key: "svc_source", value: "connected-payments" } as const

const sessionParams = (
  params: CreateCheckoutSession,
  options: StripeProviderOptions
): Stripe.Checkout.SessionCreateParams => {
  const { line_items, metadata, ...rest } = params
  const marked = { ...metadata, [sessionMarker.key]: sessionMarker.value }
  // Filters on metadata look at the payment or subscription for their events: it gets a copy of what the caller gave
  const carried = { metadata: { ...metadata } }
  return {
    ...rest,
    line_items: line_items.map((item) => ({ ...item })),
    metadata: marked,
    ...(params.mode === "payment" ? { payment_intent_data: carried } : { subscription_data: carried }),
    success_url: options.checkoutSuccessUrl,
    cancel_url: options.checkoutCancelUrl,
    expand: ["line_items"]
  }
}

const unique = (ids: ReadonlyArray<string>): ReadonlyArray<string> => [...new Set(ids)]

const soldItemsOf = (items: ReadonlyArray<Stripe.LineItem>): SoldItems => {
  const prices = items.flatMap((item) => (item.price === null ? [] : [item.price]))
  return {
    priceIds: unique(prices.map((price) => price.id)),
    productIds: unique(prices.map(({ product }) => (typeof product === "string" ? product : product.id)))
  }
}

/** The operations of `Provider` on checkout sessions. */
export const stripeCheckout = (call: StripeCall, options: StripeProviderOptions) =>
  ({
    createCheckoutSession: (account, params, { idempotencyKey }) =>
      Effect.map(
        call("checkout.sessions.create", account, (client, scope) =>
          client.checkout.sessions.create(sessionParams(params, options), { ...scope, idempotencyKey })
        ),
        (session) => ({
          session: withoutSecrets(toJson(session)),
          soldItems: soldItemsOf(session.line_items?.data ?? [])
        })
      ),
    retrieveCheckoutSession: (account, id) =>
      one(
        call("checkout.sessions.retrieve", account, (client, scope) => client.checkout.sessions.retrieve(id, {}, scope))
      ),
    listCheckoutSessions: (account, params) =>
      page(call("checkout.sessions.list", account, (client, scope) => client.checkout.sessions.list(params, scope)))
  }) satisfies Partial<Provider["Type"]>
