import { type ParseResult, SchemaAST } from "effect"
import { familiarIn, type Kind, kindOf, takenBy } from "./Rules.ts"

/**
 * Why a field of a request was refused: the rule, and how the value broke it.
 *
 * A value is repeated only if its field could not hold a secret or a person's data: a number, true or false, one of a
 * list of words, or text that is marked `echoed`, such as currencies and times. Even then callers may have put anything
 * in it, so only short scalars of plain characters are shown, and nothing that looks like a key or the number of a
 * card. Of all other values the refusal says at most the kind, the length or the number of items. No server code.
 */

/** Where the innermost issue of a refused value was found. */
export interface FoundIssue {
  readonly issue: ParseResult.ParseIssue
  /** The issue of the whole field: its schema and its value as sent. */
  readonly field: ParseResult.ParseIssue
  readonly parent: ParseResult.ParseIssue | undefined
}

const longestEchoed = 30

/** More digits than this may be the number of a card; amounts have at most twelve. */
const mostDigitsEchoed = 12

const plainText = /^[\w .,:+$%/-]+$/
const keyLike = /(?:^|[^a-z])(?:sk|rk|pk|whsec)_|_secret/i

/** A value as a refusal repeats it, or undefined if the refusal may not or need not repeat it. */
const echoOf = (ast: SchemaAST.AST, value: unknown): string | undefined => {
  if (!takenBy(ast).echoes) return undefined
  if (value === null) return "null"
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") return undefined
  const text = String(value)
  const isShown =
    text.length <= longestEchoed &&
    plainText.test(text) &&
    !keyLike.test(text) &&
    text.replaceAll(/\D/g, "").length <= mostDigitsEchoed
  return isShown ? JSON.stringify(value) : undefined
}

/** Separates a rule from the repeated value; no rule contains it. */
const gotMark = "; got "

/** A reason in two parts: the rule, and the value with its remark, if there is one. */
export const partsOfReason = (reason: string): { readonly rule: string; readonly got: string | undefined } => {
  const at = reason.indexOf(gotMark)
  return at === -1
    ? { rule: reason, got: undefined }
    : { rule: reason.slice(0, at), got: reason.slice(at + gotMark.length) }
}

const countedCharacters = 10_000

const longestSuggested = 40

const maxDistance = 2

const distance = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}

/** A name without differences that readers overlook: upper case, spaces, `_` and `-`. */
const folded = (name: string): string => name.toLowerCase().replaceAll(/[\s_-]/g, "")

export const wordsOf = (name: string): ReadonlyArray<string> =>
  name
    .replaceAll(/([a-z])(?=[A-Z])/g, "$1 ")
    .toLowerCase()
    .match(/[a-z]+/g) ?? []

/** Of the names that have only words of another, or all of its words, the one that shares the most with it. */
const sharing = (name: string, known: ReadonlyArray<string>): string | undefined => {
  const mine = new Set(wordsOf(name))
  return known
    .map((other) => ({ other, words: wordsOf(other) }))
    .map((one) => ({ ...one, shared: one.words.filter((word) => mine.has(word)).length }))
    .filter(({ shared, words }) => shared > 0 && (shared === words.length || shared === mine.size))
    .toSorted((a, b) => b.shared - a.shared || a.words.length - b.words.length)[0]?.other
}

export const misspelt = (name: string, known: ReadonlyArray<string>): string | undefined => {
  if (name.length < 3 || name.length > longestSuggested) return undefined
  const mine = folded(name)
  return (
    known
      .map((other) => ({ other, theirs: folded(other) }))
      // The distance is no less than the difference of the lengths
      .filter(({ theirs }) => Math.abs(theirs.length - mine.length) <= maxDistance)
      .map(({ other, theirs }) => ({ other, away: distance(mine, theirs) }))
      .filter(({ away }) => away <= Math.min(maxDistance, mine.length / 3))
      .toSorted((a, b) => a.away - b.away)[0]?.other
  )
}

/** The suffix for a name similar to a known one: "; did you mean amountMin?"; otherwise empty. */
export const suggestion = (name: unknown, known: ReadonlyArray<string>): string => {
  if (typeof name !== "string" || name.length < 3 || name.length > longestSuggested) return ""
  const other = misspelt(name, known) ?? sharing(name, known)
  return other === undefined ? "" : `; did you mean ${other}?`
}

const keyWords = (issue: ParseResult.ParseIssue | undefined): string | undefined => {
  const [keys] = issue?._tag === "Composite" && SchemaAST.isTypeLiteral(issue.ast) ? issue.ast.indexSignatures : []
  return keys === undefined ? undefined : takenBy(keys.parameter).words
}

