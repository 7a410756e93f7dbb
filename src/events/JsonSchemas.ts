/**
 * The published JSON Schemas of events, for consumers of any language: one for each type's envelope with its `data`,
 * derived from the schemas that the service's own events are checked against. Pure.
 */
import { JSONSchema, Predicate } from "effect"
import { publishedSchema } from "../platform/bounds/PublishedSchema.ts"
import { EventType, envelopeByType, eventTypes } from "./Catalog.ts"

export interface JsonSchema {
  readonly [keyword: string]: unknown
}

/** The path at the service's public URL where a type's schema is served; also the schema's `$id`. */
export const eventSchemaPath = (type: EventType) => `/schemas/events/${type}.json` as const

/** The path of the schema of all event types; also its `$id`. */
export const anyEventSchemaPath = "/schemas/events.json"

const dialect = "https://json-schema.org/draft/2020-12/schema"

const schemaOf = (input: JSONSchema.JsonSchema7): JsonSchema => {
  const schema = publishedSchema(input, { open: true })
  return Predicate.isRecord(schema) ? schema : {}
}

const standalone = (type: EventType, description: string): JsonSchema => {
  const definitions: Record<string, JSONSchema.JsonSchema7> = {}
  const envelope = JSONSchema.fromAST(envelopeByType[type].ast, {
    definitions,
    target: "jsonSchema2020-12",
    topLevelReferenceStrategy: "skip"
  })
  return {
    $schema: dialect,
    $id: eventSchemaPath(type),
    title: type,
    ...schemaOf(envelope),
    description,
    $defs: Object.fromEntries(Object.entries(definitions).map(([name, definition]) => [name, schemaOf(definition)]))
  }
}

/**
 * The schema of each type's envelope, version 1 (contract 6.1): the fields that are sent, including the synthetic
 * event's `test`. It has no references to other documents, and accepts fields that later versions add.
 */
export const eventJsonSchemas: ReadonlyMap<EventType, JsonSchema> = new Map(
  eventTypes.map(({ description, type }) => [type, standalone(type, description)])
)

/** The same schemas as components of another document, with all definitions in one place. */
export const eventSchemaComponents = (
  definitionPath: string
): {
  readonly definitions: Readonly<Record<string, JsonSchema>>
  readonly referenceTo: (type: EventType) => JsonSchema
} => {
  const definitions: Record<string, JSONSchema.JsonSchema7> = {}
  const references = new Map(
    EventType.literals.map((type) => [
      type,
      schemaOf(JSONSchema.fromAST(envelopeByType[type].ast, { definitions, definitionPath, target: "openApi3.1" }))
    ])
  )
  return {
    definitions: Object.fromEntries(Object.entries(definitions).map(([name, part]) => [name, schemaOf(part)])),
    referenceTo: (type) => references.get(type) ?? {}
  }
}

const allTypes = eventSchemaComponents("#/$defs/")

/** The schema of an event of any type, complete in one file, so that it works at any location. */
export const anyEventJsonSchema: JsonSchema = {
  $schema: dialect,
  $id: anyEventSchemaPath,
  title: "Event",
  description: "A signed event, told apart by its type",
  oneOf: eventTypes.map(({ description, type }) => ({ ...allTypes.referenceTo(type), description })),
  $defs: allTypes.definitions
}
