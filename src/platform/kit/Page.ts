import { createHash } from "node:crypto"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"

/** The pages that the service renders itself: their skeleton and their policies. */

/** Text as HTML, in an element or an attribute in double quotes. */
export const escaped = (text: string): string =>
  text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;")

export const iconLink = `<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' rx='7' fill='%231f2937'/%3E%3Cpath d='M7 12h18v2H7zm0 5h10v2H7z' fill='%23fff'/%3E%3C/svg%3E">`

/** The sources that a page may use, as in a content security policy. */
export interface Allowed {
  readonly script?: string
  readonly style?: string
  readonly connect?: string
  readonly img?: string
  readonly font?: string
  readonly base?: string
  readonly form?: string
}

const fetched = ["script", "style", "connect", "img", "font"] as const

/** The policy of an uploaded file: it loads nothing and runs no scripts, even if a browser takes it for a page. */
export const uploadPolicy = "default-src 'none'; sandbox"

export const contentPolicy = (allowed: Allowed): string =>
  [
    "default-src 'none'",
    ...fetched.flatMap((kind) => (allowed[kind] === undefined ? [] : [`${kind}-src ${allowed[kind]}`])),
    `base-uri ${allowed.base ?? "'none'"}`,
    `form-action ${allowed.form ?? "'none'"}`,
    "frame-ancestors 'none'"
  ].join("; ")

/** The headers of a page that everybody may keep. */
export const policyHeaders = (allowed: Allowed) => ({
  "content-security-policy": contentPolicy(allowed),
  "referrer-policy": "no-referrer"
})

/** The headers of an answer to a person, such as a redirect, that nobody keeps. */
export const privateHeaders = {
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff"
} as const

export const htmlType = "text/html; charset=utf-8"

/**
 * A whole page.
 *
 * @param page.head HTML within the head, after the title
 * @param page.indexed whether search engines may list it
 */
export const htmlDocument = (page: {
  readonly title: string
  readonly head: string
  readonly body: string
  readonly indexed?: boolean
}): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
${page.indexed === true ? "" : '<meta name="robots" content="noindex">\n'}<title>${escaped(page.title)}</title>
${page.head}
</head>
<body>
${page.body}
</body>
</html>
`

export const plainStyle =
  "body{font:1.1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:15vh auto;padding:0 1rem;color:#1a1a1a;background:#fff}"

const sha256 = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`

/** Answers with a page whose style, and script if it has one, are inline and nothing else is. */
export const page = (options: {
  readonly title: string
  readonly style: string
  readonly main: string
  readonly script?: string
  readonly allowed?: Allowed
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
}): HttpServerResponse.HttpServerResponse => {
  const { allowed = {}, headers, main, script, status = 200, style, title } = options
  const inline = { style: sha256(style), ...(script === undefined ? {} : { script: sha256(script) }) }
  return HttpServerResponse.raw(
    htmlDocument({
      title,
      head: `${allowed.img === undefined ? "" : `${iconLink}\n`}<style>${style}</style>`,
      body: `<main>\n${main}\n</main>${script === undefined ? "" : `\n<script>${script}</script>`}`
    }),
    {
      status,
      headers: {
        ...privateHeaders,
        "content-security-policy": contentPolicy({ ...allowed, ...inline }),
        "content-type": htmlType,
        ...headers
      }
    }
  )
}
