import { HttpApi, type HttpApiEndpoint, type HttpApiGroup, type HttpMethod, OpenApi } from "@effect/platform"
import { Array as Arr, Context, Option, Predicate } from "effect"
import { publishedSchema } from "../bounds/PublishedSchema.ts"
import { sessionCookie, workspaceHeader } from "../identity/Authentication.ts"
import { type Permission, RequiredPermission } from "../identity/keys/Permissions.ts"
import { isApiPath } from "../kit/ApiPaths.ts"
import { resourceOf, resourcePage } from "./ProviderResources.ts"

/** The operations of an API as a list, for authentication, the documents and tests that cover all of them. */

/** One operation of the contract. */
export interface Operation {
  readonly group: string
  readonly name: string
  readonly method: string
  /** With its parameters as `:name`. */
  readonly path: string
  /** Undefined if no credential is needed. */
  readonly permission: Permission | undefined
  readonly endpoint: HttpApiEndpoint.HttpApiEndpoint<string, HttpMethod.HttpMethod>
}

/** All operations that an API declares. */
export const operationsOf = <Id extends string, Groups extends HttpApiGroup.HttpApiGroup.Any, E, R>(
  api: HttpApi.HttpApi<Id, Groups, E, R>
): ReadonlyArray<Operation> => {
  const operations: Array<Operation> = []
  HttpApi.reflect(api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, group, mergedAnnotations }) => {
      operations.push({
        group: group.identifier,
        name: endpoint.name,
        method: endpoint.method,
        path: endpoint.path,
        permission: Option.getOrUndefined(Context.getOption(mergedAnnotations, RequiredPermission)),
        endpoint
      })
    }
  })
  return operations
}

export const operationKey = (method: string, path: string): string => `${method} ${path}`

/**
 * Whether an operation takes a body: one with a schema, or bytes that its handler reads and its description declares.
 */
export const takesBody = ({ endpoint }: Operation): boolean =>
  Option.isSome(endpoint.payloadSchema) ||
  Option.exists(Context.getOption(endpoint.annotations, OpenApi.Override), (override) => "requestBody" in override)

interface Compiled {
  readonly operation: Operation
  readonly pattern: RegExp
  readonly names: ReadonlyArray<string>
}

/** How many parts a path has, not counting a slash at the end. */
const partsOf = (path: string): number => {
  let parts = 0
  for (let at = path.indexOf("/"); at !== -1 && at < path.length - 1; at = path.indexOf("/", at + 1)) {
    parts += 1
  }
  return parts
}

/**
 * Finds operations by a request's path, since the router does not report the methods that a path accepts. As in the
 * router, a parameter may be empty.
 */
export const matcher = (operations: ReadonlyArray<Operation>) => {
  const compiled = operations.map((operation): Compiled => {
    const names = [...operation.path.matchAll(/:(\w+)/g)].flatMap(([, name]) => (name === undefined ? [] : [name]))
    return { operation, names, pattern: new RegExp(`^${operation.path.replaceAll(/:\w+/g, "([^/]*)")}/?$`) }
  })
  // Runs for every request: most operations are ruled out by their number of parts
  const byLength = Arr.groupBy(compiled, ({ operation }) => String(partsOf(operation.path)))
  return (path: string): ReadonlyArray<{ readonly operation: Operation; readonly params: Record<string, string> }> =>
    (byLength[String(partsOf(path))] ?? []).flatMap(({ names, operation, pattern }) => {
      const match = pattern.exec(path)
      return match === null
        ? []
        : [{ operation, params: Object.fromEntries(names.map((name, index) => [name, match[index + 1] ?? ""])) }]
    })
}

