import { createHash } from "node:crypto"
import { HttpApiBuilder, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { eventTypes } from "./events/Catalog.ts"
import {
  anyEventJsonSchema,
  anyEventSchemaPath,
  eventJsonSchemas,
  eventSchemaPath,
  type JsonSchema
} from "./events/JsonSchemas.ts"
import { hasEntityTag } from "./kit/EntityTag.ts"

/** Where the JSON Schemas of events are served, to everybody: one for each type, and one of any event. */
export const eventSchemaPaths = [anyEventSchemaPath, ...eventTypes.map(({ type }) => eventSchemaPath(type))] as const

/**
 * A document that is the same for the life of the process. It may be kept for an hour without asking, and beyond that
 * as long as its tag is still the same: a later version of the service may describe a field better.
 */
const document = (schema: JsonSchema) => {
  const body = Buffer.from(`${JSON.stringify(schema, undefined, 2)}\n`)
  const etag = `"${createHash("sha256").update(body).digest("base64url")}"`
  const headers = {
    etag,
    "cache-control": "public, max-age=3600, stale-while-revalidate=86400",
    "access-control-allow-origin": "*",
    "x-content-type-options": "nosniff"
  }
  return Effect.map(HttpServerRequest.HttpServerRequest, (request) =>
    hasEntityTag(request.headers["if-none-match"], etag)
      ? HttpServerResponse.empty({ status: 304, headers })
      : HttpServerResponse.uint8Array(body, { contentType: "application/schema+json", headers })
  )
}

/** Serves the JSON Schemas of events (contract, Events), for `ajv` and its like. */
export const eventSchemaPages = HttpApiBuilder.Router.use((router) =>
  Effect.all(
    [
      router.get(anyEventSchemaPath, document(anyEventJsonSchema)),
      ...[...eventJsonSchemas].map(([type, schema]) => router.get(eventSchemaPath(type), document(schema)))
    ],
    { discard: true }
  )
)
