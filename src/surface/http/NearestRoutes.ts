import { Array as Arr } from "effect"
import { misspelt, wordsOf } from "../../platform/bounds/Reasons.ts"
import { operations } from "../contract/Api.ts"

/** The routes that a caller of an unknown one may have meant: those whose paths have the most words in common with it. */

/** The start of a path that says nothing about what is asked for, as our paths and those of other APIs have it. */
const start = /^\/*(?:api\/+)?(?:v\d+\/+)?(?:organizations\/+[^/]+\/+)?(?:(?:provider|integrations|identity)\/+)?/

/** How much of a path is looked at: no route is as long. */
const longestPath = 200

/** What else callers call our words, in the singular. */
const otherWords: ReadonlyMap<string, string> = new Map([
  ["destination", "endpoint"],
  ["log", "audit"],
  ["webhook", "endpoint"]
])

/** A path's words in the singular, and its number of parts; parts with digits are ids. */
const read = (path: string) => {
  const parts = path
    .slice(0, longestPath)
    .replace(start, "")
    .split("/")
    .filter((part) => part !== "")
  const words = parts.filter((part) => !/[\d:{]/.test(part)).flatMap(wordsOf)
  return { parts: parts.length, words: [...new Set(words.map((word) => word.replace(/s$/, "")))] }
}

const routes = Object.entries(
  Arr.groupBy(
    operations.filter(({ group }) => group !== "inbound"),
    ({ path }) => path
  )
).map(([path, at]) => ({ path, methods: at.map(({ method }) => method), ...read(path) }))

const known = [...new Set(routes.flatMap(({ words }) => words))]

/** How many of a path's words are looked up: no route has as many. */
const mostWords = 5

const mostNamed = 3

/** The sentence about an unknown route; names routes only as they are declared. */
export const unknownRoute = (path: string): string => {
  const asked = read(path)
  const words = new Set(
    asked.words
      .slice(0, mostWords)
      .map((word) => otherWords.get(word) ?? (known.includes(word) ? word : misspelt(word, known)))
  )
  const near = routes
    .map((route) => {
      const shared = route.words.filter((word) => words.has(word)).length
      const extra = Math.abs(route.parts - asked.parts)
      return { ...route, shared, distance: (route.words.length + words.size) / (2 * shared) + extra / 100 }
    })
    .filter(({ shared }) => shared > 0)
    .toSorted((a, b) => a.distance - b.distance)
  const named = near.filter(({ distance }) => distance === near[0]?.distance).slice(0, mostNamed)
  const lines = named.flatMap(({ methods, path }) =>
    methods.map((method) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`)
  )
  return lines.length === 0
    ? "There is no such route; `/openapi.json` lists all routes."
    : `There is no such route. Did you mean ${lines.toSorted().join(" or ")}?`
}
