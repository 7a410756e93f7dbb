import type { HttpApiError, HttpServerRequest } from "@effect/platform"
import { Effect, Either, Option, ParseResult, Record, type Schema } from "effect"
import {
  boundedRefusals,
  maxRefusedFields,
  type Reasons,
  type RefusalNames,
  refusal
} from "../../platform/bounds/Refusals.ts"
import { InternalError, ValidationFailed } from "../../platform/errors/Errors.ts"
import { pathOf, queryTextOf } from "../../platform/kit/RequestPath.ts"
import { operations } from "../contract/Api.ts"
import { matcher, type Operation } from "../contract/Operations.ts"

/**
 * Collects every refused field of a request: the platform names only the first refused part, integrators get all at
 * once.
 */

export const operationsAt = matcher(operations)

/** A decoded part of a path; null if its escapes are invalid, which no schema accepts. */
export const decodePart = (part: string): string | null => {
  try {
    return decodeURIComponent(part)
  } catch {
    return null
  }
}

/** The reason for each refused field of one part of a request. */
const refusedBy = (
  schema: Option.Option<Schema.Schema<never, unknown>>,
  input: unknown,
  where: RefusalNames = {}
): Reasons =>
  Option.match(schema, {
    onNone: (): Reasons => new Map(),
    onSome: (schema) =>
      Either.match(ParseResult.decodeUnknownEither(schema, { errors: "all" })(input), {
        onLeft: (issue) => boundedRefusals(issue, where),
        onRight: (): Reasons => new Map()
      })
  })

const inPath = { where: "in the path" }
const inHeaders = { where: "in the headers" }
const inQuery = { where: "in the query", array: "given more than once" }

/** How many parameters a query may have: no operation takes more than ten. */
const maxQueryParameters = 100

const queryOf = (url: string): Record<string, string | Array<string>> => {
  // Without a prototype: a parameter could be confused with its members
  const query: Record<string, string | Array<string>> = Object.create(null)
  // With an extra question mark: the parser removes one, which may be part of the first parameter's name
  for (const [name, value] of new URLSearchParams(`?${queryTextOf(url)}`)) {
    const known = query[name]
    query[name] = known === undefined ? value : [known, value].flat()
  }
  return query
}

/** All refused fields of a request: the platform stops at the first of path, body, headers and query that fails. */
const refusedFields = Effect.fnUntraced(function* (
  operation: Operation,
  params: Record<string, string>,
  request: HttpServerRequest.HttpServerRequest
) {
  const { endpoint } = operation
  const payload = Option.isNone(endpoint.payloadSchema)
    ? new Map<string, string>()
    : yield* Effect.match(request.json, {
        onFailure: (): Reasons => new Map(),
        onSuccess: (json) => refusedBy(endpoint.payloadSchema, json)
      })
  return firstOfEach([
    refusedBy(endpoint.pathSchema, Record.map(params, decodePart), inPath),
    refusedBy(endpoint.headersSchema, request.headers, inHeaders),
    refusedBy(endpoint.urlParamsSchema, queryOf(request.url), inQuery),
    payload
  ])
})

/** Merges the reasons: a name refused in several parts of a request keeps its first reason. */
const firstOfEach = (parts: ReadonlyArray<Reasons>): Reasons => {
  const reasons = new Map<string, string>()
  for (const [field, reason] of parts.flatMap((part) => [...part])) {
    if (!reasons.has(field) && reasons.size < maxRefusedFields) reasons.set(field, reason)
  }
  return reasons
}

/** The operation that a request is for; HEAD counts as GET. */
const operationOf = (request: HttpServerRequest.HttpServerRequest) => {
  const method = request.method === "HEAD" ? "GET" : request.method
  return operationsAt(pathOf(request.url)).find(({ operation }) => operation.method === method)
}

/**
 * Refuses an object's path without its id, which the router takes for the list's: a client that has lost a product's id
 * requests `products/`.
 */
export const refuseEmptyId = (request: HttpServerRequest.HttpServerRequest): Effect.Effect<void, ValidationFailed> => {
  const path = pathOf(request.url)
  if (!path.endsWith("/") || operationsAt(path).length === 0) return Effect.void
  const [ofOne] = operationsAt(`${path}-`)
  const name = /:(\w+)$/.exec(ofOne?.operation.path ?? "")?.[1]
  if (ofOne === undefined || name === undefined) return Effect.void
  const params = Record.map({ ...ofOne.params, [name]: "" }, decodePart)
  return new ValidationFailed(refusal(refusedBy(ofOne.operation.endpoint.pathSchema, params, inPath)))
}

/**
 * Refuses query parameters that the router would hide from the operation's schema: `__proto__`, which it drops
 * silently, and too many to check one by one.
 */
export const refuseQuery = (request: HttpServerRequest.HttpServerRequest): Effect.Effect<void, ValidationFailed> => {
  const query = queryTextOf(request.url)
  if (query === "") return Effect.void
  if (query.split("&", maxQueryParameters + 1).length > maxQueryParameters) {
    return new ValidationFailed({ message: `The query has more than ${maxQueryParameters} parameters.` })
  }
  const parameters = queryOf(request.url)
  if (!Object.hasOwn(parameters, "__proto__")) return Effect.void
  const schema = Option.flatMapNullable(Option.fromNullable(operationOf(request)), ({ operation }) =>
    Option.getOrUndefined(operation.endpoint.urlParamsSchema)
  )
  return Option.isNone(schema) ? Effect.void : new ValidationFailed(refusal(refusedBy(schema, parameters, inQuery)))
}

/**
 * The error of a request that a schema refused. A *response* that its schema refuses arrives as the same error, and is
 * a bug.
 */
export const fromDecodeError = Effect.fnUntraced(function* (
  error: HttpApiError.HttpApiDecodeError,
  request: HttpServerRequest.HttpServerRequest
) {
  const found = operationOf(request)
  const reasons: Reasons =
    found === undefined ? new Map() : yield* refusedFields(found.operation, found.params, request)
  const emptyBody = error.issues.length > 0 && error.issues.every(({ path }) => path.length === 0)
  if (reasons.size > 0) return new ValidationFailed(refusal(reasons))
  return emptyBody
    ? new ValidationFailed({ message: "The request body is not what the operation accepts." })
    : new InternalError({ cause: error })
})
