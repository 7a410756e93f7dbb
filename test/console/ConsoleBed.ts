import { randomUUID } from "node:crypto"
import { expect, type Vitest } from "@effect/vitest"
import { Context, Duration, Effect, Layer, Option } from "effect"
import type { BrowserContext, BrowserContextOptions, Page } from "playwright-core"
import { Members } from "../../src/identity/members/Members.ts"
import type { Role } from "../../src/identity/Principal.ts"
import type { Environment } from "../../src/platform/kit/Environment.ts"
import { expectAccessibleInAllAppearances } from "../harness/Accessibility.ts"
import { Chromium, hasBrowser } from "../harness/Browser.ts"
import { freePort } from "../harness/FreePort.ts"
import { sharedMailbox, TestMailbox } from "../harness/Mailbox.ts"
import { newEmail } from "../harness/SignIn.ts"
import { type RunningService, sendRequest, startForWorker, TestService, testSettings } from "../harness/TestService.ts"
import { layer, type Steps } from "../harness/Tests.ts"

/** What tests of the console share: the real service at its own address, the emulator, a mail server and a browser. */

const startConsole = Effect.gen(function* () {
  const { url } = yield* sharedMailbox
  const port = yield* freePort
  const settings = {
    port,
    smtpUrl: Option.some(url),
    // An attempt that is late on a crowded machine would be repeated half a minute later, and not end as a test says.
    // What is stored wakes the worker; a poll finds what tests have made due
    delivery: { ...testSettings.delivery, timeout: Duration.seconds(60), pollInterval: Duration.millis(500) }
  }
  // Its mails and the provider name that address, too
  return yield* Effect.promise(() => startForWorker(settings, `http://127.0.0.1:${port}`))
})

let running: Promise<RunningService> | undefined

/** The service at an address that browsers can open. Started by the first suite of a worker that asks for it, it ends with the worker. */
const sharedConsole = Effect.promise(() => {
  running ??= Effect.runPromise(startConsole)
  return running
})

/**
 * Declares a suite on the console: the service with a worker, a mail server, and a browser, which the suites of a test worker
 * share; the organizations are its own. Skip it without `hasBrowser`.
 */
export const onConsole = layer(
  Layer.mergeAll(TestService.sharing(sharedConsole), TestMailbox.shared, Chromium.shared),
  // Opening a browser takes long on a crowded machine
  { timeout: "120 seconds" }
)

/** A bound for all that happens in one test in a browser, on a machine that may be crowded; never a measure. */
const longest = 900_000

/** A test in a browser, which is skipped without one. */
export const inBrowser = <R>(it: Vitest.MethodsNonLive<R, true>, name: string, body: () => Steps<R>): void =>
  it.scoped.skipIf(!hasBrowser)(name, () => Effect.gen(body), longest)

/** How long a test waits for what a page shows: a bound for a crowded machine, never a measure. */
const patience = 50_000

/**
 * A browser of a person of its own, with an empty page. Its cookies are nobody else's. The test fails if one of its pages
 * says in the browser's console what it must not: an error, or a violation of the policy.
 */
export const visit = (options: BrowserContextOptions = {}) =>
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
    yield* Effect.addFinalizer(() => Effect.sync(() => expect(complaints).toEqual([])))
    return { context, page: yield* Effect.promise(() => context.newPage()) }
  })

/** The API below a path of the suite's organization, called with the key of its sandbox. */
export const apiBelow = (room: string) =>
  Effect.map(TestService, ({ organization, request }) => {
    const calls = (method: string) => (path: string, body?: unknown) =>
      request(method, `/v2/organizations/${organization.id}${room}${path}`, {
        key: organization.testKey,
        headers: method === "POST" ? { "idempotency-key": randomUUID() } : {},
        body
      }).pipe(
        Effect.map((answer) => {
          expect(answer.status, answer.text).toBeLessThan(300)
          return answer.json
        })
      )
    return { get: calls("GET"), patch: calls("PATCH"), post: calls("POST") }
  })

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
    const mailbox = yield* TestMailbox
    const before = mailbox.mails.filter(({ to }) => to.includes(email)).length
    const asked = yield* sendRequest("POST", "/identity/sign-in-links", { body: { email } })
    expect(asked.status, asked.text).toBe(202)
    const [, token = ""] = (yield* mailedLink(email, before + 1)).split("#")
    const redeemed = yield* sendRequest("POST", "/identity/session", { body: { token } })
    expect(redeemed.status, redeemed.text).toBe(200)
    const [cookie = ""] = redeemed.headers.getSetCookie()
    const [name = "", value = ""] = (cookie.split(";", 1)[0] ?? "").split("=")
    return { name, value }
  })

export const signInBrowser = (context: BrowserContext, email: string) =>
  Effect.gen(function* () {
    const { baseUrl } = yield* TestService
    const { name, value } = yield* cookieFor(email)
    // Browsers take a secure cookie from this machine over plain HTTP; their protocol for tests wants an address with TLS
    const url = baseUrl.replace("http:", "https:")
    yield* Effect.promise(() =>
      context.addCookies([{ name, value, url, httpOnly: true, secure: true, sameSite: "Lax" }])
    )
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

/** Runs actions as a signed-in member, in a browser context of its own. */
export const asMember = <A>(member: MemberOptions, act: (page: Page, context: BrowserContext) => Promise<A>) =>
  Effect.flatMap(memberVisit(member), ({ context, page }) => Effect.promise(() => act(page, context)))

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

/** All of these pages are accessible and don't scroll sideways, in light, in the dark and on a phone. */
export const expectAccessiblePages = async (page: Page, paths: ReadonlyArray<string>): Promise<void> => {
  for (const path of paths) {
    await open(page, path)
    await expectAccessibleInAllAppearances(page)
  }
}
