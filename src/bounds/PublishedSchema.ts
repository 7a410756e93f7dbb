/**
 * How JSON Schemas are published (contract 14.2). Schemas of requests are closed, since the service refuses unknown
 * keys. Schemas of answers and events are open: a client generated from today's document keeps working when an answer
 * or an event gains a field. Pure.
 */
import { Predicate } from "effect"

/** Keywords whose keys are names and not keywords. */
const named: ReadonlySet<string> = new Set(["properties", "patternProperties", "$defs"])

/** Keywords that hold values and not schemas. */
const literal: ReadonlySet<string> = new Set(["enum", "const", "default", "example", "examples"])

/** Ids, titles and descriptions that the library generates: they repeat the keywords beside them, or its own names. */
const isMadeUp = (keyword: string, value: unknown): boolean =>
  keyword === "$id" ||
  (keyword === "title" && Predicate.isString(value)) ||
  (keyword === "description" && Predicate.isString(value) && /^an? /.test(value))

/** A record, which other tools recognize as `additionalProperties`, not as a pattern that matches everything. */
const isAnyName = (value: unknown): value is { readonly "": unknown } =>
  Predicate.isRecord(value) && Object.keys(value).join() === "" && "" in value

/**
 * The published form of a JSON Schema that the library generated.
 *
 * @param options.open whether objects may have further keys: true for answers and events
 */
export const publishedSchema = (schema: unknown, options: { readonly open: boolean }): unknown => {
  if (Array.isArray(schema)) return schema.map((part) => publishedSchema(part, options))
  if (!Predicate.isRecord(schema)) return schema
  return Object.fromEntries(
    Object.entries(schema).flatMap(([keyword, value]): ReadonlyArray<readonly [string, unknown]> => {
      if (isMadeUp(keyword, value)) return []
      if (literal.has(keyword)) return [[keyword, value]]
      if (keyword === "additionalProperties" && value === false && options.open) return []
      if (keyword === "patternProperties" && isAnyName(value)) {
        return [["additionalProperties", publishedSchema(value[""], options)]]
      }
      if (named.has(keyword) && Predicate.isRecord(value)) {
        return [
          [
            keyword,
            Object.fromEntries(Object.entries(value).map(([name, part]) => [name, publishedSchema(part, options)]))
          ]
        ]
      }
      return [[keyword, publishedSchema(value, options)]]
    })
  )
}
