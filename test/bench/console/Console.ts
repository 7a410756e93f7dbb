import { join } from "node:path"
import { Console, Context, Effect, Layer, Redacted, Schema } from "effect"
import type { Browser } from "playwright-core"
import { browserNote, Chromium, hasBrowser } from "../../harness/Browser.ts"
import { makeMailbox } from "../../harness/Mailbox.ts"
import { BenchFailed, type Local, localOf, startBuilt } from "../api/Processes.ts"
import { type Bench, figuresOf, inRounds } from "../Bench.ts"
import { type Database, makeEndpoint, startDatabase } from "../deliveries/Bed.ts"

/**
 * How long until the console's first page can be used: the overview of who is signed in, with 30 days of numbers, in a
 * browser that has nothing of it yet. Beside it, in turns, a bare page of the same service: its guides, which run no script.
 */

const rounds = 7

/** Far beyond what any page takes: a page that is not there by then never will be. */
const limit = "60 seconds"

/** Opened by a browser, and what is there once the page can be used: its heading, and what it shows first. */
interface Opened {
  readonly path: string
  readonly heading: string
  readonly usable: string
}

const overview: Opened = { path: "/console/sandbox", heading: "main h1", usable: "main .figures" }
const bare: Opened = { path: "/docs", heading: "main h1", usable: "main h1" }

/** What a page says of its load: milliseconds since the navigation began, and bytes as they were sent. */
const Load = Schema.Struct({
  heading: Schema.Number,
  usable: Schema.Number,
  script: Schema.Number,
  style: Schema.Number,
  files: Schema.Number
})

/** Notes when each thing is there and the frame with it is drawn. */
const watching = ({ heading, usable }: Opened): string => `
  const wanted = new Map(Object.entries(${JSON.stringify({ heading, usable })}))
  const observer = new MutationObserver(() => {
    for (const [name, selector] of wanted) {
      if (document.querySelector(selector) === null) continue
      wanted.delete(name)
      requestAnimationFrame(() => setTimeout(() => performance.mark(name)))
    }
    if (wanted.size === 0) observer.disconnect()
  })
  observer.observe(document, { childList: true, subtree: true })`

const reading = `new Promise((resolve) => {
  const at = (name) => performance.getEntriesByName(name)[0]?.startTime
  const bytes = (files) => files.reduce((sum, file) => sum + file.encodedBodySize, 0)
  const look = () => {
    if (at("heading") === undefined || at("usable") === undefined) return setTimeout(look, 10)
    const files = performance.getEntriesByType("resource")
    const named = (ending) => files.filter(({ name }) => new URL(name).pathname.endsWith(ending))
    const [scripts, styles] = [named(".js"), named(".css")]
    resolve({
      heading: at("heading"), usable: at("usable"),
      script: bytes(scripts), style: bytes(styles), files: scripts.length + styles.length
    })
  }
  look()
})`

/** Opens a page as a browser does that has never been there. */
const load = (
  engine: Browser,
  baseUrl: string,
  cookie: { readonly name: string; readonly value: string },
  to: Opened
) =>
  Effect.acquireUseRelease(
    Effect.promise(() => engine.newContext({ viewport: { width: 1280, height: 900 } })),
    (context) =>
      Effect.gen(function* () {
        const answer = yield* Effect.promise(async () => {
          const url = baseUrl.replace("http:", "https:")
          await context.addCookies([{ ...cookie, url, httpOnly: true, secure: true, sameSite: "Lax" }])
          await context.addInitScript(watching(to))
          const page = await context.newPage()
          await page.goto(`${baseUrl}${to.path}`)
          return page.evaluate(reading)
        })
        return yield* Schema.decodeUnknown(Load)(answer)
      }),
    (context) => Effect.promise(() => context.close())
  ).pipe(
    Effect.timeoutFail({
      duration: limit,
      onTimeout: () => new BenchFailed({ message: `${to.path} is not usable after ${limit}` })
    })
  )

