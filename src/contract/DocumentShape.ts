/**
 * The final pass over the OpenAPI document, for generators of clients: a name for every shape, a description for every
 * field, no artifacts of the library. All rules work on the document alone, so a new operation needs no change here.
 * Pure.
 */
import { Option, Predicate, Schema, SchemaAST } from "effect"
import { describedField } from "./FieldDescriptions.ts"
import type { Operation } from "./Operations.ts"

type Json = Record<string, unknown>

const isObject = (value: unknown): value is Json => Predicate.isRecord(value) && !Array.isArray(value)

/** The object at a place in a document; an empty one if there is none. */
export const recordIn = (root: unknown, ...keys: ReadonlyArray<string>): Json => {
  let current: unknown = root
  for (const key of keys) current = isObject(current) ? current[key] : undefined
  return isObject(current) ? current : {}
}

const prefix = "#/components/schemas/"

/** `line_items` and `lineItems` are both `LineItems`. */
const pascal = (name: string): string =>
  name
    .split(/[^A-Za-z0-9]+/)
    .map((part) => part.slice(0, 1).toUpperCase() + part.slice(1))
    .join("")

/** Keywords that hold values and not schemas. */
const literal: ReadonlySet<string> = new Set(["enum", "const", "default", "example", "examples", "required"])

/** Rebuilds a schema, its parts first. */
const mapSchema = (schema: unknown, change: (schema: Json) => unknown): unknown => {
  if (Array.isArray(schema)) return schema.map((part) => mapSchema(part, change))
  if (!isObject(schema)) return schema
  const parts = Object.entries(schema).map(([keyword, value]): readonly [string, unknown] => {
    if (literal.has(keyword)) return [keyword, value]
    if (keyword === "properties" && isObject(value)) {
      return [keyword, Object.fromEntries(Object.entries(value).map(([name, part]) => [name, mapSchema(part, change)]))]
    }
    return [keyword, mapSchema(value, change)]
  })
  return change(Object.fromEntries(parts))
}

/** A library name for a primitive, such as `Int`, which adds nothing to the schema. */
const isLibrarys = (name: string, schema: unknown): boolean =>
  name in Schema && isObject(schema) && schema["description"] === undefined && schema["properties"] === undefined

/** Turns an `enum` of one value into `const`: generators would make an enumeration of one. */
const withConstant = (schema: Json): Json => {
  const { enum: values, ...rest } = schema
  return Array.isArray(values) && values.length === 1 ? { ...rest, const: values[0] } : schema
}

/** An object or null as two alternatives, so that the object can have a name. */
const withAlternatives = (schema: Json): Json => {
  const { description, type, ...rest } = schema
  return Array.isArray(type) && type.length === 2 && type.includes("object") && type.includes("null")
    ? { ...(description === undefined ? {} : { description }), anyOf: [{ type: "object", ...rest }, { type: "null" }] }
    : schema
}

/** Changes every schema outside the components (bodies, answers and parameters), in place. */
const mapPlaces = (document: Json, change: (schema: unknown) => unknown): void => {
  const operations = [...Object.values(recordIn(document, "paths")), ...Object.values(recordIn(document, "webhooks"))]
    .flatMap((methods) => Object.values(recordIn(methods)))
    .filter(isObject)
  const holders = operations.flatMap((operation) => [
    ...Object.values(recordIn(operation, "requestBody", "content")),
    ...Object.values(recordIn(operation, "responses")).flatMap((answer) => Object.values(recordIn(answer, "content"))),
    ...(Array.isArray(operation["parameters"]) ? operation["parameters"] : [])
  ])
  for (const holder of holders.filter(isObject)) holder["schema"] = change(holder["schema"])
}

const mapAll = (document: Json, change: (schema: Json) => unknown): void => {
  const schemas = recordIn(document, "components", "schemas")
  for (const [name, schema] of Object.entries(schemas)) schemas[name] = mapSchema(schema, change)
  mapPlaces(document, (schema) => mapSchema(schema, change))
}

const identifierOf = (ast: SchemaAST.AST): string | undefined => {
  const found = Option.getOrUndefined(SchemaAST.getJSONIdentifier(ast))
  if (found !== undefined) return found
  if (SchemaAST.isRefinement(ast) || SchemaAST.isTransformation(ast)) return identifierOf(ast.from)
  return undefined
}

