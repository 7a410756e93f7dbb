import { expect } from "@effect/vitest"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { expectAccessible } from "../harness/Accessibility.ts"
import { browserNote } from "../harness/Browser.ts"
import { makeConsumer } from "../harness/Consumer.ts"
import { newEmail } from "../harness/SignIn.ts"
import { inDatabase, TestService } from "../harness/TestService.ts"
import { pay } from "../surface/http/Payments.ts"
import { makeCatalog, makeOffer } from "./CatalogData.ts"
import { inBrowser, mailedLink, memberVisit, onConsole, open, visit } from "./ConsoleBed.ts"
import { makeDestination, sendTest } from "./EventPagesData.ts"

/** What the people whom an owner invites can do and can't, in browsers of their own. */

const patience = 90_000

/** An owner invites a person on the page People; the person accepts by the mailed link. */
const invited = (role: "Developer" | "Viewer") =>
  Effect.gen(function* () {
    const owner = yield* memberVisit({ role: "owner" })
    const email = newEmail()
    owner.context.setDefaultTimeout(patience)
    yield* Effect.promise(async () => {
      await open(owner.page, "/sandbox/people")
      await owner.page.getByRole("button", { name: "Invite a person" }).first().click()
      await expectAccessible(owner.page)
      const dialog = owner.page.getByRole("dialog")
      await dialog.getByRole("textbox", { name: "E-mail address" }).fill(email)
      await dialog.getByRole("radio", { name: role }).check()
      expect(await dialog.getByRole("checkbox", { name: "Sandbox" }).isChecked()).toBe(true)
      expect(await dialog.getByRole("checkbox", { name: "Production" }).isChecked()).toBe(false)
      await dialog.getByRole("button", { name: "Send the invitation" }).click()
      await dialog.waitFor({ state: "detached" })
    })
    const link = yield* mailedLink(email)
    const opened = yield* visit()
    opened.context.setDefaultTimeout(patience)
    yield* Effect.promise(async () => {
      await opened.page.goto(link)
      await opened.page.getByText("You are invited to the organization").waitFor()
      await expectAccessible(opened.page)
      await opened.page.getByRole("button", { name: "Accept the invitation" }).click()
      await opened.page.getByRole("navigation", { name: "Pages" }).waitFor()
      expect(new URL(opened.page.url()).pathname).toBe("/console/sandbox")
      await owner.page.reload()
      await owner.page
        .getByRole("row", { name: new RegExp(email) })
        .getByRole("cell", { name: role })
        .waitFor()
    })
    return { ...opened, email }
  })

