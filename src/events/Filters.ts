import { Either, JSONSchema, ParseResult, Predicate, Schema } from "effect"
import { suggestion } from "../platform/bounds/Reasons.ts"
import { boundedRefusals, fieldName, maxRefusedFields, type Reasons } from "../platform/bounds/Refusals.ts"
import { remark } from "../platform/bounds/Rules.ts"
import { CurrencyCode, controls, text } from "../platform/bounds/Text.ts"

/**
 * Filters of endpoints: which of the subscribed events are delivered (contract 7). Pure. A filter reads an event's
 * `data` and other facts about the provider's object, which are never delivered.
 */

/** An empty filter would be ambiguous (all events or none), so it is refused. */
const toLift = "leave it out if the endpoint should not filter by it"

const list = (item: Schema.Schema<string>, max: number, description: string) =>
  Schema.Array(item)
    .pipe(
      Schema.maxItems(max),
      Schema.filter((items) => items.length > 0 || `must not be an empty list: ${toLift}`, {
        jsonSchema: { minItems: 1 }
      })
    )
    .annotations({ description: `${description}, 1 to ${max}`, jsonSchema: { minItems: 1, maxItems: max } })

export const ProductIdText = text({
  max: 255,
  pattern: /^prod_[A-Za-z0-9_]+$/,
  rule: "must be a product's id: prod_ and letters, digits or underscores, at most 255 characters"
}).annotations({ examples: ["prod_Q1w2E3r4T5y6"] })
const PriceIdText = text({
  max: 255,
  pattern: /^price_[A-Za-z0-9_]+$/,
  rule: "must be a price's id: price_ and letters, digits or underscores, at most 255 characters"
}).annotations({ examples: ["price_Q1w2E3r4T5y6"] })

