import { JSONSchema, Predicate, type Schema } from "effect"

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

/** Titles and ids are the library's own; of unknown values they are all that there is. */
const omitted: ReadonlySet<string> = new Set(["$schema", "$defs", "$ref", "$id", "title"])

/** Unicode classes are JavaScript's own; a description that the library makes up says what the keywords beside it say. */
const isTelling = (keyword: string, value: unknown): boolean => {
  switch (keyword) {
    case "pattern":
      return !String(value).includes("\\p{")
    case "description":
      return !/^(a string|an array|an integer|a number)\b/.test(String(value))
    default:
      return !omitted.has(keyword)
  }
}

const inlined = (node: unknown, definitions: Readonly<Record<string, unknown>>, open: boolean): unknown => {
  if (Array.isArray(node)) {
    return node.map((item) => inlined(item, definitions, open))
  }
  if (!Predicate.isRecord(node)) {
    return node
  }
  const reference = node["$ref"]
  const name = Predicate.isString(reference) ? reference.slice("#/$defs/".length) : undefined
  const target = name === undefined ? {} : (times[name] ?? inlined(definitions[name], definitions, open))
  const own = Object.entries(node)
    .filter(([keyword, value]) => isTelling(keyword, value))
    .filter(([keyword, value]) => !(open && keyword === "additionalProperties" && value === false))
    .map(([keyword, value]) => [
      keyword,
      keyword === "properties" && Predicate.isRecord(value)
        ? Object.fromEntries(Object.entries(value).map(([key, part]) => [key, inlined(part, definitions, open)]))
        : inlined(value, definitions, open)
    ])
  return { ...(Predicate.isRecord(target) ? target : {}), ...Object.fromEntries(own) }
}

const isObjectSchema = (schema: unknown): schema is ObjectSchema =>
  Predicate.isRecord(schema) && schema["type"] === "object" && Predicate.isRecord(schema["properties"])

/**
 * The JSON Schema of what goes over the wire for a schema of an object; dies where it is none.
 *
 * @param options.open whether further keys may come: for answers, which grow without a new version (contract, Versioning)
 */
export const objectSchema = <A, I>(schema: Schema.Schema<A, I>, options: { readonly open: boolean }): ObjectSchema => {
  const { $defs = {}, ...root } = JSONSchema.make(schema)
  const made = inlined(root, { ...$defs }, options.open)
  if (!isObjectSchema(made)) {
    throw new TypeError("A tool takes and answers objects alone")
  }
  return made
}
