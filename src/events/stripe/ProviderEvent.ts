import { Either, type ParseResult, Predicate, Schema } from "effect"
import { innermostIssues } from "../../platform/bounds/Refusals.ts"
import { maxUnixSeconds } from "../Envelope.ts"
import type { FilterSubjects } from "../Filters.ts"

/**
 * Schemas of the provider's snapshot events: the outer shape once, the object inside field by field. Reads are
 * defensive: the payload's shape follows the API version of the notification endpoint at the provider, not the one this
 * code was written for.
 */

/** A provider's JSON object as it arrived: neither copied nor checked further. */
export const ProviderObject = Schema.declare(
  (input: unknown): input is { readonly [key: string]: unknown } => Predicate.isRecord(input),
  { identifier: "ProviderObject", description: "A JSON object" }
)

const providerNameForm = /^[\x21-\x7e]{1,255}$/

/**
 * A name or id at the provider: visible ASCII, 1 to 255 characters. All of the provider's have this form, which keeps
 * event ids unambiguous (no newline) and can be stored (no NUL).
 */
export const ProviderName = Schema.String.pipe(Schema.pattern(providerNameForm))

/** `account` is `null` for the platform's own events. A thin notification is refused. */
export const ProviderEvent = Schema.Struct({
  id: ProviderName,
  object: Schema.optional(Schema.Literal("event")),
  type: ProviderName,
  created: Schema.Number.pipe(Schema.int(), Schema.between(0, maxUnixSeconds)),
  livemode: Schema.Boolean,
  account: Schema.optionalWith(Schema.NullOr(ProviderName), { default: () => null }),
  data: Schema.Struct({ object: ProviderObject })
}).annotations({ identifier: "ProviderEvent", description: "A snapshot event of the payment provider" })

export type ProviderEvent = typeof ProviderEvent.Type

/** A malformed payload, with the paths of the fields that are missing or not as expected, without their values. */
export interface Malformed {
  readonly _tag: "Malformed"
  readonly reason: string
}

/** The paths come from a schema, so the reason is bounded and holds no values. */
export const malformedAt = (paths: ReadonlyArray<string>): Malformed => ({
  _tag: "Malformed",
  reason: `missing or not as expected: ${paths.join(", ")}`
})

/**
 * `Malformed` for the fields that a schema refused. Contains only paths, never values: a refused value may be a payer's
 * data, and the reason is logged and stored.
 */
export const malformed = (prefix: string, { issue }: ParseResult.ParseError): Malformed =>
  malformedAt(issuePaths(issue).map((path) => (path === "" ? prefix : `${prefix}.${path}`)))

const decodeProviderEvent = Schema.decodeUnknownEither(ProviderEvent, { errors: "all" })

const isProviderName = (value: unknown): value is string => typeof value === "string" && providerNameForm.test(value)

/** Fast path: reads a fully valid event without the schema; null for any other. */
const readUsual = (input: unknown): ProviderEvent | null => {
  if (!Predicate.isRecord(input)) return null
  const { account = null, created, data, id, livemode, object, type } = input
  if (!isProviderName(id) || object !== "event" || !isProviderName(type)) return null
  if (typeof created !== "number" || !Number.isSafeInteger(created) || created < 0 || created > maxUnixSeconds)
    return null
  if (typeof livemode !== "boolean" || (account !== null && !isProviderName(account))) return null
  return Predicate.isRecord(data) && Predicate.isRecord(data["object"])
    ? { id, object, type, created, livemode, account, data: { object: data["object"] } }
    : null
}

/**
 * Reads the outer shape of a snapshot event from parsed JSON. Never throws. The schema is authoritative and reports
 * errors, but nearly all events are valid, and for those it would take longer than all other reading of the event.
 */
export const parseProviderEvent = (input: unknown): Either.Either<ProviderEvent, Malformed> => {
  const usual = readUsual(input)
  return usual === null
    ? Either.mapLeft(decodeProviderEvent(input), (error) => malformed("event", error))
    : Either.right(usual)
}

/** The provider's API version of a payload, for diagnosing why it could not be read; null if it names none. */
export const apiVersionOf = (input: unknown): string | null =>
  Predicate.hasProperty(input, "api_version") && isName(input.api_version) ? input.api_version : null

const isName = Schema.is(ProviderName)

/** A reference to another object, decoded to its id: the provider sends the id, or the object itself if expanded. */
export const Reference = Schema.transform(
  Schema.Union(Schema.String.pipe(Schema.minLength(1)), Schema.Struct({ id: Schema.String.pipe(Schema.minLength(1)) })),
  Schema.String,
  { strict: true, decode: (value) => (typeof value === "string" ? value : value.id), encode: (id) => id }
)

/** A field that the provider may omit or set to null; decoded as `null` in both cases. */
export const orAbsent = <A, I>(field: Schema.Schema<A, I>) =>
  Schema.optionalWith(Schema.NullOr(field), { default: () => null })

/**
 * The dotted paths of the fields that a schema refused, each once; "" for the input itself. Refused values are not
 * read: they may be a payer's data, and the platform's own formatters print them, however large or deep.
 */
const issuePaths = (issue: ParseResult.ParseIssue): ReadonlyArray<string> => [
  ...new Set([...innermostIssues(issue, [])].map(([path]) => path.map(String).join(".")))
]

/** The items that a checkout session sells, as recorded when this service created the session or its payment link. */
export interface SoldItems {
  readonly priceIds: ReadonlyArray<string>
  readonly productIds: ReadonlyArray<string>
}

/** Pure and total: anything missing or unexpected is left out (contract 7.6). */

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

/** Since 2025 an invoice's lines name price and product under `pricing`; before, a line held the price itself. */
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

export interface TruncatedList {
  readonly kind: "subscription_items" | "invoice_lines"
  readonly ownerId: string
}

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
