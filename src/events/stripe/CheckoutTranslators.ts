/** `checkout.*` (contract 6.3, 6.5). */
import { Either, Schema } from "effect"
import { amount, currency, providerCode, providerId } from "../Fields.ts"
import { orAbsent, type ProviderEvent, Reference } from "./ProviderEvent.ts"
import { type Translator, translator } from "./Translator.ts"

const CheckoutSession = Schema.Struct({
  id: providerId("The session"),
  mode: providerCode("What the session is for"),
  payment_status: providerCode("Whether the money was received"),
  payment_intent: orAbsent(Reference),
  subscription: orAbsent(Reference),
  amount_total: orAbsent(amount("The total")),
  currency: orAbsent(currency)
})

const checkoutTranslator = (
  type: "checkout.completed" | "checkout.payment_succeeded" | "checkout.payment_failed"
): Translator =>
  translator(CheckoutSession, (session, make, { soldItems }) => [
    make(type, {
      session_id: session.id,
      mode: session.mode,
      payment_status: session.payment_status,
      payment_id: session.payment_intent,
      subscription_id: session.subscription,
      amount_total: session.amount_total,
      currency: session.currency,
      price_ids: soldItems?.priceIds ?? null,
      product_ids: soldItems?.productIds ?? null
    })
  ])

/** The translators by the provider's event type. */
export const checkoutTranslators = {
  "checkout.session.completed": checkoutTranslator("checkout.completed"),
  "checkout.session.async_payment_succeeded": checkoutTranslator("checkout.payment_succeeded"),
  "checkout.session.async_payment_failed": checkoutTranslator("checkout.payment_failed")
} satisfies Record<string, Translator>

/** Where to look up what a session sells: under the session, else under the payment link that it came from. */
export interface SoldItemsReference {
  readonly sessionId: string
  readonly paymentLinkId: string | null
}

const decodeReference = Schema.decodeUnknownEither(
  Schema.Struct({ id: providerId("The session"), payment_link: orAbsent(Reference) })
)

/**
 * The record to look up before translating a provider event; `null` if the event is not about a checkout session, or is
 * malformed.
 */
export const soldItemsReference = (event: ProviderEvent): SoldItemsReference | null => {
  if (!Object.hasOwn(checkoutTranslators, event.type)) return null
  return Either.match(decodeReference(event.data.object), {
    onLeft: () => null,
    onRight: ({ id, payment_link }) => ({ sessionId: id, paymentLinkId: payment_link })
  })
}