/** Thirty days in which something happened on each, in two currencies. */
const countDays = Effect.fnUntraced(function* (database: Database, organizationId: string) {
  const endpoint = yield* makeEndpoint(database, organizationId, "https://shop.example/hook")
  const days = "(SELECT (now() AT TIME ZONE 'UTC')::date - ago AS day FROM generate_series(1, 29) AS ago) AS days"
  yield* database.query(
    `INSERT INTO payments.payment_counts
       (organization_id, environment, day, pass, slot, currency, kind, count, amount)
     SELECT $1, 'sandbox', day, 0, day::timestamp AT TIME ZONE 'UTC', currency, kind, 20, 90000
     FROM ${days} CROSS JOIN
       (VALUES ('brl', 'succeeded'), ('brl', 'failed'), ('brl', 'refunded'), ('jpy', 'succeeded')) AS kinds (currency, kind)`,
    [organizationId]
  )
  yield* database.query(
    `INSERT INTO payments.delivery_counts
       (organization_id, environment, day, pass, slot, endpoint_id, delivered, failed, queued)
     SELECT $1, 'sandbox', day, 0, day::timestamp AT TIME ZONE 'UTC', $2, 60, 3, 0 FROM ${days}`,
    [organizationId, endpoint.id]
  )
})

/** The cookie of the local organization's owner, who signs in by the mailed link. */
const signIn = Effect.fnUntraced(function* (
  { baseUrl, ownerEmail }: Local,
  mailbox: Effect.Effect.Success<ReturnType<typeof makeMailbox>>
) {
  const post = (path: string, body: unknown) =>
    Effect.promise(() =>
      fetch(`${baseUrl}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body)
      })
    )
  yield* post("/identity/sign-in-links", { email: ownerEmail })
  const { text } = yield* mailbox.mailTo(ownerEmail)
  const [, token = ""] = /#([A-Za-z0-9_-]{43})$/m.exec(text) ?? []
  const answer = yield* post("/identity/session", { token })
  const [, name, value] = /^([^=]+)=([^;]+)/.exec(answer.headers.getSetCookie()[0] ?? "") ?? []
  return name === undefined || value === undefined
    ? yield* new BenchFailed({ message: `Signing in is answered ${answer.status}` })
    : { name, value }
})

export const consoleBench: Bench = {
  name: "console",
  about: "until the console's first page can be used, beside a page without scripts",
  run: Effect.gen(function* () {
    if (!hasBrowser) return yield* new BenchFailed({ message: `There is no browser${browserNote}` })
    yield* Console.error("Building and starting the service…")
    const database = yield* startDatabase
    const mailbox = yield* makeMailbox()
    const DATA_DIR = join(database.directory, "service")
    yield* startBuilt("all", { DATA_DIR, DATABASE_URL: database.url, SMTP_URL: Redacted.value(mailbox.url) })
    const local = yield* localOf(DATA_DIR)
    yield* countDays(database, local.organizationId)
    const cookie = yield* signIn(local, mailbox)
    const engine = Context.get(yield* Layer.build(Chromium.layer), Chromium)
    const open = (to: Opened) => load(engine, local.baseUrl, cookie, to)
    // The first visit finds the service itself cold
    yield* open(overview)
    yield* open(bare)
    const measured = yield* inRounds(rounds, () =>
      Effect.tap(Effect.all({ ours: open(overview), bare: open(bare) }), ({ bare, ours }) =>
        Console.error(`  ${ours.usable.toFixed(0)} ms, bare ${bare.usable.toFixed(0)} ms`)
      )
    )
    const figure = figuresOf("console", measured)
    return [
      figure("overview, nothing cached", "usable_ms", "ms", ({ ours }) => ours.usable),
      figure("overview, nothing cached", "heading_ms", "ms", ({ ours }) => ours.heading),
      figure("overview, nothing cached", "script", "kB", ({ ours }) => ours.script / 1000),
      figure("overview, nothing cached", "style", "kB", ({ ours }) => ours.style / 1000),
      figure("overview, nothing cached", "files", "count", ({ ours }) => ours.files),
      figure("overview, nothing cached", "times_bare", "ratio", (one) => one.ours.usable / one.bare.usable),
      figure("bare page, /docs", "usable_ms", "ms", (one) => one.bare.usable),
      figure("bare page, /docs", "style", "kB", (one) => one.bare.style / 1000)
    ]
  })
}
