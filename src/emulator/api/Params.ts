import { Effect, ParseResult, Schema } from "effect"
import { invalid, type ProviderError, refuse } from "../ProviderError.ts"
import type { WordsOf } from "../Records.ts"
import { type FormInput, parseForm } from "./Form.ts"

/** Annotation of a parameter's schema: the provider's error code for refused values. */
const refusalCode = Symbol.for("connected-payments/emulator/refusalCode")

/** Parses one leaf: returns the value, or the message of its refusal. */
type Read<A> = (raw: unknown) => { readonly value: A } | { readonly refused: string }

const leaf = <A>(target: Schema.Schema<A>, read: Read<A>, code?: string): Schema.Schema<A, unknown> => {
  const schema = Schema.transformOrFail(Schema.Unknown, target, {
    strict: true,
    decode: (raw, _, ast) => {
      const result = read(raw)
      return "value" in result
        ? ParseResult.succeed(result.value)
        : ParseResult.fail(new ParseResult.Type(ast, raw, result.refused))
    },
    encode: (value) => ParseResult.succeed(value)
  })
  return code === undefined ? schema : schema.annotations({ [refusalCode]: code })
}

export const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/** Parameters that are all optional. */
export const optionals = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.partialWith(Schema.Struct(fields), { exact: true })

const emptyMessage =
  "You passed an empty string. Empty values are an attempt to unset a parameter, which this one cannot be."

/** A text of 1 to `max` characters (default 5,000, the provider's bound). */
export const text = (max = 5_000): Schema.Schema<string, unknown> =>
  leaf(Schema.String, (raw) =>
    typeof raw !== "string"
      ? { refused: "Invalid string" }
      : raw.length > max
        ? { refused: `Invalid string: must be at most ${max} characters` }
        : { value: raw }
  ).pipe(
    Schema.compose(
      leaf(
        Schema.String,
        (raw) => (raw === "" ? { refused: emptyMessage } : { value: String(raw) }),
        "parameter_invalid_empty"
      )
    )
  )

/** A value that an empty string clears, which decodes to null. */
export const clearable = <A, I>(schema: Schema.Schema<A, I>) =>
  Schema.Union(
    leaf(Schema.Null, (raw) => (raw === "" ? { value: null } : { refused: "Invalid value" })),
    schema
  )

/** A text that matches the pattern; `what` names it in the message. */
export const matching = (pattern: RegExp, what: string, code?: string): Schema.Schema<string, unknown> =>
  leaf(
    Schema.String,
    (raw) => (typeof raw === "string" && pattern.test(raw) ? { value: raw } : { refused: `Invalid ${what}` }),
    code
  )

export const email = matching(/^[^@\s]+@[^@\s]+$/, "email address", "email_invalid")

/** An integer from `min` (default 0) to `max` (default the largest safe one). */
export const integer = (min = 0, max = Number.MAX_SAFE_INTEGER): Schema.Schema<number, unknown> =>
  leaf(
    Schema.Number,
    (raw) => {
      if (typeof raw !== "string" || !/^-?\d{1,16}$/.test(raw)) return { refused: `Invalid integer: ${shown(raw)}` }
      const value = Number(raw)
      if (value < min) return { refused: `This value must be greater than or equal to ${min}.` }
      return value > max ? { refused: `This value must be less than or equal to ${max}.` } : { value }
    },
    "parameter_invalid_integer"
  )

/** A non-negative decimal with at most 12 decimal places; kept as text, so that no digit is lost. */
export const decimal: Schema.Schema<string, unknown> = matching(/^\d{1,15}(?:\.\d{1,12})?$/, "decimal")

/** A number above zero, such as a length or a weight. */
export const positive: Schema.Schema<number, unknown> = leaf(Schema.Number, (raw) => {
  const value = typeof raw === "string" && /^\d{1,12}(?:\.\d{1,6})?$/.test(raw) ? Number(raw) : 0
  return value > 0 ? { value } : { refused: `Invalid number: ${shown(raw)}` }
})

export const percent: Schema.Schema<number, unknown> = leaf(Schema.Number, (raw) => {
  const value = typeof raw === "string" && /^\d{1,3}(?:\.\d{1,4})?$/.test(raw) ? Number(raw) : 0
  return value > 0 && value <= 100 ? { value } : { refused: `Invalid percentage: ${shown(raw)}` }
})

export const boolean: Schema.Schema<boolean, unknown> = leaf(Schema.Boolean, (raw) =>
  raw === "true" || raw === "false" ? { value: raw === "true" } : { refused: `Invalid boolean: ${shown(raw)}` }
)

