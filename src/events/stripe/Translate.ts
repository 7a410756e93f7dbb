/**
 * Translation of the provider's events into the catalog's (contract 6.3). Pure and total: every input has an outcome,
 * and none throws.
 *
 * Two types of the catalog come from elsewhere: `milestone.first_payment` is decided when the payment is stored, and
 * `account.updated` comes from reading the account, never from a snapshot's payload, whose order is not guaranteed.
 */
import { Array as Arr, Either } from "effect"
import type { Envelope } from "../Envelope.ts"
import type { Malformed, ProviderEvent } from "./ProviderEvent.ts"
import type { TranslationContext } from "./Translator.ts"
import { translators } from "./Translators.ts"

export { type Malformed, ProviderEvent, parseProviderEvent } from "./ProviderEvent.ts"
export type { SoldItems, TranslationContext } from "./Translator.ts"
export { type SoldItemsReference, soldItemsReference } from "./Translators.ts"

/** The outcome of a provider event. */
export type Translation =
  /** The events to deliver, at least one. */
  | { readonly _tag: "Translated"; readonly events: Arr.NonEmptyReadonlyArray<Envelope> }
  /** Nothing for consumers: a type that is not translated, or an object that does not concern them. */
  | { readonly _tag: "Ignored" }
  /** The event's mode does not match the environment: it must not be used. */
  | { readonly _tag: "WrongMode" }
  /** The object lacks something that its type requires. */
  | Malformed

export interface TranslateInput extends TranslationContext {
  /** Verified and parsed; see `parseProviderEvent`. */
  readonly event: ProviderEvent
}

/** The provider's event types that are translated. */
export const translatedProviderTypes: ReadonlyArray<string> = Object.keys(translators)

/** Translates one provider event. The same input always gives the same envelopes, ids included. */
export const translate = ({ event, ...context }: TranslateInput): Translation => {
  if (event.livemode !== (context.environment === "production")) return { _tag: "WrongMode" }
  // Own keys only: a type named like a member of Object.prototype must not match
  const translator = Object.hasOwn(translators, event.type) ? translators[event.type] : undefined
  if (translator === undefined) return { _tag: "Ignored" }
  return Either.match(translator(event, context), {
    onLeft: (malformed): Translation => malformed,
    onRight: (events) => (Arr.isNonEmptyReadonlyArray(events) ? { _tag: "Translated", events } : { _tag: "Ignored" })
  })
}
