/**
 * How JSON Schemas are published (contract 14.2). Schemas of requests are closed, since the service refuses unknown
 * keys. Schemas of answers and events are open: a client generated from today's document keeps working when an answer
 * or an event gains a field. Pure.
 */
import { Predicate, Record } from "effect"

export interface Json {
  readonly [keyword: string]: unknown
}

/** Keywords whose keys are names and not keywords. */
const named: ReadonlySet<string> = new Set(["properties", "patternProperties", "$defs"])

/** Keywords that hold values and not schemas. */
const literal: ReadonlySet<string> = new Set(["enum", "const", "default", "example", "examples"])

/** Rebuilds a schema with a change to each schema in it, from the inside outwards. */
export const mapSchema = (schema: unknown, change: (schema: Json) => unknown): unknown => {
  if (Array.isArray(schema)) return schema.map((part) => mapSchema(part, change))
  if (!Predicate.isReadonlyRecord(schema)) return schema
  return change(
    Record.map(schema, (value, keyword) => {
      if (literal.has(keyword)) return value
      return named.has(keyword) && Predicate.isReadonlyRecord(value)
        ? Record.map(value, (part) => mapSchema(part, change))
        : mapSchema(value, change)
    })
  )
}

/** A schema joined with the only one in its `allOf`, if that says other things, apart from a description. */
const joined = (schema: Json, allOf: unknown): Json | undefined => {
  const [one, ...others] = Array.isArray(allOf) ? allOf : []
  return Predicate.isReadonlyRecord(one) &&
    others.length === 0 &&
    Object.keys(one).every((name) => name === "description" || !(name in schema))
    ? { ...one, ...schema }
    : undefined
}

/** In a class, characters are escaped that are syntax in JavaScript's `v` mode or in Rust. */
const portable = (pattern: string): string => {
  let inClass = false
  return pattern.replaceAll(/\\[\s\S]|\[\^?|[\](){}/|]|-(?=\])/g, (token) => {
    if (token.startsWith("\\")) return token
    const opens = token.startsWith("[")
    if (inClass && token !== "]") return `\\${token}`
    if (opens || token === "]") inClass = opens
    return token
  })
}

/**
 * The published form of a JSON Schema that the library generated: without the ids, titles and descriptions ("a string")
 * that it makes up; with a record as `additionalProperties`, and a description beside a reference, which JSON Schema
 * 2020-12 allows, instead of an `allOf` around it.
 *
 * @param options.open whether objects may have further keys: true for answers and events
 */
export const publishedSchema = (schema: unknown, { open }: { readonly open: boolean }): unknown =>
  mapSchema(schema, ({ $id: _, title: _title, allOf, description, patternProperties, ...rest }) => {
    const own = {
      ...rest,
      ...(Predicate.isReadonlyRecord(patternProperties) ? { additionalProperties: patternProperties[""] } : {}),
      ...(Predicate.isString(rest["pattern"]) ? { pattern: portable(rest["pattern"]) } : {}),
      ...(Predicate.isString(description) && !/^an? /.test(description) ? { description } : {})
    }
    if (own["additionalProperties"] === false && open) delete own["additionalProperties"]
    return allOf === undefined ? own : (joined(own, allOf) ?? { ...own, allOf })
  })
