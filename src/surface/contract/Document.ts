import { Predicate, Record } from "effect"
import { type Credential, sessionCookie, workspaceHeader } from "../../identity/Authentication.ts"
import { type Json, mapSchema, publishedSchema } from "../../platform/bounds/PublishedSchema.ts"
import { isApiPath } from "../../platform/kit/Request.ts"
import type { Operation } from "./Operations.ts"
import { definitions, resourceOf } from "./ProviderResources.ts"

/**
 * What Effect's generator can't carry is completed here, from the declarations alone; no rule knows a field. It takes schemas
 * and texts of groups and endpoints, but neither an operation's credentials and permission, nor headers of answers, nor the
 * codes that an error's classes share; it lists its own error of decoding, which answers in the form of all errors; it leaves
 * a field undescribed if its schema is a component; and it knows nothing of an answer that is passed through unchecked, as the
 * provider's objects are (`ProviderResources`).
 */

interface MutableJson {
  [key: string]: unknown
}

export const recordIn = (root: unknown, ...keys: ReadonlyArray<string>): MutableJson => {
  let current: unknown = root
  for (const key of keys) current = Predicate.isRecord(current) ? current[key] : undefined
  return Predicate.isRecord(current) ? current : {}
}

export const describedIn = (document: unknown, { method, path }: Operation): MutableJson =>
  recordIn(document, "paths", path.replaceAll(/:(\w+)/g, "{$1}"), method.toLowerCase())

const prefix = "#/components/schemas/"

const referredFrom = (part: unknown, schemas: Json): ReadonlySet<string> => {
  const namesIn = (value: unknown) =>
    [...JSON.stringify(value ?? null).matchAll(/"#\/components\/schemas\/([^"]+)"/g)].flatMap(([, name]) => name ?? [])
  const found = new Set(namesIn(part))
  for (const name of found) {
    for (const further of namesIn(schemas[name])) found.add(further)
  }
  return found
}

const securitySchemes: { readonly [Name in Credential]: object } = {
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
    description: `A signed-in person's session; changes also need a trusted Origin header. The header \`${workspaceHeader}\`, \`sandbox\` or \`production\`, names the environment of one request, instead of the selected workspace's`
  }
}

const responseHeaders = {
  "request-id": { description: "The request's id, also in error bodies", schema: { type: "string" } }
}

const taggedHeaders = {
  ...responseHeaders,
  etag: {
    description: "The answer's tag, for `If-None-Match`; absent from an answer of more than 256 KiB",
    schema: { type: "string" }
  }
}

const errorHeaders = {
  ...responseHeaders,
  link: {
    description: 'Where the error is documented: `</docs/errors#code>; rel="help"`',
    schema: { type: "string" }
  }
}

const ifNoneMatch = {
  name: "If-None-Match",
  in: "header",
  required: false,
  description: "The `ETag` of an earlier answer: if the answer is still the same, it is 304 without a body",
  schema: { type: "string", minLength: 1, maxLength: 8192 }
}

const needs = ({ credentials, permission }: Operation): string => {
  if (permission !== undefined) return `Needs the permission \`${permission}\`.`
  if (credentials.length === 0) return "Needs no credential."
  return `Needs ${credentials.includes("session") ? "a signed-in person's session" : "an API key"}, and no permission.`
}

const removeDecodeError = (responses: MutableJson): void => {
  const refused = recordIn(responses, "400")
  const content = recordIn(refused, "content", "application/json")
  const { anyOf } = recordIn(content["schema"])
  if (Array.isArray(anyOf)) {
    const others = anyOf.filter((body: unknown) => recordIn(body)["$ref"] !== `${prefix}HttpApiDecodeError`)
    content["schema"] = others.length === 1 ? others[0] : { anyOf: others }
  } else {
    delete responses["400"]
  }
}

/** The codes of an error response, instead of the library's name for the first of its classes. */
const codesOf = (response: unknown, schemas: unknown): string => {
  const schema = recordIn(response, "content", "application/json", "schema")
  const codes = (Array.isArray(schema["anyOf"]) ? schema["anyOf"] : [schema]).map((part: unknown) => {
    const { $ref } = recordIn(part)
    const { description, enum: values } = recordIn(schemas, String($ref).slice(prefix.length), "properties", "code")
    return `\`${Array.isArray(values) ? values.join("`, `") : description}\``
  })
  return codes.join(", ")
}

