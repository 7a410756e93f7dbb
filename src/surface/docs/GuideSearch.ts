import MiniSearch from "minisearch"
import { plainText, type Section } from "./Markdown.ts"

/** The search in the guides: an index of all their sections, built once. Pure. */

export interface Searchable extends Pick<Section, "anchor" | "heading" | "html"> {
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
export const maxQueryLength = 100

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

export interface SearchIndex {
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
