import { documentedErrors, type ErrorDocumentation } from "../../platform/errors/Errors.ts"
import { anchorOf } from "../../platform/kit/ErrorLink.ts"
import { escaped } from "../../platform/kit/Page.ts"
import { withCode } from "./Markdown.ts"

/** The reference of errors for integrators: each code, why it is raised and what to do (contract 12.5). */

export interface ReferencedError extends Pick<ErrorDocumentation, "status" | "code" | "message" | "why" | "remedy"> {
  /** The id of its section on the page: `/docs/errors#validation_failed`. */
  readonly anchor: string
  /** Whether every answer carries `Retry-After`. */
  readonly retryAfter: boolean
}

export const errorReference: ReadonlyArray<ReferencedError> = documentedErrors.map(
  ({ documentation: { code, message, remedy, retryAfter, status, why } }) => ({
    anchor: anchorOf({ code, status }),
    status,
    code,
    message,
    retryAfter: retryAfter !== undefined,
    why,
    remedy
  })
)

export const errorTable = (): string =>
  [
    "| Status | `code` | Why | What to do |",
    "| --- | --- | --- | --- |",
    ...errorReference.map(({ code, remedy, status, why }) => `| ${status} | \`${code}\` | ${why} | ${remedy} |`),
    ""
  ].join("\n")

/** Each error as a section of the page of errors, with an anchor. */
export const errorSections: ReadonlyArray<{
  readonly anchor: string
  readonly heading: string
  readonly html: string
}> = errorReference.map((error) => ({
  anchor: error.anchor,
  heading: error.code,
  html: `<section id="${error.anchor}">
<h3><code>${escaped(error.code)}</code> <small>${error.status}</small></h3>
<p><q>${withCode(error.message)}</q></p>
<p>${withCode(error.why)}</p>
<p><strong>What to do:</strong> ${withCode(error.remedy)}${error.retryAfter ? " The answer carries <code>Retry-After</code>." : ""}</p>
</section>`
}))
