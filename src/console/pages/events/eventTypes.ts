import eventFilters from "../../api/eventFilters.json" with { type: "json" }

/** The catalog's event types: their families, and which filters each can pass. Pure. */

export type EventType = keyof typeof eventFilters

/** A destination's filters, by their API names. */
export const filterNames = ["currencies", "amountMin", "amountMax", "products", "prices", "metadata"] as const
export type FilterName = (typeof filterNames)[number]

/** Whether a type is in the contract; requests may name only these. */
export const isEventType = (type: string): type is EventType => Object.hasOwn(eventFilters, type)

export const eventTypes: ReadonlyArray<EventType> = Object.keys(eventFilters).filter(isEventType)

const letsThrough = (type: EventType, filter: FilterName): boolean => {
  const { items, metadata, money } = eventFilters[type]
  if (filter === "metadata") return metadata
  return filter === "products" || filter === "prices" ? items : money
}

/**
 * The types whose events can never pass the filters, each with the filters that block it, since its events lack the
 * data they check (contract 7.4, 7.7).
 */
export const neverPassing = (
  types: ReadonlyArray<EventType>,
  filters: ReadonlyArray<FilterName>
): ReadonlyMap<EventType, ReadonlyArray<FilterName>> =>
  new Map(
    types
      .map((type) => [type, filters.filter((filter) => !letsThrough(type, filter))] as const)
      .filter(([, stopped]) => stopped.length > 0)
  )

const familyLabels: Readonly<Record<string, string>> = {
  payment: "Payments",
  dispute: "Disputes",
  checkout: "Checkout",
  subscription: "Subscriptions",
  payout: "Payouts",
  milestone: "Milestones",
  account: "Account"
}

interface Family<Entry> {
  /** Such as `payment`. */
  readonly name: string
  readonly label: string
  readonly types: ReadonlyArray<Entry>
}

export const familiesOf = <Entry extends { readonly type: string }>(
  catalog: ReadonlyArray<Entry>
): ReadonlyArray<Family<Entry>> => {
  const nameOf = ({ type }: Entry): string => type.split(".")[0] ?? type
  return [...new Set(catalog.map(nameOf))].map((name) => ({
    name,
    label: familyLabels[name] ?? name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " "),
    types: catalog.filter((entry) => nameOf(entry) === name)
  }))
}
