/** The common form of translators, each of which turns one type of provider event into envelopes. */
import { Either, Schema } from "effect"
import type { Environment } from "../../platform/kit/Environment.ts"
import type { EventData, EventType } from "../Catalog.ts"
import { type Envelope, type EnvelopeOf, makeEnvelope } from "../Envelope.ts"
import { type Malformed, malformed, malformedAt, type ProviderEvent } from "./ProviderEvent.ts"

/** The items that a checkout session sells, as recorded when this service created the session or its payment link. */
export interface SoldItems {
  readonly priceIds: ReadonlyArray<string>
  readonly productIds: ReadonlyArray<string>
}

/** The input of a translation besides the provider event. */
export interface TranslationContext {
  readonly environment: Environment
  /** The organization whose connected account the event came from (UUID). */
  readonly organizationId: string
  /** The record that `soldItemsReference` refers to; `null` if there is none. Only `checkout.*` uses it. */
  readonly soldItems: SoldItems | null
}

/** Creates the envelope of a catalog type for the current provider event. */
export type Make = <T extends EventType>(type: T, data: EventData<T>) => EnvelopeOf<T>

/** Turns one type of provider event into envelopes; none if it concerns no consumer. */
export type Translator = (
  event: ProviderEvent,
  context: TranslationContext
) => Either.Either<ReadonlyArray<Envelope>, Malformed>

/** Why a translator refuses fields that are each valid: the paths of those that contradict each other. */
export interface Contradiction {
  readonly contradicting: ReadonlyArray<string>
}

const objectPath = "event.data.object"

/**
 * Creates a translator from a schema of the fields that it needs and a function from these to events. Fields that the
 * schema does not name are never read, so they cannot reach a consumer.
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
