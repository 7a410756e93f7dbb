import { HttpApiBuilder } from "@effect/platform"
import { documentedErrors, type ErrorDocumentation } from "../Errors.ts"
import { anchorOf, errorReferencePath } from "../kit/ErrorLink.ts"
import { withGenerated } from "./Generated.ts"
import { publishedDocument } from "./PublishedDocument.ts"

/** The reference of errors for integrators: each code, why it is raised and what to do (contract, Errors). */

/** A documented error as the reference shows it. */
export interface ReferencedError extends Pick<ErrorDocumentation, "status" | "code" | "message" | "why" | "remedy"> {
  /** The id of its section on the page: `/docs/errors#validation_failed`. */
  readonly anchor: string
  /** Whether every answer carries `Retry-After`. */
  readonly retryAfter: boolean
}

/** Every documented error, by status and in the order of their declaration. */
export const errorReference: ReadonlyArray<ReferencedError> = documentedErrors
  .map(({ documentation: { code, message, remedy, retryAfter, status, why } }) => ({
    anchor: anchorOf({ code, status }),
    status,
    code,
    message,
    retryAfter: retryAfter !== undefined,
    why,
    remedy
  }))
  .sort((a, b) => a.status - b.status)

/** The reference as a Markdown table. */
export const errorTable = (): string =>
  [
    "| Status | `code` | Why | What to do |",
    "| --- | --- | --- | --- |",
    ...errorReference.map(({ code, remedy, status, why }) => `| ${status} | \`${code}\` | ${why} | ${remedy} |`),
    ""
  ].join("\n")

/** A text with the table of errors between its markers brought up to date. */
export const withErrorTable = (text: string): string => withGenerated(text, "errors", errorTable())

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")

/** The texts above mark code in backquotes. */
const marked = (text: string): string => escaped(text).replaceAll(/`([^`]+)`/g, "<code>$1</code>")

const sectionOf = (error: ReferencedError): string => `<section id="${error.anchor}">
<h2><code>${escaped(error.code)}</code> <small>${error.status}</small></h2>
<p><q>${marked(error.message)}</q></p>
<p>${marked(error.why)}</p>
<p><strong>What to do:</strong> ${marked(error.remedy)}${error.retryAfter ? " The answer carries <code>Retry-After</code>." : ""}</p>
</section>`

const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Errors of connected-payments</title>
<style>body { font: 1rem/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem }
small { color: #666 } section:target { background: #fff7d6 }</style>
</head>
<body><main><h1>Errors</h1>
<p>Every failure answers <code>{error, code, fields, requestId}</code>: a sentence, a stable code, the refused fields as
dotted paths, and the id to quote when you ask us. The sentence says of each refused field, in the same order, what was
wrong and what is right; it never repeats what was sent. The <code>Link</code> header of every error leads here. Go by the
code; sentences may change.</p>
${errorReference.map(sectionOf).join("\n")}
</main></body>
</html>
`

/** Serves the reference. */
export const errorReferencePage = HttpApiBuilder.Router.use((router) =>
  router.get(
    errorReferencePath,
    publishedDocument({
      body: page,
      contentType: "text/html; charset=utf-8",
      cacheControl: "public, max-age=3600",
      headers: {
        "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
      }
    })
  )
)