/** What a request of the page's own, with its session, is answered. */
const statusOf = (
  page: Page,
  request: {
    readonly method: string
    readonly path: string
    readonly environment: "sandbox" | "production"
    readonly body?: unknown
  }
): Promise<number> =>
  page.evaluate(async ({ body, environment, method, path }) => {
    const answer = await fetch(path, {
      method,
      headers: {
        "service-workspace": environment,
        "idempotency-key": crypto.randomUUID(),
        ...(body === undefined ? {} : { "content-type": "application/json" })
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    return answer.status
  }, request)

/** The names of all that can be pressed in a page's content, and of what looks like it. */
const buttonsOf = (page: Page): Promise<ReadonlyArray<string>> =>
  page
    .getByRole("main")
    .locator("button, a.button, input[type=submit], [role=button]")
    .evaluateAll((all) => all.map((one) => (one.getAttribute("aria-label") ?? one.textContent ?? "").trim()))

/** Buttons that read, copy or go somewhere. To leave the organization is everybody's own choice. */
const harmless =
  /^(?:Copy\b|Open$|Find$|Filters$|Clear filters$|Load more$|Leave the organization$|See what to do first$)/

onConsole(`who is invited to the console${browserNote}`, (it) => {
  inBrowser(it, "as a viewer sees everything, no button that changes it, and the API refuses as well", function* () {
    const service = yield* TestService
    const { id, testKey } = service.organization
    const consumer = yield* makeConsumer
    const destination = yield* makeDestination("Shop", consumer.url, ["payment.succeeded"])
    consumer.answer(400)
    const failed = yield* sendTest(destination, "payment.succeeded")
    yield* makeCatalog
    const { price, product } = yield* makeOffer("Coffee", { currency: "brl", unit_amount: 4500 })
    const session = yield* pay(service, { organizationId: id, key: testKey, priceId: price })
    const { page } = yield* invited("Viewer")
    const pages = [
      ["/sandbox/destinations", "Shop"],
      ["/sandbox/destinations/new", "Your role may look at destinations"],
      ...["", "?tab=again", "?tab=settings"].map(
        (tab) => [`/sandbox/destinations/${destination}${tab}`, "Shop"] as const
      ),
      [`/sandbox/deliveries/${failed}`, "HTTP 400"],
      ["/sandbox/products", "Coffee"],
      ["/sandbox/products/new", "Your role does not create products."],
      [`/sandbox/products/${product}`, "Coffee"],
      ["/sandbox/promotion-codes", "Promotion codes"],
      ["/sandbox/payment-links", "Payment links"],
      ["/sandbox/payment-links?tab=pages", "Coffee beans"],
      ["/sandbox/payments", "R$45.00"],
      ["/sandbox/payments?tab=sessions", "R$45.00"],
      [`/sandbox/payments/${session.json["payment_intent"]}`, "Payment of R$45.00"],
      ["/sandbox/keys", "Viewers don't see API keys"],
      ["/sandbox/account", "The account can charge and is paid out."]
    ] as const
    for (const [path, shown] of pages) {
      const names = yield* Effect.promise(async () => {
        await open(page, path)
        await page.getByRole("main").getByText(shown).first().waitFor()
        return buttonsOf(page)
      })
      expect([path, names.filter((name) => !harmless.test(name))]).toEqual([path, []])
    }
    const own = `/v2/organizations/${id}`
    const change = (method: string, path: string, body?: unknown) =>
      Effect.promise(() => statusOf(page, { method, path: `${own}${path}`, environment: "sandbox", body }))
    expect(yield* change("GET", "/provider/products")).toBe(200)
    expect(yield* change("POST", "/provider/products", { name: "Tea" })).toBe(403)
    expect(yield* change("PATCH", `/integrations/endpoints/${destination}`, { active: false })).toBe(403)
    expect(
      yield* change("POST", "/provider/refunds", { payment_intent: session.json["payment_intent"], amount: 100 })
    ).toBe(403)
  })

  inBrowser(it, "as a sandbox developer works there, and reaches no production by address or API", function* () {
    const { organization } = yield* TestService
    const { page } = yield* invited("Developer")
    yield* Effect.promise(async () => {
      const workspaces = page.getByRole("navigation", { name: "Workspace" }).getByRole("link")
      expect(await workspaces.allInnerTexts()).toEqual(["Sandbox"])
      for (const path of ["/production", "/production/payments/pi_1", "/production/destinations/new"]) {
        await open(page, path)
        await page.getByText("You have no access to the production workspace").waitFor()
        expect(await buttonsOf(page)).toEqual(["Go to sandbox"])
      }
      await page.getByRole("link", { name: "Go to sandbox" }).click()
      await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor()

      await open(page, "/sandbox/products/new")
      await page.getByRole("textbox", { name: "Name" }).waitFor()
      await open(page, "/sandbox/destinations/new")
      await page.getByRole("button", { name: "Create destination" }).waitFor()
    })
    const products = `/v2/organizations/${organization.id}/provider/products`
    const read = (environment: "sandbox" | "production") =>
      Effect.promise(() => statusOf(page, { method: "GET", path: products, environment }))
    expect(yield* read("sandbox")).toBe(200)
    expect(yield* read("production")).toBe(403)
  })

  inBrowser(it, "whose session runs out is led to the sign-in by the page, and back afterwards", function* () {
    const { email, page } = yield* invited("Developer")
    const where = "/console/sandbox/deliveries?state=failed"
    yield* Effect.promise(() => open(page, "/sandbox/deliveries?state=failed"))
    yield* inDatabase`
      UPDATE payments.sessions s SET expires_at = now() - interval '1 second'
      FROM payments.people p WHERE p.id = s.person_id AND p.email = ${email}`
    yield* Effect.promise(async () => {
      // Nobody clicks: the page asks for news, and hears that the session is over
      await page.getByText("Your session has ended").waitFor()
      await page.getByRole("textbox", { name: "E-mail address" }).fill(email)
      await page.getByRole("button", { name: "Send me a link" }).click()
      await page.getByRole("heading", { name: "Check your mailbox" }).waitFor()
    })
    const link = yield* mailedLink(email, 2)
    yield* Effect.promise(async () => {
      // On a slow network, the page's first request, sent without a session, is refused only after the sign-in
      const refused = page.waitForResponse((response) => response.status() === 401)
      await page.route("**/identity/session", async (route) => {
        if (route.request().method() !== "GET") return route.continue()
        const response = await route.fetch()
        await page.waitForURL((url) => url.pathname.endsWith("/deliveries"))
        await route.fulfill({ response })
      })
      await page.goto(link)
      await page.getByRole("button", { name: "Sign in" }).click()
      await refused
      await page.getByRole("heading", { level: 1, name: "Deliveries" }).waitFor()
      const { pathname, search } = new URL(page.url())
      expect(`${pathname}${search}`).toBe(where)
      expect(await page.getByLabel("State").inputValue()).toBe("failed")
    })
  })
})
