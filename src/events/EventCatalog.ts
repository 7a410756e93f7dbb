/** The catalog that is in force: the 19 types, or what an embedding team puts in their place. */
import { Context, Layer, Schema } from "effect"
import { EventType, eventTypes } from "./Catalog.ts"

/** A type of the catalog. */
export interface CatalogEntry {
  /** Words of lowercase letters, digits and `_`, joined by dots, up to 100 characters: `order.shipped`. */
  readonly type: string
  /** One sentence for the integrator. */
  readonly description: string
  /** What `data` has to be, where it is to be held against it before it is published. */
  readonly data?: Schema.Schema.AnyNoContext
}

/**
 * An event type as answers carry it. Documented as the catalog's 19; a string to the reader, since the service may be
 * embedded with a catalog of another team's own, and may know more types than a client that is older.
 */
export const EventTypeName = Schema.String.annotations({
  identifier: "EventType",
  description: "An event type of the catalog",
  jsonSchema: { type: "string", enum: [...EventType.literals] }
})

/**
 * The types that endpoints may subscribe to and that are shown beside them. The 19 of the contract (Events, Catalog)
 * where no layer says otherwise: then nothing has to be provided.
 */
export class EventCatalog extends Context.Reference<EventCatalog>()("connected-payments/events/EventCatalog", {
  defaultValue: (): ReadonlyArray<CatalogEntry> => eventTypes
}) {
  /** A catalog of one's own. Types of the wrong form, and the same type twice, are a defect. */
  static readonly layer = (entries: ReadonlyArray<CatalogEntry>): Layer.Layer<EventCatalog> =>
    Layer.sync(EventCatalog, () => checked(entries))
}

const wellFormed = /^(?=.{1,100}$)[a-z][a-z0-9_]*(\.[a-z0-9_]+)*$/

const checked = (entries: ReadonlyArray<CatalogEntry>): ReadonlyArray<CatalogEntry> => {
  const types = entries.map(({ type }) => type)
  const refused = types.find((type, index) => !wellFormed.test(type) || types.indexOf(type) !== index)
  if (refused !== undefined) {
    throw new Error(`Not a type for a catalog, or twice in it: ${JSON.stringify(refused)}`)
  }
  return entries
}

/** The most types that one endpoint subscribes to (contract 5.1). */
export const maxSubscriptions = 19

/** Why a subscription can't be held: the types that the catalog lacks, a type twice, none or too many. */
export const subscriptionProblem = (
  catalog: ReadonlyArray<CatalogEntry>,
  types: ReadonlyArray<string>
): string | undefined => {
  const known = new Set(catalog.map(({ type }) => type))
  const unknown = types.filter((type) => !known.has(type))
  if (unknown.length > 0) {
    return `The catalog has no such event type: ${unknown.join(", ")}.`
  }
  return types.length === 0 || types.length > maxSubscriptions || new Set(types).size !== types.length
    ? `An endpoint subscribes to 1 to ${maxSubscriptions} event types, each once.`
    : undefined
}
