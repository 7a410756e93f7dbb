import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { escaped, iconLink } from "../../platform/kit/Html.ts"
import { htmlDocument, htmlType, policyHeaders } from "../../platform/kit/Page.ts"
import { readLargeDocuments } from "./LargeDocuments.ts"
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
const allowed = {
  script: "'self' 'wasm-unsafe-eval'",
  style: "'unsafe-inline'",
  connect: "'self'",
  img: "'self' data:",
  font: "data:"
} as const

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

const page = htmlDocument({
  title: "API reference of connected-payments",
  head: `${iconLink}
<style>a[href^="https://www.scalar.com"] { display: none }</style>`,
  body: `<noscript>This page needs JavaScript; the document itself is <a href="${documentPaths.openApi}">${documentPaths.openApi}</a>.</noscript>
<script id="api-reference" type="application/json" data-configuration="${escaped(JSON.stringify(configuration))}"></script>
<script src="${documentPaths.script}"></script>`,
  indexed: true
})

/** Revalidated each time, since a new version of the service may differ; the answer is 304 if nothing changed. */
const cacheControl = "no-cache"

const publishDocuments = async () => {
  const documents = await readLargeDocuments()
  return {
    openApi: publishedDocument({ body: documents["openapi.json"], contentType: "application/json", cacheControl }),
    script: publishedDocument({
      body: documents["reference.js"],
      contentType: "text/javascript; charset=utf-8",
      cacheControl
    })
  }
}

let published: ReturnType<typeof publishDocuments> | undefined

/** The large documents, read once in a process, and only if somebody asks for them. */
const largeDocuments = Effect.promise(() => {
  published ??= publishDocuments()
  return published
})

/** Serves `/openapi.json`, and `/docs/reference` with its script. */
export const documentPages = HttpApiBuilder.Router.use((router) =>
  Effect.gen(function* () {
    yield* router.get(
      documentPaths.openApi,
      Effect.flatMap(largeDocuments, ({ openApi }) => openApi)
    )
    yield* router.get(
      documentPaths.reference,
      publishedDocument({
        body: page,
        contentType: htmlType,
        cacheControl,
        headers: policyHeaders(allowed)
      })
    )
    yield* router.get(
      documentPaths.script,
      Effect.flatMap(largeDocuments, ({ script }) => script)
    )
  })
)
