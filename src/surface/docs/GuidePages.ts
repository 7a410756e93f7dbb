import { HttpApiBuilder, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { Provider } from "../../payments/Provider.ts"
import { unsupportedOperations } from "../../payments/UnsupportedOperations.ts"
import { type ApiError, ResourceNotFound } from "../../platform/errors/Errors.ts"
import { cachedForever, turnOfEventLoop } from "../../platform/kit/Concurrency.ts"
import { errorReferencePath } from "../../platform/kit/ErrorLink.ts"
import { escaped, htmlDocument, htmlType, iconLink, policyHeaders, privateHeaders } from "../../platform/kit/Page.ts"
import {
  documentPaths,
  type ReferencePage,
  referencePages,
  referencePaths,
  referencePathsWithout
} from "./ApiReference.ts"
import { errorSections } from "./ErrorReference.ts"
import { withGenerated } from "./Generated.ts"
import { addSections, emptyIndex, maxQueryLength, type Searchable, type SearchIndex, search } from "./GuideSearch.ts"
import { guideStyle } from "./GuideStyle.ts"
import { contents, forMaintainers, type Guide, guideNames, guidePath, guidesPath, readGuides } from "./Guides.ts"
import { renderSections } from "./Markdown.ts"
import { servedOpenApi } from "./OpenApiText.ts"
import { publishedDocument } from "./PublishedDocument.ts"

/** The pages at `/docs`: the guides and the API reference, with their contents and a search. They run no script. */

const stylePath = guidePath("style.css")
const searchPath = guidePath("search")

/** The public paths of the pages. */
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

/** A guide, or a page of the reference, as it is shown. */
type Rendered = ReferencePage

/** The target of a guide's link on its page; undefined for a file that is not served. */
const linked = (href: string): string | undefined => {
  if (/^(?:https?:|#)/.test(href)) return href
  const [, name = "", fragment = ""] = /^(?:\.\.\/(?:guides|maintaining)\/)?([a-z-]+)\.md(#[\w.-]+)?$/.exec(href) ?? []
  return guideNames.some((known) => known === name) ? `${guidePath(name)}${fragment}` : undefined
}

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

const item = (path: string, text: string, current: string, within = ""): string =>
  `<li><a href="${path}"${path === current ? ' aria-current="page"' : ""}>${escaped(text)}</a>${within}</li>`

const headingsOf = ({ path, sections }: Rendered): string => {
  const headings = sections.filter(({ depth }) => depth === 2)
  const links = headings.map(({ anchor, heading }) => item(`${path}#${anchor}`, heading, ""))
  return links.length === 0 ? "" : `\n<ul>\n${links.join("\n")}\n</ul>`
}

/** The reference's part of the contents: within it, all of its pages. */
const referenceItems = (reference: typeof referencePaths, current: string, shown: Rendered | undefined): string => {
  const pages = [...reference].map(([tag, path]) =>
    item(path, tag, current, path === current && shown !== undefined ? headingsOf(shown) : "")
  )
  const within = current.startsWith(documentPaths.reference) ? `\n<ul>\n${pages.join("\n")}\n</ul>` : ""
  return `<h2>Reference</h2>
<ul>
${item(documentPaths.reference, "API reference", current, within)}
${item(documentPaths.openApi, "OpenAPI document", current)}
</ul>`
}

/** What every page's contents list: the guides, and the reference's pages. */
interface Listed {
  readonly guides: ReadonlyArray<Guide>
  readonly reference: typeof referencePaths
}

/** The whole page around its main part. */
const pageOf = (page: {
  readonly title: string
  readonly path: string
  readonly main: string
  readonly listed: Listed
  readonly shown?: Rendered
  readonly query?: string
}): string => {
  const titleOf = (name: string) => page.listed.guides.find((guide) => guide.name === name)?.title ?? name
  const groups = contents.map(({ names, reader }) => {
    const items = names.map((name) => {
      const path = guidePath(name)
      return item(path, titleOf(name), page.path, page.shown?.path === path ? headingsOf(page.shown) : "")
    })
    return `<h2>${reader}</h2>\n<ul>\n${items.join("\n")}\n</ul>`
  })
  return htmlDocument({
    title: page.title,
    indexed: true,
    head: `${iconLink}
<link rel="stylesheet" href="${stylePath}">`,
    body: `<header>
<a class="home" href="${guidesPath}">connected-payments</a>
<a class="to-contents" href="#contents">Contents</a>
<form action="${searchPath}" role="search">
<label class="hidden" for="q">Search the guides and the reference</label>
<input id="q" name="q" type="search" placeholder="Search the guides" maxlength="${maxQueryLength}" value="${escaped(page.query ?? "")}">
<button>Search</button>
</form>
</header>
<div class="page">
<main>
${page.main}
</main>
<nav id="contents" aria-label="Contents">
${groups.toSpliced(1, 0, referenceItems(page.listed.reference, page.path, page.shown)).join("\n")}
</nav>
</div>`
  })
}

const firstPage = (listed: Listed): string => {
  const groups = contents.map(({ names, reader }) => {
    const entries = names.flatMap((name) => {
      const guide = listed.guides.find((one) => one.name === name)
      if (guide === undefined) return []
      const [first] = renderSections(guide.about, linked)
      return [`<dt><a href="${guidePath(name)}">${escaped(guide.title)}</a></dt>\n<dd>${first?.html ?? ""}</dd>`]
    })
    return `<h2>${reader}</h2>\n<dl>\n${entries.join("\n")}\n</dl>`
  })
  const main = `<h1>connected-payments</h1>
<p>A payments API on connected provider accounts, with signed webhook events. These are its guides;
<a href="${documentPaths.reference}">the API reference</a> has every operation, field by field.</p>
${groups.join("\n")}`
  return pageOf({ title: "Guides of connected-payments", path: guidesPath, main, listed })
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
    const listed = { guides, reference: referencePathsWithout(unsupportedOperations(provider)) }
    yield* router.get(
      stylePath,
      publishedDocument({ body: guideStyle, contentType: "text/css; charset=utf-8", cacheControl })
    )
    const first = yield* cachedForever(Effect.sync(() => published(firstPage(listed))))
    yield* router.get(guidesPath, Effect.flatten(first))
    // One page at a time, so that requests under way continue in between
    const renderings = yield* Effect.forEach(guides, (guide) =>
      cachedForever(
        Effect.zipRight(
          turnOfEventLoop,
          Effect.sync(() => rendered(guide))
        )
      )
    )
    const reference = yield* cachedForever(
      servedOpenApi === undefined
        ? Effect.succeed([])
        : Effect.flatMap(Effect.provideService(servedOpenApi, Provider, provider), (text) =>
            Effect.forEach(referencePages(JSON.parse(text)), (render) => Effect.map(turnOfEventLoop, render))
          )
    )
    const serve = Effect.fnUntraced(function* (path: `/${string}`, rendering: Effect.Effect<Rendered, ApiError>) {
      const handler = Effect.map(rendering, (shown) => {
        const main = shown.sections.map((section) => section.html).join("")
        return published(pageOf({ title: `${shown.title} · connected-payments`, path, main, listed, shown }))
      })
      yield* router.get(path, Effect.flatten(yield* cachedForever(handler)))
    })
    const notServed = new ResourceNotFound({ message: "This page is not served here." })
    for (const [place, name] of guideNames.entries()) yield* serve(guidePath(name), renderings[place] ?? notServed)
    for (const path of [documentPaths.reference, ...referencePaths.values()]) {
      const found = (pages: ReadonlyArray<ReferencePage>) =>
        Effect.fromNullable(pages.find((page) => page.path === path))
      yield* serve(
        path,
        Effect.orElseFail(Effect.flatMap(reference, found), () => notServed)
      )
    }
    const index = yield* cachedForever(
      Effect.suspend(() => {
        const made = emptyIndex()
        const add = (shown: Rendered) => addSections(made, searchable(shown))
        const addAll = Effect.forEach(renderings, Effect.map(add), { discard: true })
        const addReference = Effect.flatMap(reference, (pages) =>
          Effect.forEach(pages.slice(1), (page) => Effect.map(turnOfEventLoop, () => add(page)), { discard: true })
        )
        return Effect.as(Effect.zipRight(addAll, addReference), made)
      })
    )
    yield* router.get(
      searchPath,
      Effect.gen(function* () {
        const { url } = yield* HttpServerRequest.HttpServerRequest
        return HttpServerResponse.raw(searchPage(listed, yield* index, queryOf(url)), {
          headers: {
            ...privateHeaders,
            ...headers,
            "content-type": htmlType
          }
        })
      })
    )
  })
)
