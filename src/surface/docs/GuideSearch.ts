import { plainText, type Section } from "./Markdown.ts"

/** The search in the guides: an index of the words of each, built once. Pure. */

/** A section of a guide, for the search. */
export interface Searchable extends Pick<Section, "anchor" | "heading" | "html"> {
  readonly path: string
  readonly title: string
}

/** A section that a query found. */
export interface Found {
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

/** How many indexed words one word of a query may complete to. */
const maxCompletions = 50

/** How many sections are returned. */
const maxFound = 20

const excerptLength = 180

/** The weight of a word, by where it occurs. */
const weight = { heading: 20, title: 8, text: 1 }

/** The maximum weight of one word in a section's text, however often it appears. */
const maxTextWeight = 5

/** The words of a text. A name with underscores or hyphens counts as a whole and by its parts: `resend` finds re-send. */
const wordsOf = (text: string): ReadonlyArray<string> =>
  (text.toLowerCase().match(/[\p{L}\p{N}_]+(?:-[\p{L}\p{N}_]+)*/gu) ?? []).flatMap((word) => {
    const parts = word.split(/[-_]/).filter((part) => part !== "")
    return parts.length === 1 ? parts : [word.replaceAll("-", ""), ...parts]
  })

/** The words of one guide, each with the sections that have it and its weight there. */
export interface SearchIndex {
  readonly sections: ReadonlyArray<Searchable>
  readonly texts: ReadonlyArray<string>
  readonly places: ReadonlyMap<string, ReadonlyMap<number, number>>
  /** Every word, sorted. */
  readonly words: ReadonlyArray<string>
}

export const indexOf = (sections: ReadonlyArray<Searchable>): SearchIndex => {
  const texts = sections.map(({ html }) => plainText(html.replaceAll(/<\/(?:td|th|li|p|pre|h\d|q)>/g, " ")))
  const places = new Map<string, Map<number, number>>()
  sections.forEach(({ heading, title }, section) => {
    const add = (text: string, counts: number, most: number) => {
      const ofText = new Map<string, number>()
      for (const word of wordsOf(text)) ofText.set(word, Math.min(most, (ofText.get(word) ?? 0) + counts))
      for (const [word, counted] of ofText) {
        const sectionsOfWord = places.get(word) ?? new Map<number, number>()
        places.set(word, sectionsOfWord.set(section, (sectionsOfWord.get(section) ?? 0) + counted))
      }
    }
    add(heading, weight.heading, weight.heading)
    add(title, weight.title, weight.title)
    add(texts[section] ?? "", weight.text, maxTextWeight)
  })
  return { sections, texts, places, words: [...places.keys()].toSorted() }
}

const askedFor = (query: string): ReadonlyArray<string> =>
  [
    ...new Set(
      query
        .slice(0, maxQueryLength)
        .toLowerCase()
        .match(/[\p{L}\p{N}_]{2,}/gu) ?? []
    )
  ].slice(0, maxWords)

/** The sections with a word that has this prefix, each with its weight; an exact match counts twice. */
const placesOf = ({ places, words }: SearchIndex, begin: string): ReadonlyMap<number, number> => {
  const counted = new Map<number, number>()
  const first = firstFrom(words, begin)
  for (const word of words.slice(first, first + maxCompletions)) {
    if (!word.startsWith(begin)) break
    for (const [section, counts] of places.get(word) ?? []) {
      counted.set(section, (counted.get(section) ?? 0) + (word === begin ? 2 * counts : counts))
    }
  }
  return counted
}

/** Returns the sections that match every word of a query, at least as a prefix, best first. */
export const search = (indexes: ReadonlyArray<SearchIndex>, query: string): ReadonlyArray<Found> => {
  const asked = askedFor(query)
  return indexes
    .flatMap((index) => {
      const [places, ...others] = asked.map((word) => placesOf(index, word))
      return [...(places ?? [])].flatMap(([section, counts]) => {
        const found = index.sections[section]
        const rest = others.map((other) => other.get(section))
        return found === undefined || rest.includes(undefined)
          ? []
          : [
              {
                found,
                text: index.texts[section] ?? "",
                counts: rest.reduce<number>((sum, n) => sum + (n ?? 0), counts)
              }
            ]
      })
    })
    .toSorted((a, b) => b.counts - a.counts)
    .slice(0, maxFound)
    .map(({ found: { anchor, heading, path, title }, text }) => ({
      href: anchor === "" ? path : `${path}#${anchor}`,
      title,
      heading,
      excerpt: excerptOf(text, asked, heading)
    }))
}

/** The index of the first word that is not before `from`, in a sorted list. */
const firstFrom = (words: ReadonlyArray<string>, from: string): number => {
  let low = 0
  let high = words.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((words[middle] ?? "") < from) low = middle + 1
    else high = middle
  }
  return low
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