/** The two credentials; if a request carries both, the key decides. */
const securitySchemes = {
  apiKey: {
    type: "apiKey",
    in: "header",
    name: "x-api-key",
    description: "An API key of the organization and of one environment; for servers only"
  },
  session: {
    type: "apiKey",
    in: "cookie",
    name: sessionCookie,
    description: `A signed-in person's session; changes also need a trusted Origin header. The header \`${workspaceHeader}\`, \`sandbox\` or \`production\`, names the environment of one request, in place of the selected workspace's`
  }
}

const responseHeaders = {
  "request-id": { description: "The request's id, also in error bodies", schema: { type: "string" } }
}

/** The headers of an answer that supports conditional requests. */
const taggedHeaders = {
  ...responseHeaders,
  etag: {
    description: "The answer's tag, for `If-None-Match`; absent from an answer of more than 256 KiB",
    schema: { type: "string" }
  }
}

/** The request header of a conditional GET. */
const ifNoneMatch = {
  name: "If-None-Match",
  in: "header",
  required: false,
  description: "The `ETag` of an earlier answer: if the answer is still the same, it is 304 without a body",
  schema: { type: "string", minLength: 1, maxLength: 8192 }
}

/** Whether an operation's answers have an ETag: GETs of the API that return JSON. */
const isTagged = ({ method, path }: Operation, responses: Record<string, unknown>): boolean =>
  method === "GET" && isApiPath(path) && at(responses, "200", "content", "application/json") !== undefined

const errorHeaders = {
  ...responseHeaders,
  link: {
    description: 'Where the error is documented: `</docs/errors#code>; rel="help"`',
    schema: { type: "string" }
  }
}

/**
 * Completes the OpenAPI document: adds the permission of each operation, the request id of every response and the ETag
 * of each GET, and removes the platform's own decode error, which the edge never returns. Schemas are closed for
 * requests and open for answers.
 */
export const documentOperations =
  (operations: ReadonlyArray<Operation>) =>
  (spec: Record<string, unknown>): Record<string, unknown> => {
    const described = structuredClone(spec)
    for (const declared of operations) {
      const { method, path, permission } = declared
      const operation = at(described, ...placeOf(method, path))
      if (operation === undefined) {
        continue
      }
      if (permission !== undefined) {
        operation["security"] = [{ apiKey: [] }, { session: [] }]
        operation["x-required-permission"] = permission
        operation["description"] = [operation["description"], `Needs the permission \`${permission}\`.`]
          .filter(Predicate.isString)
          .join(" ")
      }
      const responses = at(operation, "responses") ?? {}
      if (mentions(responses["400"], "HttpApiDecodeError")) {
        const documented = withoutSchema(responses["400"], "HttpApiDecodeError")
        if (documented === undefined) {
          delete responses["400"]
        } else {
          responses["400"] = documented
        }
      }
      for (const [status, response] of Object.entries(responses)) {
        if (isObject(response)) response["headers"] = Number(status) < 400 ? responseHeaders : errorHeaders
      }
      if (isTagged(declared, responses)) {
        Object.assign(at(responses, "200") ?? {}, { headers: taggedHeaders })
        responses["304"] = { description: "The answer with this tag is still the same", headers: taggedHeaders }
        const parameters: unknown = operation["parameters"]
        operation["parameters"] = [...(Array.isArray(parameters) ? parameters : []), structuredClone(ifNoneMatch)]
      }
    }
    const components = at(described, "components") ?? {}
    components["securitySchemes"] = securitySchemes
    const schemas = at(components, "schemas")
    for (const unused of ["HttpApiDecodeError", "Issue", "PropertyKey"]) {
      delete schemas?.[unused]
    }
    describeResources(operations, described)
    publishSchemas(operations, described)
    return described
  }

