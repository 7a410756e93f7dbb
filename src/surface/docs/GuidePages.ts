import { HttpApiBuilder, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { unsupportedOperations } from "../../payments/OwnProvider.ts"
import { Provider } from "../../payments/Provider.ts"
import { type ApiError, ResourceNotFound } from "../../platform/errors/Errors.ts"
import { cachedForever, turnOfEventLoop } from "../../platform/kit/Concurrency.ts"
import { errorReferencePath } from "../../platform/kit/ErrorLink.ts"
import { escaped, htmlType, policyHeaders, privateHeaders } from "../../platform/kit/Page.ts"
import { operations } from "../contract/Api.ts"
import { documentPaths, referencePages, referencePaths, referencePathsWithout } from "./ApiReference.ts"
import { errorSections } from "./ErrorReference.ts"
import {
  firstPage,
  guideStyle,
  type Listed,
  linked,
  pageOf,
  type Rendered,
  searchPath,
  stylePath
} from "./GuideLayout.ts"
import { addSections, emptyIndex, maxQueryLength, type Searchable, type SearchIndex, search } from "./GuideSearch.ts"
import { forMaintainers, type Guide, guideNames, guidePath, guidesPath, readGuides } from "./Guides.ts"
import { renderSections, withGenerated } from "./Markdown.ts"
import { servedOpenApi } from "./OpenApiText.ts"
import { publishedDocument } from "./PublishedDocument.ts"

/** The pages at `/docs`: the guides and the API reference, with their contents and a search. They run no script. */

export const guidePaths: ReadonlyArray<string> = [
  guidesPath,
  stylePath,
  searchPath,
  ...guideNames.map(guidePath),
  documentPaths.reference,
  ...referencePaths.values()
]

const headers = policyHeaders({ style: "'self'", img: "data:", form: "'self'" })

/** Revalidated each time, since a new version of the service may differ; the answer is 304 if nothing changed. */
const cacheControl = "no-cache"

const rendered = (guide: Guide): Rendered => {
  const path = guidePath(guide.name)
  // Instead of the Markdown's table of errors, the page has a section for each error
  const sections = renderSections(withGenerated(guide.markdown, "errors", ""), linked).map((section) =>
    section.anchor === "every-code" && path === errorReferencePath
      ? { ...section, html: `${section.html}${errorSections.map((error) => error.html).join("\n")}` }
      : section
  )
  return { path, title: guide.title, sections }
}

/** The query of a search, trimmed and bounded. */
const queryOf = (url: string): string => {
  const begin = url.indexOf("?")
  const asked = begin === -1 ? null : new URLSearchParams(url.slice(begin + 1)).get("q")
  return (asked ?? "").slice(0, maxQueryLength).trim()
}

const searchable = ({ path, sections, title }: Rendered): ReadonlyArray<Searchable> => {
  // A guide says more about a word than the many fields of that name, or than a page for maintainers
  const weight =
    path.startsWith(documentPaths.reference) || forMaintainers.has(path.slice(guidesPath.length + 1)) ? 0.25 : 1
  const ofGuide = sections.map(({ anchor, heading, html }) => ({ anchor, heading, html, path, title, weight }))
  return path === errorReferencePath
    ? [...ofGuide, ...errorSections.map((section) => ({ ...section, path, title }))]
    : ofGuide
}

const searchPage = (listed: Listed, index: SearchIndex, query: string): string => {
  const found = search(index, query)
  const items = found.map(
    ({ excerpt, heading, href, title }) =>
      `<li><a href="${escaped(href)}">${escaped(heading === title ? title : `${title}: ${heading}`)}</a>\n<p>${escaped(excerpt)}</p></li>`
  )
  const results = found.length === 0 ? "<p>Nothing was found.</p>" : `<ol class="found">\n${items.join("\n")}\n</ol>`
  const main =
    query === ""
      ? "<h1>Search</h1>\n<p>Type what you are looking for: a word, a code, a setting.</p>"
      : `<h1>Search: ${escaped(query)}</h1>\n${results}`
  return pageOf({ title: query === "" ? "Search" : `Search: ${query}`, path: searchPath, main, listed, query })
}

const published = (body: string) => publishedDocument({ body, contentType: htmlType, cacheControl, headers })

/** One page at a time, so that requests under way continue in between. */
const inTurn = (guide: Guide) =>
  Effect.zipRight(
    turnOfEventLoop,
    Effect.sync(() => rendered(guide))
  )

/** The pages of the API reference; none if its document was not prepared. */
const renderReference = (provider: Provider["Type"]) =>
  servedOpenApi === undefined
    ? Effect.succeed([])
    : Effect.flatMap(Effect.provideService(servedOpenApi, Provider, provider), (text) =>
        Effect.forEach(referencePages(JSON.parse(text)), (render) => Effect.map(turnOfEventLoop, render))
      )

/** Indexes the guides and the reference's pages, apart from its list of them. */
const buildIndex = Effect.fnUntraced(function* (
  guides: ReadonlyArray<Effect.Effect<Rendered>>,
  reference: Effect.Effect<ReadonlyArray<Rendered>, ApiError>
) {
  const index = emptyIndex()
  for (const guide of guides) addSections(index, searchable(yield* guide))
  for (const page of (yield* reference).slice(1)) {
    yield* turnOfEventLoop
    addSections(index, searchable(page))
  }
  return index
})

const notServed = new ResourceNotFound({ message: "This page is not served here." })

/**
 * Serves the guides. Each is rendered on its first request, and the first search builds the index. If the guides' files
 * are missing, as from a bundle, the log says so and their pages are not found.
 */
export const guidePages = HttpApiBuilder.Router.use((router) =>
  Effect.gen(function* () {
    const guides = yield* Effect.catchTag(readGuides, "GuidesNotFound", ({ cause }) =>
      Effect.as(Effect.logWarning("The guides are not served: their files can't be read.", cause), [])
    )
    const provider = yield* Provider
    const listed = { guides, reference: referencePathsWithout(unsupportedOperations(operations, provider)) }
    const renderings = yield* Effect.forEach(guides, (guide) => cachedForever(inTurn(guide)))
    const reference = yield* cachedForever(renderReference(provider))
    const index = yield* cachedForever(buildIndex(renderings, reference))
    const first = yield* cachedForever(Effect.sync(() => published(firstPage(listed))))
    const style = { body: guideStyle, contentType: "text/css; charset=utf-8", cacheControl }
    yield* router.get(stylePath, publishedDocument(style))
    yield* router.get(guidesPath, Effect.flatten(first))
    const serve = Effect.fnUntraced(function* (path: `/${string}`, rendering: Effect.Effect<Rendered, ApiError>) {
      const handler = Effect.map(rendering, (shown) => {
        const main = shown.sections.map((section) => section.html).join("")
        return published(pageOf({ title: `${shown.title} · connected-payments`, path, main, listed, shown }))
      })
      yield* router.get(path, Effect.flatten(yield* cachedForever(handler)))
    })
    for (const [place, name] of guideNames.entries()) yield* serve(guidePath(name), renderings[place] ?? notServed)
    for (const path of [documentPaths.reference, ...referencePaths.values()]) {
      const found = (pages: ReadonlyArray<Rendered>) => Effect.fromNullable(pages.find((page) => page.path === path))
      yield* serve(
        path,
        Effect.orElseFail(Effect.flatMap(reference, found), () => notServed)
      )
    }
    yield* router.get(
      searchPath,
      Effect.gen(function* () {
        const { url } = yield* HttpServerRequest.HttpServerRequest
        return HttpServerResponse.raw(searchPage(listed, yield* index, queryOf(url)), {
          headers: { ...privateHeaders, ...headers, "content-type": htmlType }
        })
      })
    )
  })
)
