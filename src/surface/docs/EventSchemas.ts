import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { eventTypes } from "../../events/Catalog.ts"
import {
  anyEventJsonSchema,
  anyEventSchemaPath,
  eventJsonSchemas,
  eventSchemaPath,
  type JsonSchema
} from "../../events/JsonSchemas.ts"
import { publishedDocument } from "./PublishedDocument.ts"

/** The public paths of the JSON Schemas of events: one for each type, and one for all. */
export const eventSchemaPaths = [anyEventSchemaPath, ...eventTypes.map(({ type }) => eventSchemaPath(type))] as const

/** Serves a schema, cacheable for an hour: a later version of the service may describe a field better. */
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