/** Adds what an operation needs, and the headers of its answers and the codes of its errors, in place. */
const describeOperation = (operation: Operation, described: MutableJson, schemas: unknown): void => {
  const { credentials, group, method, path, permission } = operation
  described["tags"] = [tagOf(group)]
  described["security"] = credentials.map((credential) => ({ [credential]: [] }))
  if (permission !== undefined) described["x-required-permission"] = permission
  if (permission !== undefined || described["description"] === undefined) {
    described["description"] = [described["description"], needs(operation)].filter(Predicate.isString).join(" ")
  }
  const responses = recordIn(described, "responses")
  removeDecodeError(responses)
  for (const [status, response] of Object.entries(responses)) {
    const fails = Number(status) >= 400
    recordIn(response)["headers"] = fails ? errorHeaders : responseHeaders
    if (fails) recordIn(response)["description"] = codesOf(response, schemas)
  }
  const answer = recordIn(responses, "200")
  if (method === "GET" && isApiPath(path) && "application/json" in recordIn(answer, "content")) {
    answer["headers"] = taggedHeaders
    responses["304"] = { description: "The answer with this tag is still the same", headers: taggedHeaders }
    const { parameters } = described
    described["parameters"] = [...(Array.isArray(parameters) ? parameters : []), { ...ifNoneMatch }]
  }
}

const describeResource = (operation: Operation, described: MutableJson): void => {
  const answered = recordIn(described, "responses", "200", "content", "application/json")
  const resource = resourceOf(operation.group, operation.name)
  const { $ref } = recordIn(answered["schema"])
  if (resource === undefined) return
  if ($ref === `${prefix}ProviderObject`) answered["schema"] = { $ref: `${prefix}${resource.name}` }
  if ($ref === `${prefix}ProviderPage`) answered["schema"] = { $ref: `${prefix}${resource.name}Page` }
}

/** Whether a component is the library's name for a primitive, such as `Int`, which says nothing more. */
const isPrimitive = ({ description, enum: values, type }: Json): boolean =>
  type !== undefined && type !== "object" && description === undefined && values === undefined

/** The description of a schema's values, or else that of its component, or of its only alternative to null. */
const descriptionOf = (schema: unknown, schemas: Json): unknown => {
  const { $ref, anyOf, description } = recordIn(schema)
  if (description !== undefined) return description
  if (Predicate.isString($ref)) return descriptionOf(schemas[$ref.slice(prefix.length)], schemas)
  const [one, ...others] = Array.isArray(anyOf) ? anyOf.filter((part) => recordIn(part)["type"] !== "null") : []
  return others.length > 0 || one === undefined ? undefined : descriptionOf(one, schemas)
}

/** A field or parameter, with the description of its schema if it has none of its own. */
const describedBy = (field: Json, schema: unknown, schemas: Json): Json => {
  const description = field["description"] ?? descriptionOf(schema, schemas)
  return description === undefined ? field : { ...field, description }
}

/** A whole number that may be greater than 32 bits hold, such as an amount or a time, says so to generators. */
const sized = (part: Json): Json =>
  [part["type"]].flat().includes("integer") && !(Number(part["maximum"] ?? Number.NaN) < 2 ** 31)
    ? { ...part, format: "int64" }
    : part

