import { HttpApi, HttpApiBuilder, HttpApiScalar, HttpLayerRouter, HttpServer } from "@effect/platform"
import { Effect, Layer } from "effect"
import { escaped, icon } from "../kit/Html.ts"
import { openApiDocument } from "./OpenApiDocument.ts"
import { publishedDocument } from "./PublishedDocument.ts"

/** The public paths of the contract's documents: the OpenAPI document, the page that shows it, its script. */
export const documentPaths = {
  openApi: "/openapi.json",
  reference: "/docs/reference",
  script: "/docs/reference.js"
} as const

/**
 * The policy of the page, which loads its script and the document only from this service, so that a key typed into it
 * stays here. The script adds its own styles and compiles its own WebAssembly.
 */
const policy =
  "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'unsafe-inline'; img-src 'self' data:; font-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** The configuration of the page; see Scalar's documentation. */
const configuration = {
  url: documentPaths.openApi,
  authentication: { preferredSecurityScheme: "apiKey" },
  withDefaultFonts: false,
  // Without links to other services
  hideClientButton: true,
  showToolbar: "never",
  documentDownloadType: "direct",
  telemetry: false
}

const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>API reference of connected-payments</title>
<link rel="icon" href="${icon}">
<style>a[href^="https://www.scalar.com"] { display: none }</style>
</head>
<body>
<noscript>This page needs JavaScript; the document itself is <a href="${documentPaths.openApi}">${documentPaths.openApi}</a>.</noscript>
<script id="api-reference" type="application/json" data-configuration="${escaped(JSON.stringify(configuration))}"></script>
<script src="${documentPaths.script}"></script>
</body>
</html>
`

/** The library's own page for an API without operations: it contains the script, which can't be imported otherwise. */
const librarysPage = async (): Promise<string> => {
  const { dispose, handler } = HttpLayerRouter.toWebHandler(
    Layer.mergeAll(
      HttpApiScalar.layerHttpLayerRouter({ api: HttpApi.make("empty"), path: documentPaths.reference }),
      HttpServer.layerContext
    ),
    { disableLogger: true }
  )
  try {
    const response = await handler(new Request(`http://localhost${documentPaths.reference}`))
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

/** Revalidated each time, since a new version of the service may differ; the answer is 304 if nothing changed. */
const cacheControl = "no-cache"

const makeDocuments = async () => ({
  openApi: publishedDocument({
    body: JSON.stringify(openApiDocument()),
    contentType: "application/json",
    cacheControl
  }),
  script: publishedDocument({
    body: scriptOf(await librarysPage()),
    contentType: "text/javascript; charset=utf-8",
    cacheControl
  })
})

let documents: ReturnType<typeof makeDocuments> | undefined

/** The large documents, created once in a process, however many services start in it: 3 MB of script take a while. */
const largeDocuments = Effect.promise(() => {
  documents ??= makeDocuments()
  return documents
})

/** Serves `/openapi.json`, and `/docs/reference` with its script. */
export const documentPages = HttpApiBuilder.Router.use((router) =>
  Effect.gen(function* () {
    const { openApi, script } = yield* largeDocuments
    yield* router.get(documentPaths.openApi, openApi)
    yield* router.get(
      documentPaths.reference,
      publishedDocument({
        body: page,
        contentType: "text/html; charset=utf-8",
        cacheControl,
        headers: { "content-security-policy": policy, "referrer-policy": "no-referrer" }
      })
    )
    yield* router.get(documentPaths.script, script)
  })
)
