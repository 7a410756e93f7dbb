import { mkdir, readFile, writeFile } from "node:fs/promises"
import { HttpApi, HttpLayerRouter, HttpServer } from "@effect/platform"
import { Layer } from "effect"
import { hasErrorCode } from "../../platform/errors/ErrorCode.ts"
import { codeFolder } from "../../platform/settings/PackageFolders.ts"
import { openApiDocument } from "./OpenApiDocument.ts"

/**
 * The large documents of the API reference. Creating them takes a third of a second, so a build contains them as files;
 * a service that runs from its sources creates them for the first request.
 */

const referencePath = "/"

/** The library's own page for an API without operations: it contains the script, which can't be imported otherwise. */
const librarysPage = async (): Promise<string> => {
  // As text, and as what it means, it would hold 11 MB of a service that reads a build's files
  const HttpApiScalar = await import("@effect/platform/HttpApiScalar")
  const { dispose, handler } = HttpLayerRouter.toWebHandler(
    Layer.mergeAll(
      HttpApiScalar.layerHttpLayerRouter({ api: HttpApi.make("empty"), path: referencePath }),
      HttpServer.layerContext
    ),
    { disableLogger: true }
  )
  try {
    const response = await handler(new Request(`http://localhost${referencePath}`))
    return await response.text()
  } finally {
    await dispose()
  }
}

/** The last script of a page: the others hold the document and the configuration. */
const scriptOf = (html: string): string => {
  const end = html.lastIndexOf("</script>")
  const configured = html.indexOf("dataset.configuration")
  const start = html.indexOf("<script>", configured)
  if (configured === -1 || start === -1 || end <= start) {
    throw new Error("The page of @effect/platform's HttpApiScalar has another form: its script can't be found")
  }
  return html.slice(start + "<script>".length, end)
}

export interface LargeDocuments {
  /** The OpenAPI document, as JSON. */
  readonly "openapi.json": string
  /** The script of the page that shows it. */
  readonly "reference.js": string
}

const makeLargeDocuments = async (): Promise<LargeDocuments> => ({
  "openapi.json": JSON.stringify(openApiDocument()),
  "reference.js": scriptOf(await librarysPage())
})

/** The documents' folder in a build. The sources contain none, so that they are never out of date. */
const builtFolder = new URL("docs/", codeFolder)

const builtDocument = (name: keyof LargeDocuments): Promise<string> => readFile(new URL(name, builtFolder), "utf8")

export const readLargeDocuments = async (): Promise<LargeDocuments> => {
  try {
    return {
      "openapi.json": await builtDocument("openapi.json"),
      "reference.js": await builtDocument("reference.js")
    }
  } catch (error) {
    if (hasErrorCode(error, "ENOENT")) return await makeLargeDocuments()
    throw error
  }
}

export const writeLargeDocuments = async (folder: URL): Promise<void> => {
  await mkdir(folder, { recursive: true })
  for (const [name, body] of Object.entries(await makeLargeDocuments())) await writeFile(new URL(name, folder), body)
}
