import { type Array as Arr, Either, Schema } from "effect"
import type { Environment } from "../platform/kit/Environment.ts"
import type { EventData, EventType } from "./Catalog.ts"
import { Envelope, makeEnvelope } from "./Envelope.ts"
import type { FilterSubjects } from "./Filters.ts"
import {
  type FoundSubjects,
  type Malformed,
  malformed,
  type ProviderEvent,
  type SoldItems,
  type TruncatedList
} from "./stripe/ProviderEvent.ts"

/** How the events of a provider are read. Pure and total: every input has an outcome, and none throws. */

/** Where to look up what a session sells: under the session, else under the payment link that it came from. */
export interface SoldItemsReference {
  readonly sessionId: string
  readonly paymentLinkId: string | null
}

export interface TranslationContext {
  readonly environment: Environment
  /** The organization whose connected account the event came from (UUID). */
  readonly organizationId: string
  /** The record that `soldItemsReference` refers to; `null` if there is none. Only `checkout.*` uses it. */
  readonly soldItems: SoldItems | null
}

export interface TranslateInput extends TranslationContext {
  /** Verified and parsed; see `parseProviderEvent`. */
  readonly event: ProviderEvent
}

export type Translation =
  /** The events to deliver, at least one. */
  | { readonly _tag: "Translated"; readonly events: Arr.NonEmptyReadonlyArray<Envelope> }
  /** Nothing for consumers: a type that is not translated, or an object that does not concern them. */
  | { readonly _tag: "Ignored" }
  /** The event's mode does not match the environment: it must not be used. */
  | { readonly _tag: "WrongMode" }
  /** The object lacks something that its type requires. */
  | Malformed

export interface EventReader {
  /** Whether events of a type can lead to more than a receipt. */
  readonly concerns: (type: string) => boolean
  /**
   * The topic of a type without an event in the catalog. `account`: its status may have changed, so it is read;
   * `deauthorization`: its owner revoked our access; `refund`: a refund may have failed after its creation.
   */
  readonly topicOf: (type: string) => "account" | "deauthorization" | "refund" | "other"
  /** Null if the event is not about a checkout session. */
  readonly soldItemsReference: (event: ProviderEvent) => SoldItemsReference | null
  readonly translate: (input: TranslateInput) => Translation
  /** The list in an event that the provider truncated but filters need whole; null if there is none. */
  readonly truncatedList: (event: ProviderEvent) => TruncatedList | null
  readonly filterSubjects: (event: ProviderEvent, soldItems: SoldItems | null) => FoundSubjects
}

type Translatable = Exclude<EventType, "milestone.first_payment">

export type CatalogEvent = {
  readonly [Type in Translatable]: { readonly type: Type; readonly data: EventData<Type> }
}[Translatable]

/** Translates another provider's notifications into events. */
export interface Translating {
  /**
   * A notification's events, at most one of each type; none if it does not concern integrators. Pure. If it throws, or
   * its data does not match the catalog, the notification is recorded as `malformed`, without events.
   */
  readonly translate: (event: ProviderEvent) => ReadonlyArray<CatalogEvent>
  /** The facts that endpoints can filter its events by. Default: none, so endpoints with filters get no events. */
  readonly filterSubjects?: (event: ProviderEvent) => Partial<FilterSubjects>
}

const decodeEnvelope = Schema.decodeUnknownEither(Envelope, { errors: "all" })

/** The reader of another provider's events, with this name. */
export const readerOf = (provider: string, { filterSubjects, translate }: Translating): EventReader => ({
  concerns: () => true,
  topicOf: () => "other",
  soldItemsReference: () => null,
  truncatedList: () => null,
  filterSubjects: (event) => ({
    priceIds: null,
    productIds: null,
    metadata: null,
    ...filterSubjects?.(event),
    truncated: false,
    missing: { items: null, metadata: null }
  }),
  translate: ({ environment, event, organizationId }) => {
    if (event.livemode !== (environment === "production")) return { _tag: "WrongMode" }
    const of = { provider, environment, organizationId, providerEventId: event.id, created: event.created }
    const made = Either.flatMap(translated(translate, event), (events) =>
      Either.all(
        events.map((event) =>
          Either.mapLeft(decodeEnvelope(makeEnvelope({ ...of, ...event })), (error) => malformed("translated", error))
        )
      )
    )
    if (Either.isLeft(made)) return made.left
    const [first, ...others] = made.right
    return first === undefined ? { _tag: "Ignored" } : { _tag: "Translated", events: [first, ...others] }
  }
})

const translated = (
  translate: Translating["translate"],
  event: ProviderEvent
): Either.Either<ReadonlyArray<CatalogEvent>, Malformed> => {
  const made = Either.try({
    try: () => translate(event),
    // Without its message, which may have a payer's data
    catch: (thrown): Malformed => ({
      _tag: "Malformed",
      reason: `the provider's translate threw ${thrown instanceof Error ? thrown.name : typeof thrown}`
    })
  })
  return Either.filterOrLeft(
    made,
    (events) => new Set(events.map(({ type }) => type)).size === events.length,
    (): Malformed => ({ _tag: "Malformed", reason: "the provider's translate returned two events of one type" })
  )
}