const fieldsOf = ({ propertySignatures }: SchemaAST.TypeLiteral): ReadonlyArray<string> =>
  propertySignatures.map(({ name }) => String(name))

/** Other APIs' names for the cursor of the next page. */
const otherCursors = /^(?:after|cursor|ending_before|offset|page|page_token|start|starting_before)$/

/** The hint about an unknown field: where it is set, or its name here. */
const unknownField = (name: PropertyKey | undefined, parent: ParseResult.ParseIssue | undefined): string => {
  const unknown = "is not a known field"
  if (parent?._tag !== "Composite" || !SchemaAST.isTypeLiteral(parent.ast)) return unknown
  const words = familiarIn(parent.ast, name ?? "")
  if (words !== undefined) return `${unknown}: ${words}`
  const fields = fieldsOf(parent.ast)
  return fields.includes("starting_after") && otherCursors.test(String(name))
    ? `${unknown}: the next page begins after the last id of this one, which is sent as starting_after`
    : `${unknown}${suggestion(name, fields)}`
}

const kindNames: Record<Exclude<Kind, "array">, string> = {
  string: "a string",
  number: "a number",
  boolean: "a boolean",
  object: "an object",
  null: "null"
}

/** How long a text is, in characters, or a note that it is far too long. */
const lengthWords = (text: string): string => {
  if (text === "") return "it is empty"
  const characters = [...text.slice(0, 2 * countedCharacters + 2)].length
  if (characters > countedCharacters) return `it has more than ${countedCharacters} characters`
  return `it has ${characters} ${characters === 1 ? "character" : "characters"}`
}

const outside = (count: number, range: { readonly min: number; readonly max: number } | null): boolean =>
  range !== null && (count < range.min || count > range.max)

/**
 * The part of a reason about a refused value: the value itself if it may be repeated, otherwise a fact about it.
 *
 * @param read the value as its bounds were applied to it: a header's bytes are one character each as they are sent
 */
const factOf = (ast: SchemaAST.AST, value: unknown, read: unknown, array: string): string => {
  const { items, kinds, lengths, options } = takenBy(ast)
  const kind = kindOf(value)
  const isOtherKind = kinds.size > 0 && !kinds.has(kind)
  const echo = echoOf(ast, value)
  if (echo !== undefined) {
    const known = familiarIn(ast, String(value))
    const remark = known === undefined ? suggestion(value, options) : `; ${known}`
    return `${gotMark}${echo}${isOtherKind && kind === "string" ? ", a string" : remark}`
  }
  if (isOtherKind) return `; it is ${kind === "array" ? array : kindNames[kind]}`
  if (typeof value === "string") {
    if (value === "" && !options.includes("")) return "; it is empty"
    const text = typeof read === "string" ? read : value
    return outside([...text.slice(0, 2 * countedCharacters + 2)].length, lengths)
      ? `; ${lengthWords(text)}`
      : suggestion(value, options)
  }
  return Array.isArray(value) && outside(value.length, items)
    ? `; it has ${value.length} ${value.length === 1 ? "item" : "items"}`
    : ""
}

/** A rule of this service, in the words of the schema's filter; the library's own messages may repeat the value. */
const ruleBroken = (issue: ParseResult.ParseIssue): string | undefined =>
  issue._tag === "Type" && SchemaAST.isRefinement(issue.ast) ? issue.message : undefined

const astOf = (issue: ParseResult.ParseIssue): SchemaAST.AST | undefined => {
  switch (issue._tag) {
    case "Missing":
      return issue.ast.type
    case "Type":
    case "Forbidden":
    case "Refinement":
    case "Transformation":
    case "Composite":
      return issue.ast
    default:
      return undefined
  }
}

/** Why a field was refused, without its name: "must be a whole number from 1 to 100; it is a string". */
export const reasonOf = (
  { field, issue, parent }: FoundIssue,
  { array, name }: { readonly name: PropertyKey | undefined; readonly array: string }
): string => {
  if (issue._tag === "Unexpected") {
    // A record has any keys of the right form
    return keyWords(parent) ?? unknownField(name, parent)
  }
  const ast = astOf(field)
  const taken = ast === undefined ? "is not valid" : takenBy(ast).words
  if (issue._tag === "Missing") return `is missing; it ${taken}`
  const broken = ruleBroken(issue)
  if (broken !== undefined) {
    const echo = ast === undefined ? undefined : echoOf(ast, field.actual)
    return echo === undefined ? broken : `${broken}${gotMark}${echo}`
  }
  return ast === undefined ? taken : `${taken}${factOf(ast, field.actual, issue.actual, array)}`
}
