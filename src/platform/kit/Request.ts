import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import { Context, Option, Schema, SchemaAST } from "effect"
import { remark, rule } from "../bounds/Rules.ts"
import { controls, text } from "../bounds/Text.ts"
import { OrganizationId } from "./Ids.ts"

/** Schemas and references that all API groups share. No server code. */

/** The id of the current request; also in the `request-id` response header and in every error body. */
export class RequestId extends Context.Reference<RequestId>()("connected-payments/kit/RequestId", {
  defaultValue: () => ""
}) {}

/** Headers that the response to the current request will carry, success or failure; mutated in place. */
export class ResponseHeaders extends Context.Tag("connected-payments/kit/ResponseHeaders")<
  ResponseHeaders,
  Record<string, string>
>() {}

/** Whether the process is stopping: it still answers, but is not ready. Always false if no server runs. */
export class Stopping extends Context.Reference<Stopping>()("connected-payments/kit/Stopping", {
  defaultValue: (): { begun: boolean } => ({ begun: false })
}) {}

export const newRequestId = (): string => `req_${crypto.randomUUID().replaceAll("-", "")}`

export const defaultPageSize = 10

/** Means that many or more: counting further would take longer than a request may. */
export const mostCounted = 10_000

export const shownDeliveries = 100

/** A page of a list, from up to `limit + 1` rows: the extra row sets `has_more`. */
export const pageOf = <A>(rows: ReadonlyArray<A>, limit: number) => ({
  data: rows.slice(0, limit),
  has_more: rows.length > limit
})

/** Adds annotations to a schema that keeps its name in the documents: further annotations would remove it. */
const annotated = <A, I, R>(schema: Schema.Schema<A, I, R>, annotations: object): Schema.Schema<A, I, R> =>
  schema.annotations({
    ...annotations,
    ...Option.match(SchemaAST.getIdentifierAnnotation(schema.ast), {
      onNone: () => ({}),
      onSome: (identifier) => ({ identifier })
    })
  })

/** A schema that refuses unknown keys and reports every refused field, not only the first (contract 3.2). */
export const strict = <A, I, R>(schema: Schema.Schema<A, I, R>) =>
  annotated(schema, { parseOptions: { errors: "all", onExcessProperty: "error" } })

export const withStatus = <A, I, R>(status: number, schema: Schema.Schema<A, I, R>) =>
  annotated(schema, HttpApiSchema.annotations({ status }))

/** A field with its meaning in the documents, unless its schema says enough. A schema with a name keeps it. */
export const described = <S extends Schema.Schema.All>(schema: S, description: string) =>
  Schema.propertySignature(schema).annotations({ description })

export const optional = <A, I, R>(schema: Schema.Schema<A, I, R>, description?: string) =>
  Schema.optionalWith(schema, { exact: true }).annotations(description === undefined ? {} : { description })

export const hasMore = "Whether there are further items; the next page starts after the last item of this one"

export const listOf = <A, I, R>(identifier: string, item: Schema.Schema<A, I, R>) =>
  Schema.Struct({
    data: described(Schema.Array(item), "The items of this page"),
    has_more: described(Schema.Boolean, hasMore)
  }).annotations({ identifier })

export const CreatedAt = described(Schema.Date, "When it was created: ISO 8601 in UTC, with milliseconds")

export const ExpiresAt = described(Schema.Date, "When it expires, in ISO 8601")

/** An array of `min` (default 0) to `max` items of literals, each once. */
export const uniqueArray = <A extends string, I extends string>(
  item: Schema.Schema<A, I>,
  { max, min = 0 }: { readonly min?: number; readonly max: number }
) =>
  Schema.Array(item).pipe(
    Schema.maxItems(max),
    Schema.filter((items) => items.length >= min, { jsonSchema: { minItems: min } }),
    Schema.filter(
      (items) => {
        // A literal of the contract, so it is safe to show
        const repeated = items.find((item, index) => items.indexOf(item) !== index)
        return repeated === undefined || `must have each item once; ${repeated} appears more than once`
      },
      { jsonSchema: { uniqueItems: true } }
    )
  )

export const OrganizationPath = Schema.Struct({ organizationId: OrganizationId })

/** A provider object id, as the contract bounds it in paths and queries. */
export const ProviderId = text({
  min: 3,
  max: 255,
  pattern: /^[a-zA-Z0-9_]+$/,
  rule: "must be a provider object id: 3 to 255 letters, digits and underscores"
}).annotations({ description: "The provider's id of the object, with a prefix for its kind" })

// Spaces at either end would not survive a header
const keyForm = new RegExp(`^[^\\s${controls}](?:[^${controls}]*[^\\s${controls}])?$`)
const keyRule = "must be 8 to 255 printable characters, without spaces at either end"
const keyDescription = "Makes repeats safe: 8 to 255 printable characters, a new one per intended effect"

/**
 * An idempotency key: 8 to 255 printable characters as text, with spaces allowed inside. The same key with the same
 * operation and parameters repeats safely.
 */
