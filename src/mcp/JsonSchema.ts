import { JSONSchema, Predicate, type Schema } from "effect"
import { publishedSchema } from "../bounds/PublishedSchema.ts"

/**
 * JSON Schema as clients of the tool server understand it: in one piece, since not all of them follow references; and
 * without what only Effect or JavaScript knows.
 */

/** What `tools/list` shows of an object. */
export interface ObjectSchema {
  readonly type: "object"
  readonly properties: Record<string, object>
  readonly required: Array<string>
  readonly [keyword: string]: unknown
}

/** Names of ours for times; everything else by its own definition. */
const times: Readonly<Record<string, object>> = {
  Date: { type: "string", format: "date-time" },
  DateFromString: { type: "string", format: "date-time" }
}

const isReference = (keyword: string): boolean => keyword === "$schema" || keyword === "$defs" || keyword === "$ref"

/** The same with every reference replaced by what it refers to. */
const inlined = (node: unknown, definitions: Readonly<Record<string, unknown>>): unknown => {
  if (Array.isArray(node)) {
    return node.map((item) => inlined(item, definitions))
  }
  if (!Predicate.isRecord(node)) {
    return node
  }
  const reference = node["$ref"]
  const name = Predicate.isString(reference) ? reference.slice("#/$defs/".length) : undefined
  const target = name === undefined ? {} : (times[name] ?? inlined(definitions[name], definitions))
  const own = Object.entries(node)
    .filter(([keyword]) => !isReference(keyword))
    .map(([keyword, value]) => [
      keyword,
      keyword === "properties" && Predicate.isRecord(value)
        ? Object.fromEntries(Object.entries(value).map(([key, part]) => [key, inlined(part, definitions)]))
        : inlined(value, definitions)
    ])
  return { ...(Predicate.isRecord(target) ? target : {}), ...Object.fromEntries(own) }
}

const isObjectSchema = (schema: unknown): schema is ObjectSchema =>
  Predicate.isRecord(schema) && schema["type"] === "object" && Predicate.isRecord(schema["properties"])

/**
 * The JSON Schema of what goes over the wire for a schema of an object; dies where it is none.
 *
 * @param options.open whether further keys may come: for answers, which grow without a new version (contract 14.2)
 */
export const objectSchema = <A, I>(schema: Schema.Schema<A, I>, options: { readonly open: boolean }): ObjectSchema => {
  const { $defs = {}, ...root } = JSONSchema.make(schema)
  const made = publishedSchema(inlined(root, { ...$defs }), options)
  if (!isObjectSchema(made)) {
    throw new TypeError("A tool takes and answers objects alone")
  }
  return made
}
