import type { ParseResult } from "effect"
import { type FoundIssue, partsOfReason, reasonOf } from "./Reasons.ts"
import { enumerated } from "./Rules.ts"

/** However much of a request is wrong, its refusal stays small, and checking stops early. No server code. */

export const maxRefusedFields = 20

export const maxFieldLength = 200

export const maxMessageLength = 2000

/** How many characters of a field's name its reason repeats. */
const maxNameInReason = 80

const cut = (text: string, max: number): string => {
  if (text.length <= max) return text
  // Two units hold at least one character, so more of the text is never needed
  const characters = [...text.slice(0, 2 * max + 2)]
  return characters.length <= max ? text : `${characters.slice(0, max - 1).join("")}…`
}

/** A field's dotted path, e.g. `line_items.0.price`, within its bound. */
export const fieldName = (path: ReadonlyArray<PropertyKey>): string => {
  let name = ""
  for (const [index, part] of path.entries()) {
    // A key may be as long as a body
    name += `${index === 0 ? "" : "."}${String(part).slice(0, 2 * maxFieldLength + 2)}`
    if (name.length > 2 * maxFieldLength) break
  }
  return cut(name, maxFieldLength)
}

export const boundedFields = (fields: ReadonlyArray<string>): ReadonlyArray<string> =>
  fields.slice(0, maxRefusedFields).map((field) => cut(field, maxFieldLength))

export const boundedMessage = (message: string): string => cut(message, maxMessageLength)

/** The innermost issues of a refused value, each with its path. A generator, so that the caller can stop early. */
export function* innermostIssues(
  issue: ParseResult.ParseIssue,
  path: ReadonlyArray<PropertyKey>,
  around: Pick<FoundIssue, "field" | "parent"> = { field: issue, parent: undefined }
): Generator<readonly [path: ReadonlyArray<PropertyKey>, found: FoundIssue]> {
  switch (issue._tag) {
    case "Pointer":
      return yield* innermostIssues(issue.issue, path.concat(issue.path), { ...around, field: issue.issue })
    case "Composite":
      for (const part of "_tag" in issue.issues ? [issue.issues] : issue.issues) {
        yield* innermostIssues(part, path, { ...around, parent: issue })
      }
      return
    case "Refinement":
    case "Transformation":
      return yield* innermostIssues(issue.issue, path, around)
    default:
      yield [path, { ...around, issue }]
  }
}

export type Reasons = ReadonlyMap<string, string>

export interface RefusalNames {
  /** The name of the refused value itself, in front of every path. Default: none. */
  readonly root?: string
  /** Put between a field and its reason: "in the query". Default: nothing. */
  readonly where?: string
  /** How to describe several values instead of one: "given more than once". Default: "an array". */
  readonly array?: string
}

/** The fields that a schema refused, at most `maxRefusedFields` of them, each with the first reason found. */
export const boundedRefusals = (
  issue: ParseResult.ParseIssue,
  { array = "an array", root, where }: RefusalNames = {}
): Reasons => {
  const refused = new Map<string, string>()
  for (const [path, found] of innermostIssues(issue, root === undefined ? [] : [root])) {
    const name = fieldName(path)
    if (!refused.has(name)) {
      const reason = reasonOf(found, { name: path.at(-1), array })
      refused.set(name, where === undefined ? reason : `${where} ${reason}`)
    }
    if (refused.size >= maxRefusedFields) break
  }
  return refused
}

/** Consecutive fields that are refused for the same reason, each with the value that it repeats. */
interface Group {
  readonly fields: Array<{ readonly name: string; readonly got: string | undefined }>
  readonly rule: string
}

/** Groups consecutive fields that must have the same form, so that one sentence names them all. */
const grouped = (reasons: Reasons, whole: string): ReadonlyArray<Group> => {
  const groups: Array<Group> = []
  for (const [field, reason] of reasons) {
    const name = field === "" ? whole : `\`${cut(field, maxNameInReason)}\``
    const { got, rule } = partsOfReason(reason)
    const last = groups.at(-1)
    if (last?.rule === rule && /^(?:in the \w+ )?must /.test(rule)) last.fields.push({ name, got })
    else groups.push({ fields: [{ name, got }], rule })
  }
  return groups
}

const sentence = ({ fields, rule }: Group): string => {
  const [first, ...others] = fields
  const said =
    first === undefined || others.length > 0
      ? `${enumerated(fields.map(({ got, name }) => (got === undefined ? name : `${name} (got ${got})`)))} ${rule}`
      : `${first.name} ${rule}${first.got === undefined ? "" : `; got ${first.got}`}`
  return `${said}${/[.?]$/.test(said) ? "" : "."}`
}

/** The space reserved for the sentence about fields that do not fit. */
const remainder = 50

/**
 * Why fields were refused, as sentences in the order of the fields, within the bound of a message.
 *
 * @param whole how to name a value that has no name
 */
export const explained = (reasons: Reasons, whole = "The request body"): string => {
  let text = ""
  let said = 0
  for (const group of grouped(reasons, whole)) {
    const longer = `${text}${text === "" ? "" : " "}${cut(sentence(group), maxMessageLength - remainder)}`
    if (longer.length > maxMessageLength - remainder) return `${text} \`fields\` names ${reasons.size - said} more.`
    text = longer
    said += group.fields.length
  }
  return text
}

/**
 * The `message` and `fields` of an error about refused fields.
 *
 * @param whole how to name a value that has no name, e.g. "The request body"
 */
export const refusal = (
  reasons: Reasons,
  whole?: string
): { readonly message: string; readonly fields: ReadonlyArray<string> } => ({
  message: explained(reasons, whole),
  fields: [...reasons.keys()].filter((field) => field !== "")
})