const among = <Word extends string>(words: ReadonlyArray<string>): Schema.Schema<Word, unknown> => {
  const isKnown = (raw: unknown): raw is Word => typeof raw === "string" && words.includes(raw)
  return leaf(Schema.declare(isKnown), (raw) =>
    isKnown(raw) ? { value: raw } : { refused: `Invalid value: must be one of ${words.join(", ")}` }
  )
}

export const oneOf = <const Words extends readonly [string, ...Array<string>]>(...words: Words) =>
  among<Words[number]>(words)

export const oneOfWords = <const Text extends string>(text: Text) => among<WordsOf<Text>>(text.split(" "))

export const url: Schema.Schema<string, unknown> = leaf(
  Schema.String,
  (raw) =>
    typeof raw === "string" && raw.length <= 5_000 && URL.canParse(raw) && /^https?:\/\//i.test(raw)
      ? { value: raw }
      : { refused: "Not a valid URL" },
  "url_invalid"
)

/** A currency: accepted in any case, decoded to lower case. */
export const currency: Schema.Schema<string, unknown> = leaf(Schema.String, (raw) =>
  typeof raw === "string" && knownCurrencies.has(raw.toUpperCase())
    ? { value: raw.toLowerCase() }
    : { refused: `Invalid currency: ${shown(raw)}` }
)

const knownCurrencies: ReadonlySet<string> = new Set(Intl.supportedValuesOf("currency"))

/** A list of at most `max` items, whose indexes may have gaps. */
export const listOf = <A, I>(item: Schema.Schema<A, I>, max = 100) =>
  leaf(Schema.Array(Schema.Unknown), (raw) => {
    if (!Array.isArray(raw)) return { refused: "Invalid array" }
    const items = raw.filter(() => true)
    return items.length > max ? { refused: `Array has too many items: at most ${max}` } : { value: items }
  }).pipe(Schema.compose(Schema.Array(item), { strict: false }))

/** Values by the index of their item, counted from 0: `quantities[2]=5`. */
export const byIndex = <A, I>(item: Schema.Schema<A, I>) =>
  leaf(Schema.Record({ key: Schema.String, value: Schema.Unknown }), (raw) =>
    typeof raw === "object" && raw !== null && Object.keys(raw).every((key) => /^\d{1,3}$/.test(key))
      ? { value: Object.fromEntries(Object.entries(raw)) }
      : { refused: "Invalid object" }
  ).pipe(Schema.compose(Schema.Record({ key: Schema.String, value: item }), { strict: false }))

/** Texts of at most `max` characters, by key: `fields[name]=Ana`. */
export const byKey = (max: number): Schema.Schema<Readonly<Record<string, string>>, unknown> =>
  leaf(Schema.Record({ key: Schema.String, value: Schema.String }), (raw) => {
    // The form parser turns numeric keys into an array, whose entries keep the right keys
    const entries = typeof raw === "object" && raw !== null ? Object.entries(raw) : []
    const texts = entries.flatMap(([key, value]) =>
      typeof value === "string" && value.length <= max ? [[key, value] as const] : []
    )
    return texts.length === entries.length && entries.length <= 50
      ? { value: Object.fromEntries(texts) }
      : { refused: "Invalid object" }
  })

/** A metadata patch: values to set by key. An empty value removes its key, and `""` as the whole patch removes all. */
export type MetadataPatch = Readonly<Record<string, string>> | ""

const maximumKeys = 50
const tooManyKeys = `Metadata can have at most ${maximumKeys} keys`

export const metadata: Schema.Schema<MetadataPatch, unknown> = leaf(
  Schema.Union(Schema.Literal(""), Schema.Record({ key: Schema.String, value: Schema.String })),
  (raw) => {
    if (raw === "") return { value: "" }
    if (typeof raw !== "object" || raw === null) return { refused: "Invalid object" }
    const entries: Record<string, string> = {}
    // The form parser turns numeric keys into an array, whose entries keep the right keys
    for (const [key, value] of Object.entries(raw)) {
      if (typeof value !== "string" || value.length > 500)
        return { refused: `Metadata value of '${key}' must be a string of at most 500 characters` }
      if (key.length > 40) return { refused: `Metadata key '${key}' must be at most 40 characters` }
      entries[key] = value
    }
    return Object.keys(entries).length > maximumKeys ? { refused: tooManyKeys } : { value: entries }
  }
)

