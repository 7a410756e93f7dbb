import { Option, SchemaAST } from "effect"

/**
 * Describes the values that a schema accepts: the second half of a refusal's sentence, "must be …". A schema whose
 * keywords do not say enough (a pattern, a rule about characters) carries its own words; all other descriptions are
 * generated from the schema's kind, bounds and values. No server code.
 */

const RuleId = Symbol.for("connected-payments/bounds/Rule")
const RemarkId = Symbol.for("connected-payments/bounds/Remark")
const EchoId = Symbol.for("connected-payments/bounds/Echo")
const FamiliarId = Symbol.for("connected-payments/bounds/Familiar")

/**
 * A schema's own words, as an annotation.
 *
 * @param words what follows a field's name: "must be a lowercase ISO 4217 code, such as brl"
 */
export const rule = (words: string): { readonly [RuleId]: string } => ({ [RuleId]: words })

export type Remark = { readonly [RemarkId]: string }

/**
 * An addition to the generated words of a schema, as an annotation.
 *
 * @param words what helps to get the value right: "in the smallest unit of the currency"
 */
export const remark = (words: string): Remark => ({ [RemarkId]: words })

/**
 * An annotation: a refusal may repeat this text, such as a public code or a time. Without it, only a number, a Boolean
 * or one of a list of words is repeated. Never use it for text in which callers write names, addresses, URLs, keys or
 * metadata, nor for ids, where a key may be pasted by mistake.
 */
export const echoed: { readonly [EchoId]: true } = { [EchoId]: true }

export type Kind = "string" | "number" | "boolean" | "array" | "object" | "null"

/** The JSON type of a value; `undefined` counts as null. */
export const kindOf = (value: unknown): Kind => {
  if (value === null || value === undefined) return "null"
  if (Array.isArray(value)) return "array"
  switch (typeof value) {
    case "string":
      return "string"
    case "number":
      return "number"
    case "boolean":
      return "boolean"
    default:
      return "object"
  }
}

type Keywords = Readonly<Record<string, unknown>>

/**
 * Names that callers know from elsewhere, as an annotation of an object or of a list of words: each with a hint for the
 * refusal, such as where its value is set.
 */
export const familiar = (names: Readonly<Record<string, string>>): { readonly [FamiliarId]: typeof names } => ({
  [FamiliarId]: names
})

/** The hint of `familiar` about a name in a schema. */
export const familiarIn = (ast: SchemaAST.AST | undefined, name: PropertyKey): string | undefined => {
  const names = ast?.annotations[FamiliarId]
  return typeof names === "object" && names !== null && Object.hasOwn(names, name)
    ? String(Object(names)[name])
    : undefined
}

export interface Taken {
  /** Without a field's name: "must be a whole number from 1 to 100". */
  readonly words: string
  /** The JSON types that it accepts; empty if it accepts any. */
  readonly kinds: ReadonlySet<Kind>
  /** The texts that it accepts, if they are a list. */
  readonly options: ReadonlyArray<string>
  /** The lengths of text that it accepts; null if it accepts any. */
  readonly lengths: { readonly min: number; readonly max: number } | null
  /** The numbers of items that it accepts; null if it accepts any. */
  readonly items: { readonly min: number; readonly max: number } | null
  /** Whether a refusal may repeat the value: accepted values are never secret or personal. */
  readonly echoes: boolean
}

/** The words for a schema about which nothing is known; a test checks that no field of a request has them. */
export const anyForm = "must have another form"

const ownWords = (ast: SchemaAST.Annotated, id: symbol): string | undefined => {
  const words = ast.annotations[id]
  return typeof words === "string" ? words : undefined
}

/** The schema behind another, on the encoded side. */
const behind = (ast: SchemaAST.AST): SchemaAST.AST | undefined => {
  switch (ast._tag) {
    case "Refinement":
    case "Transformation":
      return ast.from
    case "Suspend":
      return ast.f()
    default:
      return undefined
  }
}

/** The outermost words of a schema and of the schemas behind it. */
const wordsBehind = (ast: SchemaAST.AST | undefined, id: symbol): string | undefined =>
  ast === undefined ? undefined : (ownWords(ast, id) ?? wordsBehind(behind(ast), id))

const isEchoed = (ast: SchemaAST.AST | undefined): boolean =>
  ast !== undefined && (ast.annotations[EchoId] === true || isEchoed(behind(ast)))

const requiredOf = ({ propertySignatures }: SchemaAST.TypeLiteral): ReadonlyArray<string> =>
  propertySignatures.filter(({ isOptional }) => !isOptional).map(({ name }) => String(name))

const keywordsOf = (ast: SchemaAST.AST): Keywords => {
  const own: Keywords = { ...Option.getOrElse(SchemaAST.getJSONSchemaAnnotation(ast), () => ({})) }
  const from = behind(ast)
  if (from !== undefined) return { ...keywordsOf(from), ...own }
  switch (ast._tag) {
    case "StringKeyword":
    case "TemplateLiteral":
      return { type: "string", ...own }
    case "NumberKeyword":
      return { type: "number", ...own }
    case "BooleanKeyword":
      return { type: "boolean", ...own }
    case "TupleType":
      return { type: "array", ...own }
    case "TypeLiteral":
      return { type: "object", required: requiredOf(ast), ...own }
    default:
      return own
  }
}

const membersOf = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> => {
  const from = behind(ast)
  if (from !== undefined && ast._tag !== "Refinement") return membersOf(from)
  return ast._tag === "Union" ? ast.types.flatMap(membersOf) : [ast]
}