/** Moves the bodies and answers of operations into components: under their schema's identifier, or the operation's. */
const nameBodies = (operations: ReadonlyArray<Operation>, document: Json): void => {
  const schemas = recordIn(document, "components", "schemas")
  const name = (holder: Json, names: ReadonlyArray<string | undefined>) => {
    const { schema } = holder
    if (!isObject(schema) || schema["type"] !== "object") return
    const content = JSON.stringify(schema)
    const same = Object.keys(schemas).find((candidate) => JSON.stringify(schemas[candidate]) === content)
    const free = same ?? names.filter(Predicate.isNotUndefined).find((candidate) => schemas[candidate] === undefined)
    if (free === undefined) return
    schemas[free] = schema
    holder["schema"] = { $ref: `${prefix}${free}` }
  }
  for (const { endpoint, group, method, name: operation, path } of operations) {
    const described = recordIn(document, "paths", path.replaceAll(/:(\w+)/g, "{$1}"), method.toLowerCase())
    const own = `${pascal(group)}${pascal(operation)}`
    const payload = Option.map(endpoint.payloadSchema, ({ ast }) => identifierOf(ast))
    name(recordIn(described, "requestBody", "content", "application/json"), [
      Option.getOrUndefined(payload),
      `${own}Request`
    ])
    for (const [status, answer] of Object.entries(recordIn(described, "responses"))) {
      if (Number(status) >= 300) continue
      name(recordIn(answer, "content", "application/json"), [
        identifierOf(endpoint.successSchema.ast),
        // Generators for Go need the operation's name followed by `Response` for a type of their own
        `${own}Result`
      ])
    }
  }
}

/** Whether generators need a name for a schema: an object, or an enumeration. */
const wantsName = (schema: Json): boolean => schema["type"] === "object" || Array.isArray(schema["enum"])

interface Nested {
  readonly owner: string
  readonly field: string
  readonly schema: Json
  readonly replace: (reference: Json) => void
}

/** The shapes without a name in the fields of a component, the innermost first. */
const nestedIn = (owner: string, schema: unknown, field?: string): ReadonlyArray<Nested> => {
  if (!isObject(schema)) return []
  const found: Array<Nested> = []
  const visit = (holder: Json | Array<unknown>, key: string | number, name: string) => {
    const value: unknown = Reflect.get(holder, key)
    if (!isObject(value)) return
    found.push(...nestedIn(owner, value, name))
    if (name !== "" && wantsName(value)) {
      found.push({ owner, field: name, schema: value, replace: (reference) => Reflect.set(holder, key, reference) })
    }
  }
  for (const [name, part] of Object.entries(recordIn(schema, "properties"))) {
    if (isObject(part)) visit(recordIn(schema, "properties"), name, field === undefined ? name : `${field}_${name}`)
  }
  for (const keyword of ["anyOf", "oneOf"]) {
    const parts: unknown = schema[keyword]
    if (!Array.isArray(parts)) continue
    const shapes = parts.filter((part) => isObject(part) && wantsName(part))
    // Several unnamed shapes can't all take the field's name
    for (const [index] of parts.entries()) visit(parts, index, shapes.length === 1 ? (field ?? "") : "")
  }
  if (isObject(schema["items"])) visit(schema, "items", field === undefined ? "" : `${field}_item`)
  return found
}

/** The component that already lists exactly these enumeration values. */
const enumerationIn = (schemas: Json, values: unknown): string | undefined =>
  Object.keys(schemas).find((name) => {
    const listed = recordIn(schemas, name)["enum"]
    return Array.isArray(values) && JSON.stringify(listed) === JSON.stringify(values)
  })

/**
 * Candidate names of a shape that several components share: the field's, after the component whose name begins the
 * others', if there is one.
 */
const sharedNames = (owners: ReadonlySet<string>, field: string): ReadonlyArray<string> => {
  const first = [...owners].find((owner) => [...owners].every((other) => other.startsWith(owner)))
  const name = pascal(field)
  return first === undefined ? [name, `${name}Input`] : [`${first}${name}`]
}

const lastPart = (field: string): string => field.replace(/_item$/, "").replace(/^.*_(?=[a-z]+[A-Z])/, "")

/**
 * Moves nested shapes into named components: named after the field if several components have the same shape there,
 * otherwise after the component and the field.
 */
