import { Marked, type Token, type TokensList } from "marked"
import { escaped } from "../../platform/kit/Page.ts"

/** Rendering of the guides' Markdown to HTML that needs no script and fits a phone. */

/** The anchor of a heading as GitHub names it, so that links work both in the repository and at `/docs`. */
export const headingAnchor = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-")

/** A sentence as HTML; backquotes mark code. */
export const withCode = (text: string): string => escaped(text).replaceAll(/`([^`]+)`/g, "<code>$1</code>")

/** A part of a page: a heading with its text, up to the next heading. */
export interface Section {
  /** Its fragment; empty for the part before the first heading. */
  readonly anchor: string
  readonly depth: number
  readonly heading: string
  readonly html: string
}

/** Raw HTML that guides may hold: anchors to link to, and comments, which mark generated tables. */
const place = /^<a id="([\w.-]+)">$/
const comment = /^<!--[\s\S]*-->$/

const htmlOf = (raw: string): string => {
  const text = raw.trim()
  if (comment.test(text)) return ""
  if (place.test(text) || text === "</a>") return text
  throw new Error(`A guide has HTML that is neither a place to link to nor a comment: ${text}`)
}

/**
 * Splits a guide at its headings and renders each part.
 *
 * @param linked the target of a guide's link on the page; undefined for a file that is not served, whose link is shown
 * as text
 */
export const renderSections = (
  markdown: string,
  linked: (href: string) => string | undefined
): ReadonlyArray<Section> => {
  const marked = new Marked({ gfm: true })
  marked.use({
    renderer: {
      heading({ depth, tokens }) {
        const text = plainText(this.parser.parseInline(tokens))
        const anchor = headingAnchor(text)
        const link = `<a class="anchor" href="#${anchor}" aria-label="Link to this heading">#</a>`
        return `<h${depth} id="${anchor}">${this.parser.parseInline(tokens)}${depth === 1 ? "" : ` ${link}`}</h${depth}>\n`
      },
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens)
        const target = linked(href)
        return target === undefined ? text : `<a href="${escaped(target)}">${text}</a>`
      },
      code({ text }) {
        // Reachable by keyboard, since it may have to be scrolled
        return `<pre tabindex="0"><code>${escaped(text)}</code></pre>\n`
      },
      html({ text }) {
        return htmlOf(text)
      },
      table(token) {
        const row = (cells: typeof token.header, tag: string) =>
          `<tr>${cells.map((cell) => `<${tag}>${breakable(this.parser.parseInline(cell.tokens))}</${tag}>`).join("")}</tr>`
        const rows = token.rows.map((cells) => row(cells, "td")).join("\n")
        const head = `<thead>${row(token.header, "th")}</thead>`
        return `<div class="table" tabindex="0"><table>${head}<tbody>${rows}</tbody></table></div>\n`
      }
    }
  })
  const tokens = marked.lexer(markdown)
  const render = (part: ReadonlyArray<Token>) => marked.parser(Object.assign([...part], { links: tokens.links }))
  return partsOf(tokens).map((part) => {
    const [first] = part
    const html = render(part)
    if (first?.type !== "heading") return { anchor: "", depth: 0, heading: "", html }
    const [, depth = "", anchor = ""] = /^<h(\d) id="([^"]*)">/.exec(html) ?? []
    const heading = plainText(html.slice(0, html.indexOf(`</h${depth}>`)).replace(/ ?<a class="anchor".*$/, ""))
    return { anchor, depth: Number(depth), heading, html }
  })
}

/** Lets long names in a table's cell break between their parts, so that a column is no wider than a phone. */
const breakable = (cell: string): string =>
  cell.replaceAll(
    /<code>([^<]*)<\/code>/g,
    (_, code: string) => `<code>${code.replaceAll(/(?<=\w)[_./]/g, "$&<wbr>")}</code>`
  )

const partsOf = (tokens: TokensList): ReadonlyArray<ReadonlyArray<Token>> => {
  const parts: Array<Array<Token>> = []
  for (const token of tokens) {
    if (token.type === "heading" || parts.length === 0) parts.push([])
    parts.at(-1)?.push(token)
  }
  return parts
}

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" }

/** The text of our own HTML, without tags. */
export const plainText = (html: string): string =>
  html
    .replaceAll(/<[^>]*>/g, "")
    .replaceAll(/&(amp|lt|gt|quot|#39);/g, (entity, name: string) => entities[name] ?? entity)

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
