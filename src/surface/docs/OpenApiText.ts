import { readFile } from "node:fs/promises"
import { HttpApiBuilder } from "@effect/platform"
import { Effect, Layer } from "effect"
import { unsupportedOperations } from "../../payments/OwnProvider.ts"
import { Provider } from "../../payments/Provider.ts"
import { cachedForever } from "../../platform/kit/Concurrency.ts"
import { codeFolder } from "../../platform/settings/PackageFolders.ts"
import { operations } from "../contract/Api.ts"
import { supportedPart } from "../contract/Document.ts"
import { documentPaths } from "./ApiReference.ts"
import { openApiDocument } from "./OpenApiDocument.ts"
import { prepared } from "./Prepared.ts"
import { publishedDocument } from "./PublishedDocument.ts"

/** The file of a build that holds the OpenAPI document. The sources contain none, so that it is never out of date. */
export const builtOpenApi = "docs/openapi.json"

/**
 * The OpenAPI document as JSON. To create it takes a third of a second and leaves 5 MB in memory, so a build contains it as
 * a file.
 */
export const openApiText = prepared({
  what: "The OpenAPI document",
  built: builtOpenApi,
  read: () => readFile(new URL(builtOpenApi, codeFolder), "utf8"),
  source: "docs/examples/errors.json",
  make: async () => JSON.stringify(openApiDocument())
})

/** The OpenAPI document of this installation: without what its provider does not support. */
export const servedOpenApi =
  openApiText &&
  Effect.map(Effect.all([openApiText, Provider]), ([text, provider]) => {
    const unsupported = unsupportedOperations(operations, provider)
    return unsupported.size === 0 ? text : JSON.stringify(supportedPart(JSON.parse(text), unsupported))
  })

/** Serves the OpenAPI document, read once and only if somebody asks for it. */
export const openApiPage =
  servedOpenApi === undefined
    ? Layer.empty
    : HttpApiBuilder.Router.use((router) =>
        Effect.gen(function* () {
          const served = Effect.provideService(servedOpenApi, Provider, yield* Provider)
          const published = yield* cachedForever(
            Effect.map(served, (body) =>
              // Revalidated each time, since a new version of the service may differ; the answer is 304 if nothing changed
              publishedDocument({ body, contentType: "application/json", cacheControl: "no-cache" })
            )
          )
          yield* router.get(documentPaths.openApi, Effect.flatten(published))
        })
      )
