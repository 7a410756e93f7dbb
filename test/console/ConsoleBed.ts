import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { createServer } from "node:net"
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Layer, Option, type Scope } from "effect"
import type { BrowserContext, BrowserContextOptions, Page } from "playwright-core"
import type { Environment } from "../../src/events/Environment.ts"
import { Members } from "../../src/identity/members/Members.ts"
import type { Role } from "../../src/identity/Principal.ts"
import type { ServiceOptions } from "../../src/Service.ts"
import { Chromium } from "../harness/Browser.ts"
import { TestMailbox } from "../harness/Mailbox.ts"
import { newEmail } from "../harness/SignIn.ts"
import { TestService } from "../harness/TestService.ts"

/** What tests of the console share: the real service at its own address, the emulator, a mail server and a browser. */

const freePort = Effect.async<number>((resume) => {
  const server = createServer()
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    server.close(() => resume(Effect.succeed(port)))
  })
})

/** The service at an address that browsers can open, which its mails and the provider name, too. */
const service = (overrides: Partial<ServiceOptions["settings"]>) =>
  Layer.unwrapEffect(
    Effect.gen(function* () {
      const { url } = yield* TestMailbox
      const port = yield* freePort
      return TestService.layer({ ...overrides, port, smtpUrl: Option.some(url) }, `http://127.0.0.1:${port}`)
    })
  )

/** Declares a suite on the console: the service with a worker, a mail server, and a browser. Skip it without `hasBrowser`. */
export const onConsole = (overrides: Partial<ServiceOptions["settings"]> = {}) =>
  layer(
    Layer.merge(service(overrides), Chromium.layer).pipe(Layer.provideMerge(TestMailbox.layer)),
    // Opening a browser takes long on a crowded machine
    { excludeTestServices: true, timeout: "120 seconds" }
  )

/** How long a test waits for what a page shows: a bound for a crowded machine, never a measure. */
const patience = 30_000

/** What a page said in the browser's console and must not: errors, and violations of the policy. */
export interface Visit {
  readonly context: BrowserContext
  readonly page: Page
  readonly complaints: ReadonlyArray<string>
}

/** A browser of a person of its own, with an empty page. Its cookies are nobody else's. */
export const visit = (
  options: BrowserContextOptions = {}
): Effect.Effect<Visit, never, Chromium | Scope.Scope | TestService> =>
  Effect.gen(function* () {
    const engine = yield* Chromium
    const { baseUrl } = yield* TestService
    const context = yield* Effect.acquireRelease(
      Effect.promise(() =>
        engine.newContext({
          baseURL: baseUrl,
          locale: "en-US",
          timezoneId: "America/Sao_Paulo",
          reducedMotion: "reduce",
          viewport: { width: 1280, height: 900 },
          ...options
        })
      ),
      (context) => Effect.promise(() => context.close())
    )
    context.setDefaultTimeout(patience)
    const complaints: Array<string> = []
    const watch = (page: Page) => {
      page.on("pageerror", (error) => complaints.push(String(error)))
      page.on("console", (message) => {
        // A refusal of the API is something that pages show themselves
        if (message.type() === "error" && !/Failed to load resource/.test(message.text())) {
          complaints.push(message.text())
        }
      })
    }
    context.on("page", watch)
    const page = yield* Effect.promise(() => context.newPage())
    return { context, page, complaints }
  })

/** The link in the newest mail to an address. */
export const mailedLink = (email: string, nth = 1) =>
  Effect.gen(function* () {
    const mailbox = yield* TestMailbox
    const mail = yield* mailbox.mailTo(email, nth)
    const [link = ""] = /^http:\/\/\S+#\S+$/m.exec(mail.text) ?? []
    expect(link, mail.text).not.toBe("")
    return link
  })

