import { Context, Schema } from "effect"
import { OrganizationId } from "./Ids.ts"

/** What the declarations of all API groups share. Holds no server code. */

/** The id of the request being served; also in the `request-id` response header and in every error body. */
export class RequestId extends Context.Reference<RequestId>()("connected-payments/RequestId", {
  defaultValue: () => ""
}) {}

/** Headers that the response to the request being served will carry, whatever it turns out to be; added to in place. */
export class ResponseHeaders extends Context.Tag("connected-payments/kit/ResponseHeaders")<
  ResponseHeaders,
  Record<string, string>
>() {}

/** A new request's id. */
export const newRequestId = (): string => `req_${crypto.randomUUID().replaceAll("-", "")}`

/** How many a page of our own lists holds where the caller does not say. */
export const defaultPageSize = 10

/**
 * A schema that refuses unknown keys and reports every refused field, not the first alone (contract, Errors:
 * `validation_failed`).
 */
export const strict = <A, I, R>(schema: Schema.Schema<A, I, R>): Schema.Schema<A, I, R> =>
  schema.annotations({ parseOptions: { errors: "all", onExcessProperty: "error" } })

/** A key that may be absent; where present it has a value, never `undefined`. */
export const optional = <A, I, R>(schema: Schema.Schema<A, I, R>) => Schema.optionalWith(schema, { exact: true })

/** The path of operations on the organization itself. */
export const OrganizationPath = Schema.Struct({ organizationId: OrganizationId })

/** An object id of the provider's, as the contract bounds it in paths and queries. */
export const ProviderId = Schema.String.pipe(
  Schema.pattern(/^[a-zA-Z0-9_]+$/),
  Schema.minLength(3),
  Schema.maxLength(255)
).annotations({ description: "The provider's object id", examples: ["prod_Q1w2E3r4T5y6"] })

/** The path of operations on one object of the provider's. */
export const ProviderObjectPath = Schema.Struct({ organizationId: OrganizationId, id: ProviderId })

/**
 * `Idempotency-Key`: 8 to 255 visible ASCII characters. The same key with the same operation and parameters repeats
 * safely.
 */
export const IdempotencyKey = Schema.String.pipe(
  Schema.pattern(/^[\x21-\x7e]+$/),
  Schema.minLength(8),
  Schema.maxLength(255)
).annotations({ description: "Makes repeats safe: 8 to 255 characters, a new one per intended effect" })

export const IdempotencyHeaders = Schema.Struct({ "idempotency-key": IdempotencyKey })

/** A whole number in a query, in decimal digits alone: no signs, exponents, blanks or other bases. */
const integerFromQuery = (minimum: number, maximum: number, description: string) =>
  Schema.compose(
    Schema.String.pipe(Schema.pattern(/^\d{1,15}$/)).annotations({
      description,
      jsonSchema: { type: "integer", minimum, maximum }
    }),
    Schema.NumberFromString.pipe(Schema.between(minimum, maximum))
  )

/** `limit` of lists: 1 to 100, default 10. */
const Limit = integerFromQuery(1, 100, "How many to answer: 1 to 100, default 10")

/** The cursor page that every list takes. */
export const pageFields = {
  limit: optional(Limit),
  starting_after: optional(ProviderId.annotations({ description: "The last id of the page before" }))
}

/** `true` or `false` in a query. */
export const BooleanFromQuery = Schema.BooleanFromString.annotations({ description: "true or false" })

/** Unix seconds in a query, within the contract's bounds. */
export const UnixSecondsFromQuery = integerFromQuery(0, 4_102_444_800, "Unix seconds, inclusive")

/** Text of ours that people read: no control characters, which PostgreSQL (NUL) and logs do not take. */
export const PrintableText = (max: number) =>
  Schema.Trim.pipe(Schema.pattern(/^[^\p{Cc}\p{Cs}]*$/u), Schema.minLength(1), Schema.maxLength(max))

/**
 * An operation without query parameters: every one is unknown and refused by its name. A struct without fields alone
 * would take anything.
 */
export const NoQuery = strict(
  Schema.Struct({}).pipe(
    Schema.filter((query) => Object.keys(query).map((key) => ({ path: [key], message: "is unknown" })))
  )
)
