import { HttpApiBuilder, HttpRouter, type HttpServerRequest, type HttpServerResponse } from "@effect/platform"
import { Effect, Layer } from "effect"
import { unsupportedOperations } from "../../../payments/OwnProvider.ts"
import { Provider } from "../../../payments/Provider.ts"
import { MethodNotAllowed, ResourceNotFound } from "../../../platform/errors/Errors.ts"
import { cachedForever } from "../../../platform/kit/Concurrency.ts"
import { escaped, htmlDocument, htmlType, iconLink, policyHeaders } from "../../../platform/kit/Page.ts"
import { operations } from "../../contract/Api.ts"
import { publishedDocument } from "../../docs/PublishedDocument.ts"
import type { ServedConsole } from "./Built.ts"
import { consolePath } from "./Paths.ts"
import { findConsole } from "./Source.ts"

/** Serves the console at `/console`: one page for all of its addresses, and the files that it loads. */

const assetsPath = `${consolePath}/assets` as const

/** Nothing from another host, nothing inline. */
const allowed = {
  script: "'self'",
  style: "'self'",
  connect: "'self'",
  img: "'self' data:",
  base: "'self'",
  form: "'self'"
} as const

interface Place {
  /** The console's path with a slash at the end: a proxy may serve the service below a path. */
  readonly base: string
  /** The operations that the installation's provider does not support. */
  readonly unsupported: ReadonlySet<string>
}

const pageOf = ({ imports, script, style, theme }: ServedConsole, { base, unsupported }: Place): string =>
  htmlDocument({
    title: "connected-payments",
    head: `<meta name="color-scheme" content="light dark">
<base href="${escaped(base)}">
<meta name="unsupported" content="${escaped([...unsupported].join(" "))}">
${iconLink}
<script src="assets/${theme}"></script>
<link rel="stylesheet" href="assets/${style}">
${imports.map((name) => `<link rel="modulepreload" href="assets/${name}">\n`).join("")}<script type="module" src="assets/${script}"></script>`,
    body: `<div id="console"></div>
<noscript><p>The console needs JavaScript. Everything that it does, the API does too: see <a href="../docs">the guides</a>.</p></noscript>`
  })

type Answer = Effect.Effect<HttpServerResponse.HttpServerResponse, never, HttpServerRequest.HttpServerRequest>

interface Answers {
  readonly page: Answer
  readonly files: ReadonlyMap<string, Answer>
}

const answersOf = (console: ServedConsole, place: Place): Answers => ({
  page: publishedDocument({
    body: pageOf(console, place),
    contentType: htmlType,
    // Revalidated each time: it names the files of the current version
    cacheControl: "no-cache",
    headers: policyHeaders(allowed)
  }),
  files: new Map(
    console.files.map(({ name, ...file }) => [
      name,
      // Changed content gets a new name
      publishedDocument({ ...file, cacheControl: "public, max-age=31536000, immutable" })
    ])
  )
})

/** The answer to other methods; the edge gives it only for pages with a single path. */
const unchangeable = Effect.suspend(() => new MethodNotAllowed({ allow: ["GET", "HEAD"] }))

/**
 * Serves the console, which is read or bundled on its first request.
 *
 * @param consoleUrl the console's public URL; null if the operator leaves it out
 */
export const consolePages = ({ consoleUrl = null }: { readonly consoleUrl?: string | null }) => {
  const found = consoleUrl === null ? undefined : findConsole()
  if (consoleUrl === null || found === undefined) return Layer.empty
  const base = `${new URL(consoleUrl).pathname}/`
  return HttpApiBuilder.Router.use((router) =>
    Effect.gen(function* () {
      const place = { base, unsupported: unsupportedOperations(operations, yield* Provider) }
      const answers = yield* cachedForever(Effect.map(found, (console) => answersOf(console, place)))
      const page = Effect.flatMap(answers, (made) => made.page)
      const file = Effect.gen(function* () {
        const { params } = yield* HttpRouter.RouteContext
        const made = yield* answers
        const answer = made.files.get(params["*"] ?? "")
        return yield* answer ?? new ResourceNotFound({ message: "The console has no such file." })
      })
      yield* router.get(consolePath, page)
      yield* router.get(`${consolePath}/*`, page)
      yield* router.get(`${assetsPath}/*`, file)
      for (const path of [consolePath, `${consolePath}/*`] as const) {
        yield* router.post(path, unchangeable)
        yield* router.put(path, unchangeable)
        yield* router.patch(path, unchangeable)
        yield* router.del(path, unchangeable)
        yield* router.options(path, unchangeable)
      }
    })
  )
}