/** Names in a sentence: "a, b and c". */
export const enumerated = (names: ReadonlyArray<string>): string =>
  [names.slice(0, -1).join(", "), ...names.slice(-1)].filter((part) => part !== "").join(" and ")

const numberOf = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined)

const within = (min: number | undefined, max: number | undefined): string => {
  if (min !== undefined && max !== undefined) return min === max ? `${min}` : `${min} to ${max}`
  return max === undefined ? `at least ${min}` : `at most ${max}`
}

const counted = (range: string, one: string, many: string): string => `${range} ${range === "1" ? one : many}`

const numberWords = ({ maximum, minimum, type }: Keywords): string => {
  const name = type === "integer" ? "a whole number" : "a number"
  const [min, max] = [numberOf(minimum), numberOf(maximum)]
  if (min === undefined && max === undefined) return name
  return `${name} ${min !== undefined && max !== undefined ? "from" : "of"} ${within(min, max)}`
}

const stringWords = ({ maxLength, minLength }: Keywords): string => {
  const [min, max] = [numberOf(minLength), numberOf(maxLength)]
  if (min === undefined && max === undefined) return "a string"
  return `a string of ${counted(within(min, max), "character", "characters")}`
}

const arrayWords = ({ maxItems, minItems, uniqueItems }: Keywords): string => {
  const [min, max] = [numberOf(minItems) || undefined, numberOf(maxItems)]
  const size = min === undefined && max === undefined ? "" : ` of ${counted(within(min, max), "item", "items")}`
  return `an array${size}${uniqueItems === true ? ", each of them once" : ""}`
}

/** The words for an object: the fields that it needs, or how many keys it may have. */
const objectWords = ({ maxProperties, required }: Keywords): string => {
  const max = numberOf(maxProperties)
  if (max !== undefined) return `an object with at most ${max} keys`
  const names = Array.isArray(required) ? required.map(String) : []
  return names.length === 0 ? "an object" : `an object with ${enumerated(names)}`
}

const kindWords = (keywords: Keywords): string | undefined => {
  switch (keywords["type"]) {
    case "integer":
    case "number":
      return numberWords(keywords)
    case "string":
      return stringWords(keywords)
    case "boolean":
      return "true or false"
    case "array":
      return arrayWords(keywords)
    case "object":
      return objectWords(keywords)
    default:
      return undefined
  }
}

/** The JSON types that a schema accepts when encoded: a number in a query is a string. */
const kindsOf = (ast: SchemaAST.AST): ReadonlyArray<Kind> => {
  const from = behind(ast)
  if (from !== undefined) return kindsOf(from)
  switch (ast._tag) {
    case "StringKeyword":
    case "TemplateLiteral":
      return ["string"]
    case "NumberKeyword":
      return ["number"]
    case "BooleanKeyword":
      return ["boolean"]
    case "TupleType":
      return ["array"]
    case "TypeLiteral":
      return ["object"]
    case "Literal":
      return [kindOf(ast.literal)]
    case "Union":
      return ast.types.flatMap(kindsOf)
    default:
      return []
  }
}

const bounds = (min: unknown, max: unknown): Taken["lengths"] =>
  numberOf(min) === undefined && numberOf(max) === undefined
    ? null
    : { min: numberOf(min) ?? 0, max: numberOf(max) ?? Number.POSITIVE_INFINITY }

const listed = (words: ReadonlyArray<string>): string =>
  words.length > 2 ? `one of ${words.join(", ")}` : words.join(" or ")

/** The types whose values are never secret or personal. */
const impersonalTypes: ReadonlySet<unknown> = new Set(["integer", "number", "boolean"])

const memberWords = (ast: SchemaAST.AST): string => {
  if (SchemaAST.isLiteral(ast)) return ast.literal === "" ? "empty" : String(ast.literal)
  return takenBy(ast).words.replace(/^must be /, "")
}

const takenByOne = (ast: SchemaAST.AST): Taken => {
  const keywords = keywordsOf(ast)
  const words = kindWords(keywords)
  return {
    words: words === undefined ? anyForm : `must be ${words}`,
    kinds: new Set(kindsOf(ast)),
    options: [],
    lengths: keywords["type"] === "string" ? bounds(keywords["minLength"], keywords["maxLength"]) : null,
    items: keywords["type"] === "array" ? bounds(keywords["minItems"], keywords["maxItems"]) : null,
    echoes: impersonalTypes.has(keywords["type"]) || isEchoed(ast)
  }
}

const takenByMembers = (members: ReadonlyArray<SchemaAST.AST>): Taken => ({
  words: `must be ${listed(members.map(memberWords))}`,
  kinds: new Set(members.flatMap(kindsOf)),
  options: members.flatMap((member) =>
    SchemaAST.isLiteral(member) && typeof member.literal === "string" ? [member.literal] : []
  ),
  lengths: null,
  items: null,
  echoes: members.every((member) => SchemaAST.isLiteral(member) || takenBy(member).echoes)
})

const known = new WeakMap<SchemaAST.AST, Taken>()

/** A description of the values that a schema accepts when encoded. Computed once per schema. */
export const takenBy = (ast: SchemaAST.AST): Taken => {
  const before = known.get(ast)
  if (before !== undefined) return before
  const members = membersOf(ast)
  const made = members.length > 1 || members.some(SchemaAST.isLiteral) ? takenByMembers(members) : takenByOne(ast)
  const remarks = wordsBehind(ast, RemarkId)
  const words = wordsBehind(ast, RuleId) ?? (remarks === undefined ? made.words : `${made.words} ${remarks}`)
  const taken = { ...made, words }
  known.set(ast, taken)
  return taken
}
