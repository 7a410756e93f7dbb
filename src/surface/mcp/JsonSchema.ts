import { JSONSchema, Predicate, type Schema } from "effect"
import { publishedSchema } from "../../platform/bounds/PublishedSchema.ts"
import { definitions } from "../contract/ProviderResources.ts"

/**
 * JSON Schema for clients of the tool server: without references, which not all of them resolve, and without keywords
 * that only Effect or JavaScript knows.
 */

export interface ObjectSchema {
  readonly type: "object"
  readonly properties: Record<string, object>
  readonly required: Array<string>
  readonly [keyword: string]: unknown
}

/** Definitions for times, by name; all others come from the schema. */
const times: Readonly<Record<string, object>> = {
  Date: { type: "string", format: "date-time" },
  DateFromString: { type: "string", format: "date-time" }
}

const isReference = (keyword: string): boolean => keyword === "$schema" || keyword === "$defs" || keyword === "$ref"

const inlined = (node: unknown, known: Readonly<Record<string, unknown>>): unknown => {
  if (Array.isArray(node)) {
    return node.map((item) => inlined(item, known))
  }
  if (!Predicate.isRecord(node)) {
    return node
  }
  const reference = node["$ref"]
  const name = Predicate.isString(reference) ? (reference.split("/").at(-1) ?? "") : undefined
  const target = name === undefined ? {} : (times[name] ?? inlined(known[name], known))
  const own = Object.entries(node)
    .filter(([keyword]) => !isReference(keyword))
    .map(([keyword, value]) => [
      keyword,
      keyword === "properties" && Predicate.isRecord(value)
        ? Object.fromEntries(Object.entries(value).map(([key, part]) => [key, inlined(part, known)]))
        : inlined(value, known)
    ])
  return { ...(Predicate.isRecord(target) ? target : {}), ...Object.fromEntries(own) }
}

/** Keywords that function calling of some models refuses, and with them every tool of a list. The call itself checks them. */
const refusedByModels: ReadonlySet<string> = new Set(["allOf", "propertyNames", "uniqueItems"])

/** A schema of arguments in the subset of JSON Schema that every model's function calling takes. */
const forModels = (node: unknown): unknown => {
  if (Array.isArray(node)) return node.map(forModels)
  if (!Predicate.isRecord(node)) return node
  const kept = Object.entries(node).flatMap(([keyword, value]): ReadonlyArray<[string, unknown]> => {
    if (keyword === "properties" && Predicate.isRecord(value)) {
      return [[keyword, Object.fromEntries(Object.entries(value).map(([name, part]) => [name, forModels(part)]))]]
    }
    if (refusedByModels.has(keyword)) return []
    // Only texts may be listed
    if (keyword === "enum" && Array.isArray(value) && !value.every(Predicate.isString)) {
      return [["type", typeof value[0]]]
    }
    return [[keyword, forModels(value)]]
  })
  return Object.fromEntries(kept)
}

const isObjectSchema = (schema: unknown): schema is ObjectSchema =>
  Predicate.isRecord(schema) && schema["type"] === "object" && Predicate.isRecord(schema["properties"])

/**
 * The JSON Schema of an object schema's encoded side; throws if it is not an object.
 *
 * @param options.open whether further keys are allowed: for answers, which may grow without a new version
 * (contract 14.2)
 */
export const objectSchema = <A, I>(schema: Schema.Schema<A, I>, options: { readonly open: boolean }): ObjectSchema => {
  const { $defs = {}, ...root } = JSONSchema.make(schema)
  const published = publishedSchema(inlined(root, { ...definitions, ...$defs }), options)
  const made = options.open ? published : forModels(published)
  if (!isObjectSchema(made)) {
    throw new TypeError("A tool accepts and returns only objects")
  }
  return made
}
