import type { Resource as ListedResource } from "@modelcontextprotocol/sdk/types.js"
import { Effect } from "effect"
import { eventTypes } from "../../events/Catalog.ts"
import {
  anyEventJsonSchema,
  anyEventSchemaPath,
  eventJsonSchemas,
  eventSchemaPath,
  type JsonSchema
} from "../../events/JsonSchemas.ts"
import { cachedForever } from "../../platform/kit/Concurrency.ts"
import { type GuidesNotFound, readGuides } from "../docs/Guides.ts"

/** Resources for agents: the documents that the service publishes for everybody. */

export interface Resource {
  readonly listed: ListedResource & { readonly mimeType: string }
  readonly text: Effect.Effect<string, GuidesNotFound>
}

/** The documents by URI; a URI has the path at which the document is served. */
export type Resources = ReadonlyMap<string, Resource>

const uriOf = (path: string): string => `connected-payments:/${path}`

const schemaResource = (path: string, name: string, description: string, schema: JsonSchema): Resource => ({
  listed: { uri: uriOf(path), name, description, mimeType: "application/schema+json" },
  text: Effect.sync(() => JSON.stringify(schema))
})

/** Creates the documents: the guide to errors, and the JSON Schemas of events. */
export const makeResources: Effect.Effect<Resources> = Effect.gen(function* () {
  const errors = yield* cachedForever(
    Effect.map(readGuides, (guides) => guides.find(({ name }) => name === "errors")?.markdown ?? "")
  )
  const resources: ReadonlyArray<Resource> = [
    {
      listed: {
        uri: uriOf("/docs/errors"),
        name: "errors",
        description: "Every error code, its cause and its remedy",
        mimeType: "text/markdown"
      },
      text: errors
    },
    schemaResource(anyEventSchemaPath, "events", "The JSON Schema of an event of any type", anyEventJsonSchema),
    ...eventTypes.flatMap(({ description, type }) => {
      const schema = eventJsonSchemas.get(type)
      return schema === undefined ? [] : [schemaResource(eventSchemaPath(type), type, description, schema)]
    })
  ]
  return new Map(resources.map((resource) => [resource.listed.uri, resource]))
})
