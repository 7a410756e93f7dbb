import { Predicate } from "effect"
import type { FilterSubjects, Filters } from "./Filters.ts"

/**
 * The facts that filters read besides an event's `data`, in the form stored with the event, so that a replay filters as
 * the receipt did. Metadata can hold anything, including personal data: only a keyed hash of each pair is stored, which
 * tells whether a filter's pair is among them and nothing else.
 */

/** A hash with the installation's key: see `KeyedHash`. */
type Hash = (text: string) => Buffer

interface StoredSubjects {
  readonly prices?: ReadonlyArray<string>
  readonly products?: ReadonlyArray<string>
  readonly metadata?: ReadonlyArray<string>
}

/** The most entries stored of each kind: no sensible sale has more, and more would make the row large. */
const most = 100

/** Hashed with the event's id: the same pair looks different in every event. */
const hashOf = (keyedHash: Hash, eventId: string, key: string, value: string): string =>
  keyedHash(JSON.stringify([eventId, key, value])).toString("base64url", 0, 12)

/** The stored form; null if there is nothing to store. */
export const storeSubjects = (
  keyedHash: Hash,
  eventId: string,
  { metadata, priceIds, productIds }: FilterSubjects
): string | null => {
  const stored: StoredSubjects = {
    ...(priceIds === null ? {} : { prices: priceIds.slice(0, most) }),
    ...(productIds === null ? {} : { products: productIds.slice(0, most) }),
    ...(metadata === null
      ? {}
      : {
          metadata: Object.entries(metadata)
            .slice(0, most)
            .map(([key, value]) => hashOf(keyedHash, eventId, key, value))
        })
  }
  return Object.values(stored).some(({ length }) => length > 0) ? JSON.stringify(stored) : null
}

const textsOf = (stored: unknown, name: keyof StoredSubjects): ReadonlyArray<string> | null => {
  const texts: unknown = Predicate.hasProperty(stored, name) ? stored[name] : null
  return Array.isArray(texts) ? texts.filter(Predicate.isString) : null
}

/** The subjects of a stored event as far as these filters read them. */
export const subjectsFor = (
  keyedHash: Hash,
  eventId: string,
  stored: string | null,
  filters: Filters
): FilterSubjects => {
  const read: unknown = stored === null ? null : JSON.parse(stored)
  const hashes = textsOf(read, "metadata")
  return {
    priceIds: textsOf(read, "prices"),
    productIds: textsOf(read, "products"),
    metadata:
      hashes === null
        ? null
        : Object.fromEntries(
            Object.entries(filters.metadata ?? {}).filter(([key, value]) =>
              hashes.includes(hashOf(keyedHash, eventId, key, value))
            )
          )
  }
}
