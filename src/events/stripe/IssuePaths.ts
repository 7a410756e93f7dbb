import type { ParseResult } from "effect"
import { innermostIssues } from "../../bounds/Refusals.ts"

/**
 * The dotted paths of the fields that a schema refused, each once; "" for the input itself. Refused values are not
 * read: they may be a payer's data, and the platform's own formatters print them, however large or deep.
 */
export const issuePaths = (issue: ParseResult.ParseIssue): ReadonlyArray<string> => [
  ...new Set([...innermostIssues(issue, [])].map(([path]) => path.map(String).join(".")))
]
