import type { ParseResult } from "effect"

const leaves = (issue: ParseResult.ParseIssue, path: ReadonlyArray<PropertyKey>): ReadonlyArray<string> => {
  switch (issue._tag) {
    case "Pointer":
      return leaves(issue.issue, path.concat(issue.path))
    case "Composite":
      return [issue.issues].flat().flatMap((part) => leaves(part, path))
    case "Refinement":
    case "Transformation":
      return leaves(issue.issue, path)
    default:
      return [path.map(String).join(".")]
  }
}

/**
 * The dotted paths of the fields that a schema refused, each once; "" for the input itself. The refused values are not
 * looked at: they may be a payer's data, and the platform's own formatters write them out, however large or deep.
 */
export const issuePaths = (issue: ParseResult.ParseIssue): ReadonlyArray<string> => [...new Set(leaves(issue, []))]
