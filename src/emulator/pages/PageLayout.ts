import type { Effect } from "effect"
import type { EmulatorError } from "../EmulatorError.ts"
import type { HttpReply, HttpRequest } from "../Http.ts"
import type { Service } from "../Service.ts"

/** Answers a request for a page; `id` and `token` are from its path, "" if it has none. */
export type Page = (
  service: Service,
  request: HttpRequest,
  id: string,
  token: string
) => Effect.Effect<HttpReply, EmulatorError>

/** HTML that is safe to put into a page: only {@link html} creates it. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

const escapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;"
}

const escaped = (text: string): string => text.replace(/[&<>"']/g, (character) => escapes[character] ?? "")

/** A part of a page; undefined and false leave nothing. */
export type Part = Html | undefined | false

/** Escapes every value except {@link Html} itself. */
export const html = (
  parts: TemplateStringsArray,
  ...values: ReadonlyArray<string | Part | ReadonlyArray<Html>>
): Html =>
  new Html(
    parts
      .map((part, index) => {
        const value = values[index]
        if (value === undefined || value === false) return part
        if (typeof value === "string") return part + escaped(value)
        return part + (value instanceof Html ? value.text : value.map(({ text }) => text).join(""))
      })
      .join("")
  )

/** Every colour has a light and a dark variant, with a contrast of at least 4.5 to 1. */
const style = html`<style>
:root { color-scheme: light dark; --page: #f3f4f8; --card: #fff; --text: #1c1f2b; --quiet: #555b6e; --line: #d9dce6; --field: #868c9e; --accent: #4b32c3; --on-accent: #fff; --alert: #a3001c; --alert-back: #fdecee; --test: #3d2c00; --test-back: #ffd666 }
@media (prefers-color-scheme: dark) {
:root { --page: #12141b; --card: #1c1f2a; --text: #eceef5; --quiet: #a9afc2; --line: #343949; --field: #737a90; --accent: #a898ff; --on-accent: #17122e; --alert: #ff9aa8; --alert-back: #3a1a21; --test: #3d2c00; --test-back: #f5c542 }
}
* { box-sizing: border-box }
body { margin: 0; font: 1rem/1.5 system-ui, sans-serif; color: var(--text); background: var(--page) }
header { padding: .5rem 1rem; text-align: center; font-size: .875rem; color: var(--test); background: var(--test-back) }
main { width: min(30rem, 100% - 1.5rem); margin: clamp(.75rem, 6vh, 4rem) auto; padding: clamp(1rem, 5vw, 2rem); background: var(--card); border: 1px solid var(--line); border-radius: .75rem }
h1 { margin: 0 0 1rem; font-size: 1.5rem; line-height: 1.25; overflow-wrap: anywhere }
h2 { margin: 1.5rem 0 .5rem; font-size: 1rem }
p { margin: 0 0 1rem; overflow-wrap: anywhere }
a { color: var(--accent) }
.quiet { color: var(--quiet); font-size: .875rem }
.terms { display: block; color: var(--quiet); font-size: .875rem }
label + .quiet { margin-top: -.75rem }
.total + .quiet { margin: -1rem 0 1.5rem }
.total { margin: 0 0 1.5rem; font-size: 2rem; line-height: 1.25; font-weight: 600; font-variant-numeric: tabular-nums }
table { width: 100%; border-collapse: collapse; margin: 0 0 1.5rem; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .5rem .5rem .5rem 0; border-bottom: 1px solid var(--line); vertical-align: baseline; overflow-wrap: anywhere }
thead th { color: var(--quiet); font-size: .875rem; font-weight: 400 }
th:last-child, td:last-child { text-align: right; padding-right: 0; white-space: nowrap }
td input { width: 5rem }
label { display: block; margin: 0 0 1rem; font-weight: 500 }
input, select { display: block; width: 100%; margin-top: .25rem; padding: .625rem .75rem; font: inherit; color: inherit; background: var(--card); border: 1px solid var(--field); border-radius: .375rem }
label.choice { display: flex; gap: .75rem; align-items: baseline; padding: .625rem .75rem; margin: 0 0 .5rem; border: 1px solid var(--line); border-radius: .375rem; font-weight: 400; overflow-wrap: anywhere }
label.choice input { width: auto; margin: 0; flex: none }
button { display: block; width: 100%; min-height: 2.75rem; margin: 0 0 .5rem; padding: .625rem 1rem; font: inherit; cursor: pointer; color: inherit; background: var(--card); border: 1px solid var(--field); border-radius: .375rem }
button.main, button[value=pay] { font-weight: 600; color: var(--on-accent); background: var(--accent); border-color: var(--accent) }
button:hover { filter: brightness(.94) }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px }
fieldset { margin: 1.5rem 0 0; padding: .5rem 1rem .5rem; border: 1px dashed var(--field); border-radius: .5rem }
fieldset p { font-size: .875rem; margin: 0 0 .75rem }
fieldset.choices { margin: 0 0 1rem; padding: 0; border: 0 }
legend { padding: 0 .4rem; font-weight: 600; font-size: .875rem }
.choices legend { margin: 0 0 .5rem; padding: 0; font-size: 1rem }
.back { margin: 1.5rem 0 0 }
.refusal { padding: .75rem 1rem; color: var(--alert); background: var(--alert-back); border-radius: .375rem }
</style>`

/** A page of the emulator, in light and dark, from 360 px of width, and with "test mode" before everything else. */
export const page = (title: string, content: Html): string =>
  html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title} (test mode)</title>
${style}
</head>
<body>
<header><strong>Test mode.</strong> This is the local provider emulator. No money moves.</header>
<main>
<h1>${title}</h1>
${content}
</main>
</body>
</html>
`.text

export const refusalOf = (refusal: string | undefined): Part =>
  refusal !== undefined && html`<p class="refusal" role="alert">${refusal}</p>`

export const messagePage = (title: string, message: string): string =>
  page(title, html`<p role="status">${message}</p>`)

/** Form targets are not restricted, since after a payment a form redirects to the shop. */
export const htmlReply = (status: number, body: string, headers: Readonly<Record<string, string>> = {}): HttpReply => ({
  status,
  headers: {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    ...headers
  },
  body
})

export const messageReply = (status: number, title: string, message: string): HttpReply =>
  htmlReply(status, messagePage(title, message))

/** A redirect; its body links to the other page, for clients that do not follow it. */
export const redirect = (location: string, title: string, message: string): HttpReply =>
  htmlReply(303, messagePage(title, message), { location: new URL(location).href })
