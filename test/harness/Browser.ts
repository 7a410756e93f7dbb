import { existsSync } from "node:fs"
import { Context, Effect, Layer, type Scope } from "effect"
import { type BrowserContext, chromium, type Browser as Engine } from "playwright-core"

/**
 * Where systems keep Chromium or Chrome; `CHROMIUM` names another place. First the one without windows, which opens a
 * context in a third of the time.
 */
const candidates = [
  process.env["CHROMIUM"],
  "/usr/bin/chromium-headless-shell",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
]

const executable = candidates.find((path) => path !== undefined && existsSync(path))

/** Tests that need a browser are skipped where there is none; this says so in their names. */
export const hasBrowser = executable !== undefined
export const browserNote = hasBrowser ? "" : " (skipped: no Chromium found; install it or set CHROMIUM)"

/**
 * What the browser does without. The first two are pages of its own that every window loads, hidden: to start and draw them
 * takes five times as long as the rest of a window. The others are those that Playwright turns off, whose list this replaces.
 */
const disabledFeatures = [
  "WebUIOmniboxPopup",
  "WebUIOmniboxAimPopup",
  "AimEnabled",
  "AvoidCorsURLLoaderRestartOnRedirect",
  "AvoidUnnecessaryBeforeUnloadCheckSync",
  "DestroyProfileOnBrowserClose",
  "HttpsFirstBalancedModeAutoEnable",
  "HttpsUpgrades",
  "LensOverlay",
  "MediaRouter",
  "NetworkTimeServiceQuerying",
  "OptimizationHints",
  "PaintHolding",
  "PreconnectToSearch",
  "ThirdPartyStoragePartitioning"
]

const options = {
  ...(executable === undefined ? {} : { executablePath: executable }),
  headless: true,
  args: [
    // The browser's own sandbox does not work for root; the pages are the tests' own
    ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
    `--disable-features=${disabledFeatures.join(",")}`,
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync"
  ]
}

const launch = Effect.promise(() => chromium.launch(options))

let running: Promise<Engine> | undefined

/** Started by the first suite of a worker that asks for it, it ends with the worker: a start takes as long as several tests. */
const sharedEngine = Effect.promise(() => {
  running ??= Effect.runPromise(launch)
  return running
})

/** A headless browser with cookies, storage and a cache of its own, for the length of the scope. */
export const openBrowser: Effect.Effect<BrowserContext, never, Scope.Scope> = Effect.acquireRelease(
  Effect.flatMap(sharedEngine, (engine) => Effect.promise(() => engine.newContext())),
  (context) => Effect.promise(() => context.close())
)

export class Browser extends Context.Tag("test/Browser")<Browser, BrowserContext>() {
  static readonly layer = Layer.scoped(Browser, openBrowser)
}

/** A headless browser whose contexts are people of their own, each with their cookies and storage. */
export class Chromium extends Context.Tag("test/Chromium")<Chromium, Engine>() {
  static readonly layer = Layer.scoped(
    Chromium,
    Effect.acquireRelease(launch, (engine) => Effect.promise(() => engine.close()))
  )

  static readonly shared = Layer.effect(Chromium, sharedEngine)
}
