/**
 * Filters of endpoints: which of the subscribed events are delivered (contract, Events, Filters). Pure. A filter looks
 * at an event's `data` and at what else is known of the provider's object; what it looks at is never delivered.
 */
import { Either, ParseResult, Schema } from "effect"

const list = (form: RegExp, max: number, description: string) =>
  Schema.Array(Schema.String.pipe(Schema.pattern(form), Schema.maxLength(255)))
    .pipe(Schema.minItems(1), Schema.maxItems(max))
    .annotations({ description })

const Amount = Schema.Int.pipe(Schema.nonNegative())

const MetadataPairs = Schema.Record({
  key: Schema.String.pipe(Schema.pattern(/^[^\s[\]\p{Cc}]{1,40}$/u)),
  value: Schema.String.pipe(Schema.minLength(1), Schema.maxLength(500), Schema.pattern(/^[^\p{Cs}\0]*$/u))
})
  .pipe(
    Schema.filter((pairs) => {
      const count = Object.keys(pairs).length
      return (count >= 1 && count <= 10) || "1 to 10 pairs"
    })
  )
  .annotations({ description: "All pairs must be in the metadata of the origin object" })

/** The six keys; `{}` delivers all subscribed events. */
export const Filters = Schema.Struct({
  currencies: Schema.optionalWith(list(/^[a-z]{3}$/, 10, "Lowercase ISO 4217 codes, up to 10"), { exact: true }),
  amountMin: Schema.optionalWith(Amount.annotations({ description: "Least principal amount" }), { exact: true }),
  amountMax: Schema.optionalWith(Amount.annotations({ description: "Greatest principal amount" }), { exact: true }),
  products: Schema.optionalWith(list(/^prod_[A-Za-z0-9_]+$/, 20, "Product ids, up to 20"), { exact: true }),
  prices: Schema.optionalWith(list(/^price_[A-Za-z0-9_]+$/, 20, "Price ids, up to 20"), { exact: true }),
  metadata: Schema.optionalWith(MetadataPairs, { exact: true })
}).annotations({ identifier: "Filters", description: "`{}` delivers all subscribed events" })
export type Filters = typeof Filters.Type

/** Why filters are refused: keys that do not exist, or values of the wrong form; `fields` as dotted paths. */
export interface FiltersRefused {
  readonly reason: "unknown" | "invalid"
  readonly fields: ReadonlyArray<string>
}

const known: ReadonlySet<string> = new Set(Object.keys(Filters.fields))

const decode = ParseResult.decodeUnknownEither(Filters, { errors: "all" })

/** Judges filters as a caller wrote them: unknown keys first, then the form of each, then the amounts' order. */
export const parseFilters = (input: Readonly<Record<string, unknown>>): Either.Either<Filters, FiltersRefused> => {
  const unknown = Object.keys(input).filter((key) => !known.has(key))
  if (unknown.length > 0) {
    return Either.left({ reason: "unknown", fields: unknown.map((key) => `filters.${key}`) })
  }
  const decoded = decode(input)
  if (Either.isLeft(decoded)) {
    const paths = ParseResult.ArrayFormatter.formatIssueSync(decoded.left).map(({ path }) =>
      ["filters", ...path.map(String)].join(".")
    )
    return Either.left({ reason: "invalid", fields: [...new Set(paths)] })
  }
  const { amountMax, amountMin } = decoded.right
  return amountMin !== undefined && amountMax !== undefined && amountMin > amountMax
    ? Either.left({ reason: "invalid", fields: ["filters.amountMin", "filters.amountMax"] })
    : Either.right(decoded.right)
}

/** What filters look at beside `data`; null where the contract's table says "not applicable". */
export interface FilterSubjects {
  readonly priceIds: ReadonlyArray<string> | null
  readonly productIds: ReadonlyArray<string> | null
  readonly metadata: Readonly<Record<string, string>> | null
}

/** The fields that can be the principal amount, the first one present counting (contract, Filters, rule 1). */
const amountFields = ["amount", "amount_received", "amount_total", "amount_paid", "amount_due", "amount_refunded"]

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

/** Whether an event passes an endpoint's filters. One that lacks what a filter looks at does not (rule 2). */
export const passes = (
  filters: Filters,
  event: { readonly data: Readonly<Record<string, unknown>>; readonly subjects: FilterSubjects }
): boolean =>
  ofCurrency(filters, event.data) &&
  withinAmounts(filters, event.data) &&
  oneOf(filters.products, event.subjects.productIds) &&
  oneOf(filters.prices, event.subjects.priceIds) &&
  hasMetadata(filters, event.subjects.metadata)
