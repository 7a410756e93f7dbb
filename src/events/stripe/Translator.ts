/** How the news in one type of provider event becomes envelopes: the form that every translator has. */
import { Either, Schema } from "effect"
import type { EventData, EventType } from "../Catalog.ts"
import { type Envelope, type EnvelopeOf, makeEnvelope } from "../Envelope.ts"
import type { Environment } from "../Environment.ts"
import { type Malformed, malformed, malformedAt, type ProviderEvent } from "./ProviderEvent.ts"

/** What a checkout session sells, as recorded when this service created the session or its payment link. */
export interface SoldItems {
  readonly priceIds: ReadonlyArray<string>
  readonly productIds: ReadonlyArray<string>
}

/** What a translation has to know beside the provider event. */
export interface TranslationContext {
  readonly environment: Environment
  /** The organization whose connected account the event came from (UUID). */
  readonly organizationId: string
  /** What `soldItemsReference` led to; `null` where there is no record of it. Only `checkout.*` uses it. */
  readonly soldItems: SoldItems | null
}

/** Makes the envelope of one of our types for the provider event at hand. */
export type Make = <T extends EventType>(type: T, data: EventData<T>) => EnvelopeOf<T>

/** Turns one type of provider event into envelopes; none where it holds no news for consumers. */
export type Translator = (
  event: ProviderEvent,
  context: TranslationContext
) => Either.Either<ReadonlyArray<Envelope>, Malformed>

/** What a translator refuses though each field is as expected by itself: the paths of those that don't fit together. */
export interface Contradiction {
  readonly contradicting: ReadonlyArray<string>
}

const objectPath = "event.data.object"

/**
 * A translator from the fields it needs of the provider's object and what it makes of them. Fields that it does not
 * name are never read, so that they cannot reach a consumer.
 */
export const translator = <A, I>(
  object: Schema.Schema<A, I>,
  toEvents: (object: A, make: Make, context: TranslationContext) => ReadonlyArray<Envelope> | Contradiction
): Translator => {
  const decode = Schema.decodeUnknownEither(object, { errors: "all" })
  return (event, context) => {
    const make: Make = (type, data) =>
      makeEnvelope({
        environment: context.environment,
        organizationId: context.organizationId,
        providerEventId: event.id,
        created: event.created,
        type,
        data
      })
    return Either.flatMap(
      Either.mapLeft(decode(event.data.object), (error) => malformed(objectPath, error)),
      (object) => {
        const made = toEvents(object, make, context)
        return "contradicting" in made
          ? Either.left(malformedAt(made.contradicting.map((path) => `${objectPath}.${path}`)))
          : Either.right(made)
      }
    )
  }
}
