/**
 * The fields of a provider event's object that filters may read (contract 7.6). Pure and total: anything missing or
 * unexpected is left out.
 */
import { Predicate } from "effect"
import type { FilterSubjects } from "../Filters.ts"
import type { ProviderEvent } from "./ProviderEvent.ts"
import type { SoldItems } from "./Translate.ts"

/** The subjects, and whether the provider truncated a list, whose rest must then be fetched before filtering by it. */
export interface FoundSubjects extends FilterSubjects {
  readonly truncated: boolean
  /**
   * The path of an expected field that this object lacks; null if it is present or not applicable. Reported because an
   * endpoint that filters by it would otherwise silently get nothing.
   */
  readonly missing: { readonly items: string | null; readonly metadata: string | null }
}

type Json = Readonly<Record<string, unknown>>

const record = (value: unknown): Json => (Predicate.isRecord(value) ? value : {})

const idOf = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "string") {
    return [value]
  }
  const { id } = record(value)
  return typeof id === "string" ? [id] : []
}

/** Removes duplicates in linear time: a body can hold tens of thousands of ids. */
const unique = (ids: ReadonlyArray<string>): ReadonlyArray<string> => [...new Set(ids)]

const metadataOf = (value: unknown): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(record(value)).filter((pair): pair is [string, string] => typeof pair[1] === "string")
  )

const listOf = (value: unknown): { readonly items: ReadonlyArray<Json>; readonly truncated: boolean } => {
  const { data, has_more } = record(value)
  return { items: Array.isArray(data) ? data.map(record) : [], truncated: has_more === true }
}

const none: FoundSubjects = {
  priceIds: null,
  productIds: null,
  metadata: null,
  truncated: false,
  missing: { items: null, metadata: null }
}

/** The path of missing metadata. A null value in the object means that it has none. */
const missingMetadata = ({ metadata }: Json): string | null =>
  metadata === null || Predicate.isRecord(metadata) ? null : "metadata"

/** The path of a list that is missing, or has an item that `isWhole` refuses. */
const missingList = (object: Json, field: string, isWhole: (part: Json) => boolean): string | null => {
  const list = record(object[field])["data"]
  return Array.isArray(list) && list.every((part) => isWhole(record(part))) ? null : field
}

const metadataOnly = (object: Json): FoundSubjects => ({
  ...none,
  metadata: metadataOf(object["metadata"]),
  missing: { items: null, metadata: missingMetadata(object) }
})

const ofSubscription = (object: Json): FoundSubjects => {
  const { items, truncated } = listOf(object["items"])
  const prices = items.map((item) => record(item["price"]))
  return {
    priceIds: unique(prices.flatMap(idOf)),
    productIds: unique(prices.flatMap((price) => idOf(price["product"]))),
    metadata: metadataOf(object["metadata"]),
    truncated,
    missing: {
      items: missingList(object, "items", ({ price }) => idOf(price).length > 0),
      metadata: missingMetadata(object)
    }
  }
}

/**
 * Reads an invoice's lines: since 2025 they name price and product under `pricing`; before, the line held the price
 * itself.
 */
const ofInvoice = (object: Json): FoundSubjects => {
  const { items, truncated } = listOf(object["lines"])
  const details = items.map((line) => record(record(line["pricing"])["price_details"]))
  const prices = items.map((line) => line["price"])
  const subscription = record(record(object["parent"])["subscription_details"] ?? object["subscription_details"])
  return {
    priceIds: unique([...details.flatMap(({ price }) => idOf(price)), ...prices.flatMap(idOf)]),
    productIds: unique([
      ...details.flatMap(({ product }) => idOf(product)),
      ...prices.flatMap((price) => idOf(record(price)["product"]))
    ]),
    metadata: { ...metadataOf(subscription["metadata"]), ...metadataOf(object["metadata"]) },
    truncated,
    missing: {
      // In a line without a price, these fields are null rather than missing
      items: missingList(object, "lines", ({ price, pricing }) => price !== undefined || pricing !== undefined),
      metadata: missingMetadata(object)
    }
  }
}

/** A list that the provider truncated in an event's object. */
export interface TruncatedList {
  readonly kind: "subscription_items" | "invoice_lines"
  /** The subscription or invoice that has the list. */
  readonly ownerId: string
}

/** The field that holds each kind of list. */
const listFields = { subscription_items: "items", invoice_lines: "lines" } as const

const listKindOf = ({ type }: ProviderEvent): TruncatedList["kind"] | null => {
  if (type.startsWith("customer.subscription.")) {
    return "subscription_items"
  }
  return type.startsWith("invoice.") ? "invoice_lines" : null
}

/** The truncated list of an event's object, which must be fetched; null if none is truncated. */
export const truncatedList = (event: ProviderEvent): TruncatedList | null => {
  const kind = listKindOf(event)
  const [ownerId] = idOf(event.data.object)
  return kind === null || ownerId === undefined || !listOf(event.data.object[listFields[kind]]).truncated
    ? null
    : { kind, ownerId }
}

/** Replaces the event's truncated list with the complete, fetched one. */
export const withWholeList = (
  event: ProviderEvent,
  { kind }: TruncatedList,
  items: ReadonlyArray<unknown>
): ProviderEvent => ({
  ...event,
  data: { object: { ...event.data.object, [listFields[kind]]: { data: items, has_more: false } } }
})

/** The subjects of a provider event for filters. `soldItems` are those of its checkout session, if known. */
export const filterSubjects = (event: ProviderEvent, soldItems: SoldItems | null): FoundSubjects => {
  const { object } = event.data
  if (event.type.startsWith("checkout.session.")) {
    return {
      priceIds: soldItems?.priceIds ?? null,
      productIds: soldItems?.productIds ?? null,
      metadata: metadataOf(object["metadata"]),
      truncated: false,
      missing: { items: null, metadata: missingMetadata(object) }
    }
  }
  if (event.type.startsWith("customer.subscription.")) {
    return ofSubscription(object)
  }
  if (event.type.startsWith("invoice.")) {
    return ofInvoice(object)
  }
  return event.type === "account.updated" ? none : metadataOnly(object)
}
