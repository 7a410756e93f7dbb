import { HttpApiBuilder, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import MiniSearch from "minisearch"
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
import { contents, forMaintainers, type Guide, guideNames, guidePath, guidesPath, readGuides } from "./Guides.ts"
import { plainText, renderSections, type Section } from "./Markdown.ts"
import { servedOpenApi } from "./OpenApiText.ts"
import { publishedDocument } from "./PublishedDocument.ts"

/**
 * Replaces the text between a document's markers `<!-- The <what>, written by `npm run docs` -->` and
 * `<!-- The end of the <what> -->`. A text without both is returned unchanged.
 */
export const withGenerated = (text: string, what: string, generated: string): string => {
  const begin = `<!-- The ${what}, written by \`npm run docs\` -->`
  const end = `<!-- The end of the ${what} -->`
  const from = text.indexOf(begin)
  const to = text.indexOf(end)
  return from === -1 || to < from ? text : `${text.slice(0, from + begin.length)}\n\n${generated}\n${text.slice(to)}`
}

/** The search in the guides: an index of all their sections, built once. Pure. */

interface Searchable extends Pick<Section, "anchor" | "heading" | "html"> {
  readonly path: string
  readonly title: string
  /** How much a match is worth, beside 1 by default. */
  readonly weight?: number
}

interface SearchResult {
  /** Its path, with its fragment. */
  readonly href: string
  readonly title: string
  readonly heading: string
  /** A piece of its text around the first matching word. */
  readonly excerpt: string
}

/** The longest query; the rest is cut off. */
const maxQueryLength = 100

const maxWords = 8

const maxFound = 20

const excerptLength = 180

/** The words of a text. A name with underscores or hyphens counts as a whole and by its parts: `resend` finds re-send. */
const wordsOf = (text: string): Array<string> =>
  (text.toLowerCase().match(/[\p{L}\p{N}_]+(?:-[\p{L}\p{N}_]+)*/gu) ?? []).flatMap((word) => {
    const parts = word.split(/[-_]/).filter((part) => part !== "")
    return parts.length === 1 ? parts : [word.replaceAll("-", ""), ...parts]
  })

interface Indexed extends Omit<Searchable, "html"> {
  /** Its place in `sections`. */
  readonly id: number
  readonly text: string
}

interface SearchIndex {
  readonly words: MiniSearch<Indexed>
  readonly sections: Array<Indexed>
}

export const emptyIndex = (): SearchIndex => ({
  words: new MiniSearch({ fields: ["heading", "title", "text"], tokenize: wordsOf }),
  sections: []
})

export const addSections = ({ sections, words }: SearchIndex, added: ReadonlyArray<Searchable>): void => {
  for (const { html, ...section } of added) {
    const text = plainText(html.replaceAll(/<\/(?:td|th|li|p|pre|h\d|q)>/g, " "))
    const indexed = { ...section, id: sections.length, text }
    sections.push(indexed)
    words.add(indexed)
  }
}

const askedFor = (query: string): Array<string> =>
  [
    ...new Set(
      query
        .slice(0, maxQueryLength)
        .toLowerCase()
        .match(/[\p{L}\p{N}_]{2,}/gu) ?? []
    )
  ].slice(0, maxWords)

/** Returns the sections that match every word of a query, at least as a prefix, best first. */
export const search = ({ sections, words }: SearchIndex, query: string): ReadonlyArray<SearchResult> => {
  const asked = askedFor(query)
  const boost = { heading: 20, title: 8 }
  const boostDocument = (id: number) => sections[id]?.weight ?? 1
  return words
    .search(query, { tokenize: () => asked, combineWith: "AND", prefix: true, boost, boostDocument })
    .slice(0, maxFound)
    .flatMap(({ id }) => sections[Number(id)] ?? [])
    .map(({ anchor, heading, path, text, title }) => ({
      href: anchor === "" ? path : `${path}#${anchor}`,
      title,
      heading,
      excerpt: excerptOf(text, asked, heading)
    }))
}

const excerptOf = (text: string, asked: ReadonlyArray<string>, heading: string): string => {
  const line = text.replaceAll(/\s+/g, " ").trim()
  const body = line.startsWith(heading)
    ? line
        .slice(heading.length)
        .replace(/^ ?# ?/, "")
        .trim()
    : line
  const lower = body.toLowerCase()
  const at = Math.max(0, Math.min(...asked.map((word) => lower.indexOf(word)).filter((place) => place !== -1)))
  const begin = Number.isFinite(at) ? Math.max(0, body.lastIndexOf(" ", Math.max(0, at - 60)) + 1) : 0
  const ends = begin + excerptLength >= body.length
  const cut = body.slice(begin, begin + excerptLength)
  return `${begin > 0 ? "… " : ""}${ends ? cut : `${cut.replace(/ \S*$/, "")} …`}`
}

/** The style of the guides: one column on a phone, contents next to the text on a wider screen, light and dark. */
const guideStyle = `:root {
  color-scheme: light dark;
  --text: #1c2430; --quiet: #5b6675; --back: #fff; --raised: #f5f7fa; --line: #dde3ea; --link: #0b5cad; --mark: #fff3c4;
}
@media (prefers-color-scheme: dark) {
  :root { --text: #dfe5ec; --quiet: #98a4b3; --back: #12161c; --raised: #1b212a; --line: #303946; --link: #7db8f5; --mark: #4a3f14; }
}
* { box-sizing: border-box }
html { scroll-padding-top: 4.5rem; -webkit-text-size-adjust: 100% }
body { margin: 0; font: 1rem/1.6 system-ui, sans-serif; color: var(--text); background: var(--back); overflow-wrap: break-word }
a { color: var(--link) }
header { position: sticky; top: 0; z-index: 1; display: flex; gap: .75rem 1.25rem; align-items: center;
  padding: .6rem 1rem; background: var(--back); border-bottom: 1px solid var(--line) }
header .home { font-weight: 650; color: inherit; text-decoration: none }
header form { display: flex; gap: .4rem; margin-left: auto; flex: 0 1 20rem; min-width: 0 }
input, button { font: inherit; color: inherit; padding: .3rem .6rem; border: 1px solid var(--line); border-radius: .4rem; background: var(--raised) }
input { flex: 1; min-width: 0; width: 100% }
button { cursor: pointer }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px }
.page { max-width: 82rem; margin: 0 auto }
main { padding: 0 1rem 3rem; min-width: 0; max-width: 66rem }
main > :not(.table) { max-width: 48rem }
main > :first-child { margin-top: 1.5rem }
h1 { font-size: 1.9rem; line-height: 1.2 }
h2 { font-size: 1.35rem; line-height: 1.3; margin: 2.4rem 0 .8rem; padding-top: .4rem }
h3 { font-size: 1.08rem; margin: 1.8rem 0 .6rem }
.anchor { text-decoration: none; color: var(--quiet); opacity: 0; font-weight: 400 }
:is(h2, h3, h4):hover .anchor, .anchor:focus { opacity: 1 }
code { font: .875em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; background: var(--raised); border-radius: .25rem; padding: .1em .3em }
pre { overflow-x: auto; padding: .9rem 1rem; background: var(--raised); border: 1px solid var(--line); border-radius: .5rem }
pre code { padding: 0; background: none; overflow-wrap: normal }
.table { overflow-x: auto; margin: 1rem 0 }
table { border-collapse: collapse; font-size: .925rem; min-width: 100% }
th, td { text-align: left; vertical-align: top; padding: .45rem .7rem; border-bottom: 1px solid var(--line); min-width: 6rem }
th { color: var(--quiet); font-weight: 600 }
td:last-child { min-width: 12rem }
li { margin: .25rem 0 }
li:has(> a[id]) { list-style: none; margin: .7rem 0 .7rem -1.2rem }
:is(section:target, li:has(> :target), tr:has(:target)) { background: var(--mark) }
section { padding: .1rem 0; border-bottom: 1px solid var(--line) }
section h3 { margin: 1rem 0 .2rem }
section p { margin: .4rem 0 }
small { color: var(--quiet); font-weight: 400 }
nav { padding: 1rem; border-top: 1px solid var(--line); background: var(--raised) }
nav h2 { font-size: .8rem; letter-spacing: .04em; text-transform: uppercase; color: var(--quiet); margin: .9rem 0 .2rem; padding: 0 }
nav h2:first-child { margin-top: 0 }
nav ul { list-style: none; margin: 0; padding: 0 }
nav li { margin: 0 }
nav a { display: block; padding: .12rem .6rem; font-size: .94rem; color: inherit; text-decoration: none; border-radius: .35rem }
nav a:hover { text-decoration: underline }
nav a[aria-current] { font-weight: 650; background: var(--line) }
nav li li a { padding-left: 1.5rem; color: var(--quiet); font-size: .86rem }
nav li li li a { padding-left: 2.4rem }
.found { list-style: none; padding: 0 }
.found li { margin: 1.2rem 0 }
.found p { margin: .2rem 0; color: var(--quiet) }
dl dt { margin-top: .9rem; font-weight: 600 }
dl dd { margin: 0; color: var(--quiet) }
dl dd p { margin: 0 }
h4 { margin: 1.2rem 0 .4rem }
section pre { max-height: 26rem; overflow-y: auto }
.route code { display: block; padding: .5rem .7rem }
.fields dt { margin-top: .55rem; font-weight: 400; color: var(--text) }
.fields dt code { font-weight: 650 }
.fields .fields { margin: .2rem 0 .6rem .2rem; padding-left: .9rem; border-left: 2px solid var(--line) }
.errors { display: grid; grid-template-columns: 3rem minmax(0, 1fr); gap: .3rem .6rem }
.errors dt { margin: 0 }
summary { cursor: pointer; font-weight: 600; padding: .3rem 0 .6rem }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
@media (max-width: 60rem) { nav a { padding: .45rem .6rem } }
@media (max-width: 30rem) {
  header .home { font-size: .95rem }
  header { flex-wrap: wrap }
  header form { flex: 1 1 100%; order: 3 }
  header .to-contents { margin-left: auto }
  header button { display: none }
  html { scroll-padding-top: 7rem }
}
@media (min-width: 60rem) {
  .page { display: grid; grid-template-columns: 17rem minmax(0, 1fr) }
  nav { grid-column: 1; grid-row: 1; border: 0; background: none; padding: 1.5rem 1rem;
    position: sticky; top: 3.6rem; max-height: calc(100vh - 3.6rem); overflow-y: auto; align-self: start }
  main { grid-column: 2; grid-row: 1; padding: 0 2.5rem 4rem }
  .to-contents { display: none }
}
@media print { header, nav, .anchor { display: none } pre { white-space: pre-wrap } }
`

/** The pages at `/docs`: the guides and the API reference, with their contents and a search. They run no script. */

const stylePath = guidePath("style.css")
const searchPath = guidePath("search")

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

/** The contents that every page lists: the guides, and the reference's pages. */
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
