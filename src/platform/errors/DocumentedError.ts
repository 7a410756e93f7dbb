import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import { type Cause, Data, Duration, Schema } from "effect"
import { boundedFields, boundedMessage, maxFieldLength, maxRefusedFields } from "../bounds/Refusals.ts"

/** The parts of a documented error: its class, its JSON form and its schema (contract 12.5). */

/**
 * The effect of a failure on the idempotency key of the request that it ended (contract 3.6):
 *
 * - `answer`: the operation began and this is its answer; a repeat gets it again.
 * - `refused`: nothing was done; the key is free for another try, with any parameters.
 * - `open`: the outcome is unknown; a repeat with the same parameters finds out.
 */
export type Settlement = "answer" | "refused" | "open"

export interface ErrorDetails {
  /** An English sentence for the integrator. Default: that of the class. */
  readonly message?: string
  /** Refused fields as dotted paths in the API's names, e.g. `line_items.0.price`. Default: none. */
  readonly fields?: ReadonlyArray<string>
  /** Sent as `Retry-After`, rounded up to whole seconds. */
  readonly retryAfter?: Duration.DurationInput
  /** Methods of the `Allow` header (405 only). */
  readonly allow?: ReadonlyArray<string>
  /** For operators: logged with server errors, never sent. */
  readonly cause?: unknown
  /** The effect on the idempotency key. Default: as documented for the class. */
  readonly settles?: Settlement
  /** The id of the failed request; set by the client. */
  readonly requestId?: string
}

interface Fields {
  readonly message: string
  readonly code: string
  readonly status: number
  readonly settles: Settlement
  readonly fields: ReadonlyArray<string>
  readonly retryAfter: Duration.Duration | null
  readonly allow: ReadonlyArray<string>
  readonly requestId: string
  readonly cause?: unknown
}

export interface Documented {
  readonly status: number
  /** As sent; a part in angle brackets stands in for the provider's own codes. Default: the tag in snake case. */
  readonly code?: string
  /** An English sentence for the integrator, unless the error is raised with another. */
  readonly message: string
  /** Sent as `Retry-After`, unless the error is raised with another. */
  readonly retryAfter?: Duration.DurationInput
  /** The conditions in which the error is raised, in Markdown. Default: the message. */
  readonly why?: string
  /** Advice for the integrator or the operator: sentences in Markdown, code in backquotes. */
  readonly remedy: string
}

export type ErrorDocumentation = Documented &
  Required<Pick<Documented, "code" | "why">> & { readonly settles: Settlement }

export interface DocumentedErrorClass<A extends ApiError = ApiError> {
  readonly documentation: ErrorDocumentation
  readonly tag: string
  new (details?: ErrorDetails & { readonly code?: string }): A
}

const ApiErrorTypeId: unique symbol = Symbol.for("connected-payments/ApiError")

/** Any documented error; the edge turns it into a response. */
export interface ApiError extends Fields {
  readonly _tag: string
  readonly [ApiErrorTypeId]: true
}

export const isApiError = (u: unknown): u is ApiError => typeof u === "object" && u !== null && ApiErrorTypeId in u

export interface DocumentedErrorBase<Tag extends string> {
  readonly documentation: ErrorDocumentation
  readonly tag: string
  new (
    details?: ErrorDetails & { readonly code?: string }
  ): Cause.YieldableError & Fields & { readonly _tag: Tag; readonly [ApiErrorTypeId]: true }
}

export const snakeCase = (tag: string): string => tag.replaceAll(/(?!^)[A-Z]/g, "_$&").toLowerCase()

export const documented = <const Tag extends string>(
  tag: Tag,
  settles: Settlement,
  facts: Documented
): DocumentedErrorBase<Tag> => {
  const documentation = { code: snakeCase(tag), why: facts.message, ...facts, settles }
  return class extends Data.TaggedError(tag)<Fields> {
    static readonly documentation: ErrorDocumentation = documentation
    static readonly tag: string = tag
    readonly [ApiErrorTypeId] = true as const

    constructor(details: ErrorDetails & { readonly code?: string } = {}) {
      const retryAfter = details.retryAfter ?? documentation.retryAfter
      super({
        message: details.message ?? documentation.message,
        code: details.code ?? documentation.code,
        status: documentation.status,
        settles: details.settles ?? documentation.settles,
        fields: details.fields ?? [],
        retryAfter: retryAfter === undefined ? null : Duration.decode(retryAfter),
        allow: details.allow ?? [],
        requestId: details.requestId ?? "",
        ...(details.cause === undefined ? {} : { cause: details.cause })
      })
    }
  }
}

export interface ErrorBody {
  readonly error: string
  readonly code: string
  readonly fields: ReadonlyArray<string>
  readonly requestId: string
}

/** The JSON form of an error, with the id of the request that failed; bounded, whatever the error holds. */
export const errorBody = (error: ApiError, requestId: string): ErrorBody => ({
  error: boundedMessage(error.message),
  code: error.code,
  fields: boundedFields(error.fields),
  requestId
})

export const retrySeconds = (wait: Duration.Duration): number => Math.max(1, Math.ceil(Duration.toSeconds(wait)))

const wireSchema = (documentation: ErrorDocumentation, identifier: string) =>
  Schema.Struct({
    error: Schema.String.annotations({ description: "English message", examples: [documentation.message] }),
    code: documentation.code.includes("<")
      ? Schema.String.pipe(Schema.pattern(/^provider_/)).annotations({ description: documentation.code })
      : Schema.Literal(documentation.code).annotations({
          description: "Decide by it; the error reference says what to do"
        }),
    // The bounds only help readers: a client accepts whatever a later version sends
    fields: Schema.Array(Schema.String).annotations({
      jsonSchema: {
        type: "array",
        description: `Refused fields as dotted paths, the first ${maxRefusedFields}; empty if none apply`,
        maxItems: maxRefusedFields,
        items: { type: "string", maxLength: maxFieldLength }
      }
    }),
    requestId: Schema.String.annotations({ description: "The request's id, also in the request-id header" })
  }).annotations({ identifier, description: documentation.message })

const schemas = new Map<DocumentedErrorClass, unknown>()

export const errorSchema = <A extends ApiError>(errorClass: DocumentedErrorClass<A>): Schema.Schema<A, ErrorBody> => {
  const known = schemas.get(errorClass)
  if (known !== undefined) {
    // The key is the class itself, so the value is that class's schema
    return known as Schema.Schema<A, ErrorBody>
  }
  const { documentation, tag } = errorClass
  const made: Schema.Schema<A, ErrorBody> = Schema.transform(
    wireSchema(documentation, tag),
    Schema.instanceOf(errorClass),
    {
      strict: true,
      decode: (body) =>
        new errorClass({ message: body.error, code: body.code, fields: body.fields, requestId: body.requestId }),
      encode: (error) => errorBody(error, error.requestId)
    }
  ).annotations(HttpApiSchema.annotations({ status: documentation.status }))
  schemas.set(errorClass, made)
  return made
}

export const errorSchemas = <Errors extends ReadonlyArray<ApiError>>(
  ...classes: { readonly [Index in keyof Errors]: DocumentedErrorClass<Errors[Index]> }
): Schema.Schema<Errors[number], ErrorBody> => {
  const all: ReadonlyArray<DocumentedErrorClass<Errors[number]>> = classes
  return Schema.Union(...all.map((errorClass) => errorSchema(errorClass)))
}