const nameNested = (document: Json): void => {
  const schemas = recordIn(document, "components", "schemas")
  const shapeOf = ({ schema }: Nested) => {
    const { description, ...rest } = schema
    return { description, rest, key: JSON.stringify(rest) }
  }
  // From the inside outwards: the name of an inner shape is part of the outer one
  for (let more = true; more; ) {
    const nested = Object.entries(schemas).flatMap(([owner, schema]) => nestedIn(owner, schema))
    const innermost = nested.filter(({ schema }) => nestedIn("", schema, "inner").length === 0)
    const owners = new Map<string, Set<string>>()
    for (const one of innermost) {
      const key = `${lastPart(one.field)} ${shapeOf(one).key}`
      owners.set(key, (owners.get(key) ?? new Set()).add(one.owner))
    }
    const sharers = (one: Nested) => owners.get(`${lastPart(one.field)} ${shapeOf(one).key}`)?.size ?? 0
    // The shape that most components have gets the plain name
    for (const one of innermost.toSorted((a, b) => sharers(b) - sharers(a))) {
      const { description, key, rest } = shapeOf(one)
      const sharedBy = owners.get(`${lastPart(one.field)} ${key}`) ?? new Set<string>()
      const known = enumerationIn(schemas, rest["enum"])
      const own = `${one.owner}${pascal(one.field)}`
      const free = [...(sharedBy.size > 1 ? sharedNames(sharedBy, lastPart(one.field)) : []), own, `${own}Value`].find(
        (candidate) =>
          schemas[candidate] === undefined ||
          (candidate !== one.owner && JSON.stringify(schemas[candidate]) === JSON.stringify(rest))
      )
      const name = known ?? free
      if (name === undefined) throw new Error(`No name is free for ${own}`)
      schemas[name] ??= rest
      one.replace({ $ref: `${prefix}${name}`, ...(description === undefined ? {} : { description }) })
    }
    more = innermost.length > 0
  }
}

/** Describes the fields and parameters that have no description of their own. */
const describeFields = (document: Json): void => {
  const schemas = recordIn(document, "components", "schemas")
  for (const [name, schema] of Object.entries(schemas)) {
    schemas[name] = mapSchema(schema, (part) => {
      if (!isObject(part["properties"])) return part
      const properties = Object.entries(part["properties"]).map(([field, value]) => {
        const said = isObject(value) && value["description"] === undefined ? describedField(name, field) : undefined
        return [field, said === undefined ? value : { ...recordIn(value), description: said }] as const
      })
      return { ...part, properties: Object.fromEntries(properties) }
    })
  }
  for (const methods of Object.values(recordIn(document, "paths"))) {
    for (const operation of Object.values(recordIn(methods))) {
      const parameters: unknown = recordIn(operation)["parameters"]
      for (const parameter of Array.isArray(parameters) ? parameters.filter(isObject) : []) {
        const said = describedField("", String(parameter["name"]))
        if (parameter["description"] === undefined && said !== undefined) parameter["description"] = said
      }
    }
  }
}

/** The credential that an operation without a permission needs. */
const credentialOf = (security: unknown): string => {
  const names = Array.isArray(security) ? security.flatMap((one) => Object.keys(recordIn(one))) : []
  if (names.includes("session")) return "Needs a signed-in person's session, and no permission."
  return names.includes("apiKey") ? "Needs an API key, and no permission." : "Needs no credential."
}

const describeOperations = (document: Json): void => {
  for (const methods of Object.values(recordIn(document, "paths"))) {
    for (const operation of Object.values(recordIn(methods)).filter(isObject)) {
      operation["description"] ??= credentialOf(operation["security"])
    }
  }
}

const namesIn = (value: unknown): ReadonlyArray<string> =>
  [...JSON.stringify(value ?? null).matchAll(/"#\/components\/schemas\/([^"]+)"/g)].flatMap(([, name]) => name ?? [])

/** Removes the components that nothing refers to. */
const removeUnused = (document: Json): void => {
  const schemas = recordIn(document, "components", "schemas")
  const used = new Set(namesIn([document["paths"], document["webhooks"]]))
  for (const name of used) for (const further of namesIn(schemas[name])) used.add(further)
  for (const name of Object.keys(schemas)) if (!used.has(name)) delete schemas[name]
}

/** The document in its published form. */
export const shapeDocument =
  (operations: ReadonlyArray<Operation>) =>
  (spec: Json): Json => {
    const document = structuredClone(spec)
    const schemas = recordIn(document, "components", "schemas")
    mapAll(document, (schema) => {
      const { $ref } = schema
      const name = Predicate.isString($ref) ? $ref.slice(prefix.length) : ""
      if (!isLibrarys(name, schemas[name])) return withAlternatives(withConstant(schema))
      const { $ref: _, ...beside } = schema
      return { ...recordIn(schemas, name), ...beside }
    })
    nameBodies(operations, document)
    removeUnused(document)
    nameNested(document)
    describeFields(document)
    describeOperations(document)
    const info = recordIn(document, "info")
    info["license"] = { name: "MIT", identifier: "MIT" }
    info["contact"] = { name: "The operator of this installation" }
    document["servers"] = [{ url: "/", description: "The installation that serves this document" }]
    return document
  }
