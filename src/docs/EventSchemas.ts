import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { eventTypes } from "../events/Catalog.ts"
import {
  anyEventJsonSchema,
  anyEventSchemaPath,
  eventJsonSchemas,
  eventSchemaPath,
  type JsonSchema
} from "../events/JsonSchemas.ts"
import { publishedDocument } from "./PublishedDocument.ts"

/** Where the JSON Schemas of events are served, to everybody: one for each type, and one of any event. */
export const eventSchemaPaths = [anyEventSchemaPath, ...eventTypes.map(({ type }) => eventSchemaPath(type))] as const

/** May be kept for an hour without asking: a later version of the service may describe a field better. */
const document = (schema: JsonSchema) =>
  publishedDocument({
    body: `${JSON.stringify(schema, undefined, 2)}\n`,
    contentType: "application/schema+json",
    cacheControl: "public, max-age=3600, stale-while-revalidate=86400",
    headers: { "access-control-allow-origin": "*" }
  })

/** Serves the JSON Schemas of events (contract 6), for `ajv` and its like. */
export const eventSchemaPages = HttpApiBuilder.Router.use((router) =>
  Effect.all(
    [
      router.get(anyEventSchemaPath, document(anyEventJsonSchema)),
      ...[...eventJsonSchemas].map(([type, schema]) => router.get(eventSchemaPath(type), document(schema)))
    ],
    { discard: true }
  )
)