/** Names the resource of each provider object in answers, in place. */
const describeResources = (operations: ReadonlyArray<Operation>, document: Record<string, unknown>): void => {
  const schemas = at(document, "components", "schemas") ?? {}
  for (const { group, method, name: operation, path } of operations) {
    const answered = at(document, ...placeOf(method, path), "responses", "200", "content", "application/json")
    const resource = resourceOf(group, operation)
    if (answered === undefined || resource === undefined) continue
    const { document: schema, name } = resource
    const isPage = mentions(answered, "ProviderPage")
    if (!isPage && !mentions(answered, "ProviderObject")) continue
    schemas[name] = schema
    if (isPage) schemas[`${name}Page`] = resourcePage(resource)
    answered["schema"] = { $ref: reference(isPage ? `${name}Page` : name) }
  }
}

/** The names of the components that a part of the document refers to, directly or indirectly. */
const referredFrom = (part: unknown, schemas: Readonly<Record<string, unknown>>): ReadonlySet<string> => {
  const namesIn = (value: unknown) =>
    [...JSON.stringify(value ?? null).matchAll(/"#\/components\/schemas\/([^"]+)"/g)].flatMap(([, name]) => name ?? [])
  const found = new Set(namesIn(part))
  for (const name of found) {
    for (const further of namesIn(schemas[name])) found.add(further)
  }
  return found
}

/** Puts each schema in its published form, in place. A component that is both accepted and sent stays closed. */
const publishSchemas = (operations: ReadonlyArray<Operation>, document: Record<string, unknown>): void => {
  const schemas = at(document, "components", "schemas") ?? {}
  const described = operations
    .map(({ method, path }) => at(document, ...placeOf(method, path)))
    .filter(Predicate.isNotUndefined)
  const taken = referredFrom(
    described.map((operation) => [operation["parameters"], operation["requestBody"]]),
    schemas
  )
  for (const [name, schema] of Object.entries(schemas)) {
    schemas[name] = publishedSchema(schema, { open: !taken.has(name) })
  }
  for (const operation of described) {
    for (const body of Object.values(at(operation, "requestBody", "content") ?? {}).filter(isObject)) {
      body["schema"] = publishedSchema(body["schema"], { open: false })
    }
    const parameters: unknown = operation["parameters"]
    for (const parameter of Array.isArray(parameters) ? parameters.filter(isObject) : []) {
      parameter["schema"] = publishedSchema(parameter["schema"], { open: false })
    }
    for (const response of Object.values(at(operation, "responses") ?? {}).filter(isObject)) {
      for (const body of Object.values(at(response, "content") ?? {}).filter(isObject)) {
        body["schema"] = publishedSchema(body["schema"], { open: true })
      }
    }
  }
}

/** The place in the document that describes an operation. */
const placeOf = (method: string, path: string): ReadonlyArray<string> => [
  "paths",
  path.replaceAll(/:(\w+)/g, "{$1}"),
  method.toLowerCase()
]

const isObject = (u: unknown): u is Record<string, unknown> => typeof u === "object" && u !== null && !Array.isArray(u)

const at = (root: Record<string, unknown>, ...keys: ReadonlyArray<string>): Record<string, unknown> | undefined => {
  let current: unknown = root
  for (const key of keys) {
    current = isObject(current) ? current[key] : undefined
  }
  return isObject(current) ? current : undefined
}

const reference = (schema: string): string => `#/components/schemas/${schema}`

const mentions = (value: unknown, schema: string): boolean =>
  JSON.stringify(value ?? null).includes(JSON.stringify(reference(schema)))

/** A response without one of its possible bodies; undefined if it has no other. */
const withoutSchema = (response: unknown, schema: string): Record<string, unknown> | undefined => {
  const content = isObject(response) ? at(response, "content", "application/json") : undefined
  const bodies = at(content ?? {}, "schema")?.["anyOf"]
  const others = Array.isArray(bodies)
    ? bodies.filter((body: unknown) => !isObject(body) || body["$ref"] !== reference(schema))
    : []
  const [first] = others
  return isObject(response) && first !== undefined
    ? {
        ...response,
        description: "Refused",
        content: { "application/json": { schema: others.length === 1 ? first : { anyOf: others } } }
      }
    : undefined
}
