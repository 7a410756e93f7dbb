/** The catalog in use: the contract's, or an embedding team's own. */
import { Context, Layer, Schema } from "effect"
import { EventType, eventTypes } from "./Catalog.ts"

export interface CatalogEntry {
  /** Words of lowercase letters, digits and `_`, joined by dots, up to 100 characters: `order.shipped`. */
  readonly type: string
  /** One sentence for the integrator. */
  readonly description: string
  /** The schema that `data` is checked against before it is published. Default: no check. */
  readonly data?: Schema.Schema.AnyNoContext
}

/**
 * An event type in answers. Documented as one of the contract's catalog, but read as any string, since an embedding
 * team may have its own catalog, and a newer service may know more types than a client.
 */
export const EventTypeName = Schema.String.annotations({
  identifier: "EventType",
  jsonSchema: { type: "string", enum: [...EventType.literals], description: "An event type of the catalog" }
})

/** The contract's event types (contract 6.3), unless a layer provides others. */
export class EventCatalog extends Context.Reference<EventCatalog>()("connected-payments/events/EventCatalog", {
  defaultValue: (): ReadonlyArray<CatalogEntry> => eventTypes
}) {
  /** A layer with another catalog. A type with the wrong form, or the same type twice, is a defect. */
  static readonly layer = (entries: ReadonlyArray<CatalogEntry>): Layer.Layer<EventCatalog> =>
    Layer.sync(EventCatalog, () => checked(entries))
}

const wellFormed = /^(?=.{1,100}$)[a-z][a-z0-9_]*(\.[a-z0-9_]+)*$/

const checked = (entries: ReadonlyArray<CatalogEntry>): ReadonlyArray<CatalogEntry> => {
  const types = entries.map(({ type }) => type)
  const refused = types.find((type, index) => !wellFormed.test(type) || types.indexOf(type) !== index)
  if (refused !== undefined) {
    throw new Error(`Not a valid event type, or twice in the catalog: ${JSON.stringify(refused)}`)
  }
  return entries
}

/**
 * How many types one endpoint may subscribe to: as many as the contract has. The table of endpoints takes up to 100.
 */
export const maxSubscriptions = EventType.literals.length

/** Why a subscription is refused: it has types that are not in the catalog, a type twice, no types or too many. */
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