export const IdempotencyKey = text({ min: 8, max: 255, pattern: keyForm, rule: keyRule }).annotations({
  description: keyDescription
})

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/**
 * A header's text. HTTP carries bytes, which arrive here as one character each. Most clients send UTF-8, some Latin-1:
 * bytes that are not valid UTF-8 are read as Latin-1.
 */
const fromHeader = (value: string): string => {
  try {
    return utf8.decode(Uint8Array.from(value, (byte) => byte.charCodeAt(0)))
  } catch {
    return value
  }
}

const toHeader = (text: string): string => String.fromCharCode(...new TextEncoder().encode(text))

const IdempotencyKeyHeader = Schema.transform(
  Schema.String.annotations({
    jsonSchema: { type: "string", description: keyDescription, minLength: 8, maxLength: 255, pattern: keyForm.source }
  }),
  IdempotencyKey,
  { strict: true, decode: fromHeader, encode: toHeader }
).annotations(rule(keyRule))

/** The header of financial mutations, and of operations that can be repeated only with a key. */
export const IdempotencyHeaders = Schema.Struct({ "idempotency-key": IdempotencyKeyHeader })

/** The header of other changes: with a key, a repeat is safe; none is required. */
export const OptionalIdempotencyHeaders = Schema.Struct({ "idempotency-key": optional(IdempotencyKeyHeader) })

/** A whole number in a query, in decimal digits only: no signs, exponents, spaces or other bases. */
const integerFromQuery = (minimum: number, maximum: number, description: string, unit = "") =>
  Schema.compose(
    text({
      min: 1,
      max: 15,
      pattern: /^\d+$/,
      rule: `must be a whole number from ${minimum} to ${maximum}${unit}, in digits only`
    }).annotations({ jsonSchema: { type: "integer", minimum, maximum, description } }),
    Schema.NumberFromString.pipe(
      Schema.int(),
      Schema.between(minimum, maximum, { description, ...(unit === "" ? {} : remark(unit.trim())) })
    )
  )

export const DaysFromQuery = integerFromQuery(1, 90, "How many UTC days, today included: 1 to 90, default 30")

const Limit = integerFromQuery(1, 100, "How many items to return: 1 to 100, default 10")

export const pageFields = {
  limit: optional(Limit),
  starting_after: optional(ProviderId, "The last id of the previous page")
}

export const BooleanFromQuery = Schema.BooleanFromString.annotations({ description: "true or false" })

/** Unix seconds in a query, within the contract's bounds. */
export const UnixSecondsFromQuery = integerFromQuery(0, 4_102_444_800, "Unix seconds, inclusive", " of Unix seconds")

/** Query fields of lists that can be filtered by creation time, both inclusive. */
export const createdFields = {
  created_gte: optional(UnixSecondsFromQuery, "Only objects created at or after this time, in Unix seconds"),
  created_lte: optional(UnixSecondsFromQuery, "Only objects created at or before this time, in Unix seconds")
}

/**
 * An object without fields: every field is unknown, and refused by name. A plain struct without fields would accept
 * anything.
 *
 * @param message what the error says of each field: "is unknown: …"
 */
export const noFields = (message: string) =>
  strict(Schema.Struct({}).pipe(Schema.filter((given) => Object.keys(given).map((key) => ({ path: [key], message })))))

export const NoQuery = noFields("is unknown: this operation takes no query parameters")

/** `If-None-Match` is a list of tags, including weak ones, or `*`. */
export const hasEntityTag = (ifNoneMatch: string | undefined, tag: string): boolean =>
  (ifNoneMatch ?? "").split(",").some((part) => ["*", tag, `W/${tag}`].includes(part.trim()))

/** The path and the query of a request's target, in any of its forms, as the router reads them. Pure. */

/** Where a path ends and the query begins. */
const endOfPath = /[?;#]/

const origin = /^https?:\/\/.*?\//

/** A target without scheme and host, and where its path ends. */
const read = (url: string): readonly [target: string, end: number] => {
  const target = url.startsWith("/") ? url : url.replace(origin, "/")
  const end = target.search(endOfPath)
  return [target, end === -1 ? target.length : end]
}

/** Decoded, except for escaped separators and percent signs; undefined if that fails. */
const decodedPathOf = (url: string): string | undefined => {
  const [target, end] = read(url)
  const path = target.slice(0, end)
  if (!path.includes("%")) return path
  try {
    return decodeURI(path.replaceAll("%25", "%2525"))
  } catch {
    return undefined
  }
}

/** `decodedPathOf`, or the path as it was sent if its escapes can't be decoded. */
export const pathOf = (url: string): string => {
  const decoded = decodedPathOf(url)
  if (decoded !== undefined) return decoded
  const [target, end] = read(url)
  return target.slice(0, end)
}

export const queryTextOf = (url: string): string => {
  const [target, end] = read(url)
  return target.slice(end + 1)
}

export const isEventStream = (target: string): boolean => /\/event-stream\/?$/.test(pathOf(target))

/** The paths of the API, which take a key or a session. Not those of the tool server and the service's own pages. */
const apiPath = /^\/(?:v2|identity)\//

export const isApiPath = (path: string): boolean => apiPath.test(path)
