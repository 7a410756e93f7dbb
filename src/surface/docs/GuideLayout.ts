import { escaped, htmlDocument, iconLink } from "../../platform/kit/Page.ts"
import { documentPaths, type ReferencePage, type referencePaths } from "./ApiReference.ts"
import { maxQueryLength } from "./GuideSearch.ts"
import { contents, type Guide, guideNames, guidePath, guidesPath } from "./Guides.ts"
import { renderSections } from "./Markdown.ts"

/** How the pages at `/docs` look: the contents and the search around each, and their style. */

export const stylePath = guidePath("style.css")
export const searchPath = guidePath("search")

/** A guide, or a page of the reference, as it is shown. */
export type Rendered = ReferencePage

/** The target of a guide's link on its page; undefined for a file that is not served. */
export const linked = (href: string): string | undefined => {
  if (/^(?:https?:|#)/.test(href)) return href
  const [, name = "", fragment = ""] = /^(?:\.\.\/(?:guides|maintaining)\/)?([a-z-]+)\.md(#[\w.-]+)?$/.exec(href) ?? []
  return guideNames.some((known) => known === name) ? `${guidePath(name)}${fragment}` : undefined
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
export interface Listed {
  readonly guides: ReadonlyArray<Guide>
  readonly reference: typeof referencePaths
}

/** The whole page around its main part. */
export const pageOf = (page: {
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

export const firstPage = (listed: Listed): string => {
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

/** The style of the guides: one column on a phone, contents next to the text on a wider screen, light and dark. */
export const guideStyle = `:root {
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