/** A session's cookie for an address, had over HTTP as a program has it. */
const cookieFor = (email: string) =>
  Effect.gen(function* () {
    const { request } = yield* TestService
    const mailbox = yield* TestMailbox
    const before = mailbox.mails.filter(({ to }) => to.includes(email)).length
    const asked = yield* request("POST", "/identity/sign-in-links", { body: { email } })
    expect(asked.status, asked.text).toBe(202)
    const [, token = ""] = (yield* mailedLink(email, before + 1)).split("#")
    const redeemed = yield* request("POST", "/identity/session", { body: { token } })
    expect(redeemed.status, redeemed.text).toBe(200)
    const [cookie = ""] = redeemed.headers.getSetCookie()
    const [name = "", value = ""] = (cookie.split(";", 1)[0] ?? "").split("=")
    return { name, value }
  })

/** Gives a browser the session of a person, as signing in there would. */
export const signInBrowser = (context: BrowserContext, email: string) =>
  Effect.gen(function* () {
    const { baseUrl } = yield* TestService
    const { name, value } = yield* cookieFor(email)
    yield* Effect.promise(() => context.addCookies([{ name, value, url: baseUrl, httpOnly: true, sameSite: "Lax" }]))
  })

export interface MemberOptions {
  readonly role: Role
  /** For developers and viewers; default the sandbox. */
  readonly environments?: ReadonlyArray<Environment>
  readonly email?: string
  readonly browser?: BrowserContextOptions
}

/** A signed-in member of the suite's organization, whose account is connected in the sandbox, in a browser of their own. */
export const memberVisit = ({ browser, email = newEmail(), environments, role }: MemberOptions) =>
  Effect.gen(function* () {
    const { organization, services } = yield* TestService
    const entered = role === "owner" || role === "admin" ? [] : (environments ?? (["sandbox"] as const))
    yield* Context.get(services, Members)
      .add({
        organizationId: organization.id,
        email,
        role,
        environments: entered,
        author: { kind: "operator", id: "test" }
      })
      .pipe(Effect.orDie)
    const opened = yield* visit(browser)
    yield* signInBrowser(opened.context, email)
    return { ...opened, email }
  })

/** Opens a page of the console and waits until it is drawn: `/sandbox/keys`. */
export const open = async (page: Page, path: string): Promise<void> => {
  await page.goto(`/console${path}`)
  await settled(page)
}

/** Waits until a page has its heading, and nothing on it is still being read. */
export const settled = async (page: Page): Promise<void> => {
  await page.locator("h1").first().waitFor()
  await page.locator(".skeleton, .splash").first().waitFor({ state: "detached" })
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

interface Violation {
  readonly id: string
  readonly help: string
  readonly nodes: ReadonlyArray<{ readonly target: ReadonlyArray<string>; readonly failureSummary?: string }>
}

/** Requires that axe finds nothing against WCAG 2.2 AA, nor against its best practices, on a page as it is now. */
export const expectAccessible = async (page: Page): Promise<void> => {
  // Past the page's policy, as a developer's tools are
  await page.evaluate(axe)
  const violations = (await page.evaluate(
    `axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] })
      .then(({ violations }) => violations)`
  )) as ReadonlyArray<Violation>
  expect(
    violations.map(({ help, id, nodes }) => ({
      id,
      help,
      nodes: nodes.slice(0, 5).map(({ failureSummary, target }) => `${target.join(" ")}: ${failureSummary ?? ""}`)
    })),
    page.url()
  ).toEqual([])
}

/** Light, dark, and the width of a phone: what every page is looked at in. */
export const appearances = [
  { name: "light", browser: { colorScheme: "light" } },
  { name: "dark", browser: { colorScheme: "dark" } },
  { name: "375px", browser: { colorScheme: "light", viewport: { width: 375, height: 800 } } }
] as const satisfies ReadonlyArray<{ readonly name: string; readonly browser: BrowserContextOptions }>

/** Requires that a page does not scroll sideways. */
export const expectNoSidewaysScroll = async (page: Page): Promise<void> => {
  const beyond = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
  expect(beyond, page.url()).toBe(0)
}