/** A group's name as people write it, for the tag: `checkoutSessions` is "Checkout sessions". */
export const tagOf = (group: unknown): string => {
  const words = String(group).replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`.replace(/^Api\b/, "API").replace(/\burls$/, "URLs")
}

/**
 * Puts primitives in the places that refer to them, describes every field, and makes an `enum` of one value a `const`, of
 * which generators make no enumeration.
 */
const resolved = (schema: unknown, schemas: Json): unknown =>
  mapSchema(schema, ({ $ref, enum: values, ...others }) => {
    const value = Array.isArray(values) && values.length === 1 ? { const: values[0] } : { enum: values }
    const rest = values === undefined ? others : { ...others, ...value }
    const target = Predicate.isString($ref) ? recordIn(schemas, $ref.slice(prefix.length)) : {}
    const part = sized($ref === undefined ? rest : isPrimitive(target) ? { ...target, ...rest } : { $ref, ...rest })
    const { properties } = others
    return Predicate.isReadonlyRecord(properties)
      ? { ...part, properties: Record.map(properties, (field) => describedBy(recordIn(field), field, schemas)) }
      : part
  })

/** Puts each schema in its published form, in place. A component that is both accepted and sent stays closed. */
const publish = (document: MutableJson, operations: ReadonlyArray<MutableJson>): void => {
  const schemas = recordIn(document, "components", "schemas")
  const taken = referredFrom(
    operations.map(({ parameters, requestBody }) => [parameters, requestBody]),
    schemas
  )
  for (const [name, schema] of Object.entries(schemas)) {
    schemas[name] = publishedSchema(schema, { open: !taken.has(name) })
  }
  for (const [name, schema] of Object.entries(schemas)) schemas[name] = resolved(schema, schemas)
  const inPlace = (holder: MutableJson, open: boolean) => {
    holder["schema"] = resolved(publishedSchema(holder["schema"], { open }), schemas)
  }
  for (const operation of operations) {
    for (const body of Object.values(recordIn(operation, "requestBody", "content"))) inPlace(recordIn(body), false)
    for (const response of Object.values(recordIn(operation, "responses"))) {
      for (const body of Object.values(recordIn(response, "content"))) inPlace(recordIn(body), true)
    }
    const { parameters } = operation
    operation["parameters"] = (Array.isArray(parameters) ? parameters : []).map((parameter: unknown) => {
      const holder = recordIn(parameter)
      inPlace(holder, false)
      return describedBy(holder, holder["schema"], schemas)
    })
  }
  removeUnused(document)
}

const removeUnused = (document: MutableJson): void => {
  const schemas = recordIn(document, "components", "schemas")
  const used = referredFrom([document["paths"], document["webhooks"]], schemas)
  for (const name of Object.keys(schemas)) if (!used.has(name)) delete schemas[name]
}

/** The document without some operations, named by their ids, and without what it has for these alone. Changes it in place. */
export const supportedPart = (document: MutableJson, unsupported: ReadonlySet<string>): MutableJson => {
  const paths = recordIn(document, "paths")
  const left = new Set<unknown>(["Webhooks"])
  for (const [path, methods] of Object.entries(paths)) {
    const operations = recordIn(methods)
    for (const [method, operation] of Object.entries(operations)) {
      const { operationId, tags } = recordIn(operation)
      if (unsupported.has(String(operationId))) delete operations[method]
      else for (const tag of [tags].flat()) left.add(tag)
    }
    if (Object.keys(operations).length === 0) delete paths[path]
  }
  const { tags } = document
  document["tags"] = (Array.isArray(tags) ? tags : []).filter((tag: unknown) => left.has(recordIn(tag)["name"]))
  removeUnused(document)
  return document
}

export const completed = (operations: ReadonlyArray<Operation>, spec: Json): MutableJson => {
  const document: MutableJson = structuredClone(spec)
  const schemas = recordIn(document, "components", "schemas")
  Object.assign(schemas, structuredClone(definitions))
  for (const operation of operations) {
    const described = describedIn(document, operation)
    describeOperation(operation, described, schemas)
    describeResource(operation, described)
  }
  publish(
    document,
    operations.map((operation) => describedIn(document, operation))
  )
  const { tags } = document
  for (const tag of Array.isArray(tags) ? tags : []) recordIn(tag)["name"] = tagOf(recordIn(tag)["name"])
  recordIn(document, "components")["securitySchemes"] = securitySchemes
  const info = recordIn(document, "info")
  info["license"] = { name: "MIT", identifier: "MIT" }
  info["contact"] = { name: "The operator of this installation" }
  document["servers"] = [{ url: "/", description: "The installation that serves this document" }]
  return document
}