const Amount = Schema.Number.pipe(
  Schema.filter((amount) => Number.isSafeInteger(amount) && amount >= 0, {
    jsonSchema: { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
    arbitrary: () => (fc) => fc.maxSafeNat()
  })
).annotations(remark("in the smallest unit of the currency: 1500 is R$15.00, or ¥1500 if the currency has no cents"))

/** PostgreSQL accepts no NUL in text. */
const nul = "\\u0000"

const MetadataPairs = Schema.Record({
  key: text({
    min: 1,
    max: 40,
    pattern: new RegExp(`^[^\\s[\\]${controls}]+$`),
    rule: "must have a key of 1 to 40 characters, without spaces, [ and ]"
  }),
  value: text({
    min: 1,
    max: 500,
    pattern: new RegExp(`^[^${nul}]*$`),
    rule: "must be text of 1 to 500 characters, without the character U+0000"
  })
}).pipe(
  Schema.filter(
    (pairs) => {
      const count = Object.keys(pairs).length
      return count > 10 ? "must have at most 10 pairs" : count > 0 || `must not be empty: ${toLift}`
    },
    {
      description: "All pairs, 1 to 10, must be in the metadata of the origin object",
      jsonSchema: { minProperties: 1, maxProperties: 10 }
    }
  )
)

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

const filterFields = {
  currencies: optional(list(CurrencyCode, 10, "Lowercase ISO 4217 codes")),
  amountMin: optional(Amount).annotations({
    description: "Only principal amounts of at least this, in the smallest currency unit"
  }),
  amountMax: optional(Amount).annotations({
    description: "Only principal amounts up to this, in the smallest currency unit"
  }),
  products: optional(list(ProductIdText, 20, "Product ids")),
  prices: optional(list(PriceIdText, 20, "Price ids")),
  metadata: optional(MetadataPairs)
}

const description = "`{}` delivers all subscribed events"

export const Filters = Schema.Struct(filterFields).annotations({ identifier: "Filters", description })
export type Filters = typeof Filters.Type

const { $schema: _, ...inOnePiece } = JSONSchema.make(Schema.Struct(filterFields).annotations({ description }))

/** The filters in a request, as JSON Schema. `parseFilters` checks them, since their errors have their own codes. */
export const filtersJsonSchema: object = inOnePiece

/** Why filters are refused: keys that do not exist, or values with the wrong form, each under its dotted path. */
export interface FiltersRefused {
  readonly reason: "unknown" | "invalid"
  readonly reasons: Reasons
}

const filterNames = Object.keys(Filters.fields)
const known: ReadonlySet<string> = new Set(filterNames)

const unknownFilter = (key: string): readonly [field: string, reason: string] => [
  fieldName(["filters", key]),
  `is not a filter${suggestion(key, filterNames) || `; there are ${filterNames.join(", ")}`}`
]

const decode = ParseResult.decodeUnknownEither(Filters, { errors: "all", onExcessProperty: "error" })

const amountsCrossed: Reasons = new Map([
  ["filters.amountMin", "must not be greater than filters.amountMax"],
  ["filters.amountMax", "must not be less than filters.amountMin"]
])

/** Unknown keys are refused first, then each filter's form, then the order of the amounts. */
export const parseFilters = (input: Readonly<Record<string, unknown>>): Either.Either<Filters, FiltersRefused> => {
  const unknown = Object.keys(input).filter((key) => !known.has(key))
  if (unknown.length > 0) {
    return Either.left({
      reason: "unknown",
      reasons: new Map(unknown.slice(0, maxRefusedFields).map(unknownFilter))
    })
  }
  const decoded = decode(input)
  if (Either.isLeft(decoded)) {
    return Either.left({ reason: "invalid", reasons: boundedRefusals(decoded.left, { root: "filters" }) })
  }
  const { amountMax, amountMin } = decoded.right
  return amountMin !== undefined && amountMax !== undefined && amountMin > amountMax
    ? Either.left({ reason: "invalid", reasons: amountsCrossed })
    : Either.right(decoded.right)
}

/** The facts that filters read besides `data`; null for "not applicable" in the contract's table. */
export interface FilterSubjects {
  readonly priceIds: ReadonlyArray<string> | null
  readonly productIds: ReadonlyArray<string> | null
  readonly metadata: Readonly<Record<string, string>> | null
}

/** The fields that can be the principal amount; the first one present counts (contract 7.3). */
export const amountFields = [
  "amount",
  "amount_received",
  "amount_total",
  "amount_paid",
  "amount_due",
  "amount_refunded"
]

const principalAmount = (data: Readonly<Record<string, unknown>>): number | undefined =>
  amountFields.map((field) => data[field]).find((value) => typeof value === "number")

const oneOf = (wanted: ReadonlyArray<string> | undefined, present: ReadonlyArray<string> | null): boolean =>
  wanted === undefined || present?.some((id) => wanted.includes(id)) === true

const withinAmounts = ({ amountMax, amountMin }: Filters, data: Readonly<Record<string, unknown>>): boolean => {
  if (amountMin === undefined && amountMax === undefined) {
    return true
  }
  const amount = principalAmount(data)
  return amount !== undefined && amount >= (amountMin ?? -Infinity) && amount <= (amountMax ?? Infinity)
}

const ofCurrency = ({ currencies }: Filters, data: Readonly<Record<string, unknown>>): boolean =>
  currencies === undefined || currencies.some((currency) => currency === data["currency"])

const hasMetadata = ({ metadata }: Filters, present: FilterSubjects["metadata"]): boolean =>
  metadata === undefined ||
  (present !== null &&
    Object.entries(metadata).every(([key, value]) => Object.hasOwn(present, key) && present[key] === value))

/** An event without something that a filter reads does not pass (contract 7.4). */
export const passes = (
  filters: Filters,
  event: { readonly data: Readonly<Record<string, unknown>>; readonly subjects: FilterSubjects }
): boolean =>
  ofCurrency(filters, event.data) &&
  withinAmounts(filters, event.data) &&
  oneOf(filters.products, event.subjects.productIds) &&
  oneOf(filters.prices, event.subjects.priceIds) &&
  hasMetadata(filters, event.subjects.metadata)

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
