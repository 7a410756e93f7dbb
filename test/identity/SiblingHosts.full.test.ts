import { createServer } from "node:http"
import { Effect, Layer, Option } from "effect"
import type { Page } from "playwright-core"
import { browserNote, Chromium, hasBrowser } from "../harness/Browser.ts"
import { freePort } from "../harness/FreePort.ts"
import { listening } from "../harness/Listening.ts"
import { sharedMailbox, TestMailbox } from "../harness/Mailbox.ts"
import { newEmail } from "../harness/SignIn.ts"
import { sendRequest, startForWorker, TestService } from "../harness/TestService.ts"
import { expect, layer } from "../harness/Tests.ts"

/** Browsers lead every name below `localhost` to this machine and count it as secure; the hosts here have this domain in common. */
const domain = "shop.localhost"

const startBesideOthers = Effect.gen(function* () {
  const { url } = yield* sharedMailbox
  const port = yield* freePort
  const settings = { port, smtpUrl: Option.some(url), roles: { api: true, worker: false }, console: false }
  return yield* Effect.promise(() => startForWorker(settings, `http://payments.${domain}:${port}`))
})

const besideOthers = layer(Layer.mergeAll(TestService.sharing(startBesideOthers), TestMailbox.shared, Chromium.shared))

/** The URL of another host of the domain, which sets these cookies in every browser that opens it. */
const neighbour = (cookies: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const server = createServer((_, response) => {
      response.setHeader("set-cookie", [...cookies])
      response.end("Seen")
    })
    const port = yield* listening(server)
    return `http://evil.${domain}:${port}/`
  })

const send = (page: Page, method: string, path: string, body?: unknown): Promise<unknown> =>
  page.evaluate(
    async ([method, path, body]) => {
      const headers = { "content-type": "application/json" }
      const answer = await fetch(path ?? "", body === undefined ? { method } : { method, headers, body })
      return await answer.json()
    },
    [method, path, body === undefined ? undefined : JSON.stringify(body)] as const
  )

/** A person with an organization, signed in by the mailed link in a browser of their own. */
const ownerInBrowser = (organization: string) =>
  Effect.gen(function* () {
    const engine = yield* Chromium
    const email = newEmail()
    const asked = yield* sendRequest("POST", "/identity/sign-in-links", { body: { email } })
    expect(asked.status, asked.text).toBe(202)
    const mail = yield* Effect.flatMap(TestMailbox, ({ mailTo }) => mailTo(email))
    const [link = ""] = /^http:\/\/\S+#\S+$/m.exec(mail.text) ?? []
    const context = yield* Effect.acquireRelease(
      Effect.promise(() => engine.newContext()),
      (context) => Effect.promise(() => context.close())
    )
    return yield* Effect.promise(async () => {
      const page = await context.newPage()
      await page.goto(link)
      await page.getByRole("button", { name: "Sign in" }).click()
      await page.getByText(`You are signed in as ${email}`).waitFor()
      await send(page, "POST", "/identity/organizations", { name: organization })
      return { context, email, page, home: link.split("#")[0] ?? "" }
    })
  })

besideOthers(`a session in a browser, beside other hosts of its domain${browserNote}`, (it) => {
  it.scoped.skipIf(!hasBrowser)("is its person's, whatever cookies they set, as is its account", function* () {
    const mallory = yield* ownerInBrowser("Mallory's")
    const victim = yield* ownerInBrowser("Bakery")
    const [cookie] = yield* Effect.promise(() => mallory.context.cookies(mallory.home))
    const { name = "", value = "" } = cookie ?? {}
    const plain = name.replace("__Host-", "")
    const evil = yield* neighbour(
      [name, `__HOST-${plain}`, plain].flatMap((as) =>
        // Browsers send the cookie with the longest path first
        ["/", "/identity", "/identity/account/oauth"].flatMap((path) =>
          ["", "; Secure"].map((secure) => `${as}=${value}; Domain=${domain}; Path=${path}${secure}`)
        )
      )
    )
    yield* Effect.promise(async () => {
      const { context, email, home, page } = victim
      await page.goto(evil)
      await page.goto(home)
      const sent = await context.cookies(home)
      expect(sent.filter((other) => other.value === value).map((other) => other.name)).toContain(plain)
      expect(sent.filter((other) => other.name === name)).toHaveLength(1)

      expect(await send(page, "GET", "/identity/session")).toMatchObject({ person: { email } })
      const begun = await send(page, "POST", "/identity/account/oauth", { environment: "sandbox" })
      await page.goto(String(Object(begun)["url"]))
      await page.getByRole("radio", { name: "A new test account" }).check()
      await page.getByRole("button", { name: "Connect my account" }).click()
      await page.getByRole("heading", { name: "The account is connected" }).waitFor()
      await page.goto(home)
      expect(await send(page, "GET", "/identity/account")).toMatchObject({ status: "connected" })
      expect(await send(mallory.page, "GET", "/identity/account")).toMatchObject({ status: "not_connected" })
    })
  })
})
