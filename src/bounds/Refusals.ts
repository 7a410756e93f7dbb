import type { ParseResult } from "effect"

/**
 * What an error says of refused fields, within bounds: however much of a request is wrong, its answer stays small, and
 * no more of it is looked at than the answer can hold. Holds no server code.
 */

/** How many fields an error names at most. */
export const maxRefusedFields = 20

/** The length of a field's name in an error, in characters, at most. */
export const maxFieldLength = 200

/** The length of an error's message, in characters, at most. */
const maxMessageLength = 1000

/** A text of at most so many characters; one that was cut ends in an ellipsis. */
const cut = (text: string, max: number): string => {
  if (text.length <= max) return text
  // Two units hold at least one character: no more of the text than that can be of use
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

/** The first fields of an error, each within its bound. */
export const boundedFields = (fields: ReadonlyArray<string>): ReadonlyArray<string> =>
  fields.slice(0, maxRefusedFields).map((field) => cut(field, maxFieldLength))

/** The message of an error, within its bound. */
export const boundedMessage = (message: string): string => cut(message, maxMessageLength)

/** The innermost issues of a refused value, each under its path, one by one: whoever asks may stop. */
function* leaves(
  issue: ParseResult.ParseIssue,
  path: ReadonlyArray<PropertyKey>
): Generator<readonly [path: ReadonlyArray<PropertyKey>, issue: ParseResult.ParseIssue]> {
  switch (issue._tag) {
    case "Pointer":
      return yield* leaves(issue.issue, path.concat(issue.path))
    case "Composite":
      for (const part of "_tag" in issue.issues ? [issue.issues] : issue.issues) yield* leaves(part, path)
      return
    case "Refinement":
    case "Transformation":
      return yield* leaves(issue.issue, path)
    default:
      yield [path, issue]
  }
}

/**
 * The fields that a schema refused, at most `maxRefusedFields` of them, each with the first issue found there.
 *
 * @param root what the refused value itself is called, in front of every path; absent, it has no name
 */
export const boundedRefusals = (
  issue: ParseResult.ParseIssue,
  root?: string
): ReadonlyMap<string, ParseResult.ParseIssue> => {
  const refused = new Map<string, ParseResult.ParseIssue>()
  for (const [path, leaf] of leaves(issue, root === undefined ? [] : [root])) {
    const name = fieldName(path)
    if (!refused.has(name)) refused.set(name, leaf)
    if (refused.size >= maxRefusedFields) break
  }
  return refused
}