export const patchMetadata = (
  current: Readonly<Record<string, string>>,
  patch: MetadataPatch | undefined
): Record<string, string> =>
  patch === "" ? {} : Object.fromEntries(Object.entries({ ...current, ...patch }).filter(([, value]) => value !== ""))

/** Applies a patch to an object's metadata. Error: more than 50 keys (400). */
export const changedMetadata = (
  current: Readonly<Record<string, string>>,
  patch: MetadataPatch | undefined
): Effect.Effect<Record<string, string>, ProviderError> => {
  const changed = patchMetadata(current, patch)
  return Object.keys(changed).length > maximumKeys ? invalid("metadata", tooManyKeys) : Effect.succeed(changed)
}

/** A moment, or a range of moments, in Unix seconds: `created=...` or `created[gte]=...`. */
export const range = Schema.Union(
  integer(),
  Schema.Struct({
    gt: optional(integer()),
    gte: optional(integer()),
    lt: optional(integer()),
    lte: optional(integer())
  })
)

export const inRange = (moment: number, within: typeof range.Type | undefined): boolean =>
  within === undefined ||
  (typeof within === "number"
    ? moment === within
    : moment > (within.gt ?? -1) &&
      moment >= (within.gte ?? 0) &&
      moment < (within.lt ?? Number.POSITIVE_INFINITY) &&
      moment <= (within.lte ?? Number.POSITIVE_INFINITY))

const shown = (raw: unknown): string => (typeof raw === "string" ? raw.slice(0, 100) : "not a single value")

interface Found {
  readonly path: ReadonlyArray<PropertyKey>
  readonly reason: "missing" | "unknown" | "invalid"
  readonly message: string | undefined
  readonly code: string | undefined
}

/** The first refused parameter: the innermost issue, with the code of the nearest schema around it. */
const firstRefusal = (issue: ParseResult.ParseIssue, path: ReadonlyArray<PropertyKey>, code?: string): Found => {
  switch (issue._tag) {
    case "Pointer":
      return firstRefusal(issue.issue, [...path, ...(Array.isArray(issue.path) ? issue.path : [issue.path])], code)
    case "Composite": {
      // A union's last member is the most general one, and its message fits best
      const inner = Array.isArray(issue.issues)
        ? issue.ast._tag === "Union"
          ? issue.issues.at(-1)
          : issue.issues[0]
        : issue.issues
      return firstRefusal(inner, path, code)
    }
    case "Refinement":
    case "Transformation":
      return firstRefusal(issue.issue, path, codeOf(issue.ast.annotations) ?? code)
    case "Missing":
      return { path, reason: "missing", message: undefined, code: undefined }
    case "Unexpected":
      return { path, reason: "unknown", message: undefined, code: undefined }
    case "Type":
    case "Forbidden":
      return { path, reason: "invalid", message: issue.message, code: codeOf(issue.ast.annotations) ?? code }
  }
}

const codeOf = (annotations: Readonly<Record<symbol, unknown>>): string | undefined => {
  const code = annotations[refusalCode]
  return typeof code === "string" ? code : undefined
}

/** A path in the provider's notation: `line_items[0][price]`. */
const paramName = (path: ReadonlyArray<PropertyKey>): string =>
  path.map((part, index) => (index === 0 ? String(part) : `[${String(part)}]`)).join("")

const toError = ({ code, message, path, reason }: Found): ProviderError => {
  const param = paramName(path)
  switch (reason) {
    case "missing":
      return invalid(param, `Missing required param: ${param}.`, "parameter_missing")
    case "unknown":
      return invalid(param, `Received unknown parameter: ${param}`, "parameter_unknown")
    case "invalid":
      return refuse({ param, message: message ?? "Invalid object", ...(code === undefined ? {} : { code }) })
  }
}

/**
 * Decodes a request's parameters and refuses those unknown to the schema.
 *
 * Errors, as at the provider (all 400): `parameter_unknown`, `parameter_missing`, `parameter_invalid_integer`,
 * `parameter_invalid_empty`, `url_invalid`, or no code, each with `param`.
 */
export const decodeParams = <A, I>(schema: Schema.Schema<A, I>, input: FormInput): Effect.Effect<A, ProviderError> =>
  ParseResult.decodeUnknown(schema, { onExcessProperty: "error" })(input).pipe(
    Effect.mapError((issue) => toError(firstRefusal(issue, [])))
  )

/** Decodes the parameters in a form-encoded body or a query string. */
export const decodeForm = <A, I>(schema: Schema.Schema<A, I>, text: string): Effect.Effect<A, ProviderError> =>
  Effect.flatMap(parseForm(text), (input) => decodeParams(schema, input))
