/**
 * Translation of the provider's events into the catalog's (contract 6.3). Pure and total: every input has an
 * outcome, and none throws.
 *
 * A family of types gets its translators in a file of its own and its line in `translators`. Two types of the catalog
 * come from elsewhere: `milestone.first_payment` is decided where the payment is stored, and `account.updated` never
 * comes from a snapshot's payload, whose order is not guaranteed, but from a reading of the account.
 */
import { Array as Arr, Either } from "effect"
import type { Envelope } from "../Envelope.ts"
import { checkoutTranslators } from "./CheckoutTranslators.ts"
import { disputeTranslators } from "./DisputeTranslators.ts"
import { paymentTranslators } from "./PaymentTranslators.ts"
import { payoutTranslators } from "./PayoutTranslators.ts"
import type { Malformed, ProviderEvent } from "./ProviderEvent.ts"
import { subscriptionTranslators } from "./SubscriptionTranslators.ts"
import type { TranslationContext, Translator } from "./Translator.ts"

export { type SoldItemsReference, soldItemsReference } from "./CheckoutTranslators.ts"
export { type Malformed, ProviderEvent, parseProviderEvent } from "./ProviderEvent.ts"
export type { SoldItems, TranslationContext } from "./Translator.ts"

/** What became of a provider event. */
export type Translation =
  /** The events to deliver, at least one. */
  | { readonly _tag: "Translated"; readonly events: Arr.NonEmptyReadonlyArray<Envelope> }
  /** Nothing in it for consumers: a type that is not translated, or one whose object is of no concern. */
  | { readonly _tag: "Ignored" }
  /** The event is of the provider's other mode than the environment: nothing may be made of it. */
  | { readonly _tag: "WrongMode" }
  /** The object lacks what its type promises. */
  | Malformed

/** What `translate` takes. */
export interface TranslateInput extends TranslationContext {
  /** Verified and parsed; see `parseProviderEvent`. */
  readonly event: ProviderEvent
}

const translators: Readonly<Record<string, Translator>> = {
  ...paymentTranslators,
  ...disputeTranslators,
  ...checkoutTranslators,
  ...subscriptionTranslators,
  ...payoutTranslators
}

/** The provider's event types that are translated. */
export const translatedProviderTypes: ReadonlyArray<string> = Object.keys(translators)

/** Translates one provider event. The same input always gives the same envelopes, ids included. */
export const translate = ({ event, ...context }: TranslateInput): Translation => {
  if (event.livemode !== (context.environment === "production")) return { _tag: "WrongMode" }
  // An own key only: a type named like a member of Object.prototype is no type of ours
  const translator = Object.hasOwn(translators, event.type) ? translators[event.type] : undefined
  if (translator === undefined) return { _tag: "Ignored" }
  return Either.match(translator(event, context), {
    onLeft: (malformed): Translation => malformed,
    onRight: (events) => (Arr.isNonEmptyReadonlyArray(events) ? { _tag: "Translated", events } : { _tag: "Ignored" })
  })
}
