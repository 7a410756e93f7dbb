/**
 * Schemas of the provider's snapshot events: the outer shape once, the object inside field by field. Reads are
 * defensive: the payload's shape follows the API version of the notification endpoint at the provider, not the one this
 * code was written for.
 */
import { Either, type ParseResult, Predicate, Schema } from "effect"
import { innermostIssues } from "../../platform/bounds/Refusals.ts"
import { maxUnixSeconds } from "../Envelope.ts"

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

/**
 * The outer shape of a snapshot event. `account` is `null` for events of the platform itself. A payload that identifies
 * itself as something else, such as a thin notification, is refused.
 */
export const ProviderEvent = Schema.Struct({
  id: ProviderName,
  object: Schema.optional(Schema.Literal("event")),
  type: ProviderName,
  created: Schema.Number.pipe(Schema.int(), Schema.between(0, maxUnixSeconds)),
  livemode: Schema.Boolean,
  account: Schema.optionalWith(Schema.NullOr(ProviderName), { default: () => null }),
  data: Schema.Struct({ object: ProviderObject })
}).annotations({ identifier: "ProviderEvent", description: "A snapshot event of the payment provider" })

/** See the schema of the same name. */
export type ProviderEvent = typeof ProviderEvent.Type

/** A malformed payload, with the paths of the fields that are missing or not as expected, without their values. */
export interface Malformed {
  readonly _tag: "Malformed"
  readonly reason: string
}

/**
 * `Malformed` for the fields at these paths. The paths come from a schema, so the reason is bounded and holds no
 * values.
 */
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
