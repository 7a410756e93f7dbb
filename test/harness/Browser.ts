import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Context, Effect, Layer, type Scope } from "effect"
import { type BrowserContext, chromium, type Browser as Engine } from "playwright-core"

/** Where systems keep Chromium or Chrome; `CHROMIUM` names another place. */
const candidates = [
  process.env["CHROMIUM"],
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
]

const executable = candidates.find((path) => path !== undefined && existsSync(path))

/** Tests that need a browser are skipped where there is none; this says so in their names. */
export const hasBrowser = executable !== undefined
export const browserNote = hasBrowser ? "" : " (skipped: no Chromium found; install it or set CHROMIUM)"

const options = {
  ...(executable === undefined ? {} : { executablePath: executable }),
  headless: true,
  args: [
    // The browser's own sandbox does not work for root; the pages are the tests' own
    ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync"
  ]
}

/** A headless browser with a profile of its own, for the length of the scope. */
export const openBrowser: Effect.Effect<BrowserContext, never, Scope.Scope> = Effect.acquireRelease(
  Effect.promise(async () => {
    const profile = mkdtempSync(join(tmpdir(), "connected-payments-browser-"))
    const context = await chromium.launchPersistentContext(profile, options)
    return { context, profile }
  }),
  ({ context, profile }) =>
    Effect.promise(async () => {
      await context.close()
      rmSync(profile, { recursive: true, force: true })
    })
).pipe(Effect.map(({ context }) => context))

/** A headless browser that the tests of a suite share. */
export class Browser extends Context.Tag("test/Browser")<Browser, BrowserContext>() {
  static readonly layer = Layer.scoped(Browser, openBrowser)
}

/** A headless browser whose contexts are people of their own, each with their cookies and storage. */
export class Chromium extends Context.Tag("test/Chromium")<Chromium, Engine>() {
  static readonly layer = Layer.scoped(
    Chromium,
    Effect.acquireRelease(
      Effect.promise(() => chromium.launch(options)),
      (engine) => Effect.promise(() => engine.close())
    )
  )
}
