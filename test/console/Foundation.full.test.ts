import { expect } from "@effect/vitest"
import { Effect, Option } from "effect"
import type { Page } from "playwright-core"
import {
  expectAccessible,
  expectAccessibleInAllAppearances,
  expectNoSidewaysScroll,
  phone
} from "../harness/Accessibility.ts"
import { browserNote } from "../harness/Browser.ts"
import { eventually } from "../harness/Eventually.ts"
import { newEmail } from "../harness/SignIn.ts"
import { TestService } from "../harness/TestService.ts"
import {
  asMember,
  expectAccessiblePages,
  inBrowser,
  mailedLink,
  memberVisit,
  onConsole,
  open,
  settled,
  visit
} from "./ConsoleBed.ts"

onConsole(`the console in a browser${browserNote}`, (it) => {
  inBrowser(it, "signs a newcomer in by the mailed link, as an owner, on the page asked for", function* () {
    const email = newEmail()
    const { context, page } = yield* visit()
    yield* Effect.promise(async () => {
      await page.goto("/console/sandbox/people")
      await page.getByRole("heading", { name: "Sign in" }).waitFor()
      await expectAccessible(page)
      await page.getByRole("textbox", { name: "E-mail address" }).fill("nobody")
      await page.getByRole("button", { name: "Send me a link" }).click()
      await page.getByText("Must be an e-mail address").waitFor()
      expect(await page.evaluate("document.activeElement.name")).toBe("email")
      await page.getByRole("textbox", { name: "E-mail address" }).fill(email)
      await page.keyboard.press("Enter")
      await page.getByRole("heading", { name: "Check your mailbox" }).waitFor()
    })
    const link = yield* mailedLink(email)
    yield* Effect.promise(async () => {
      // Mail programs open links in a tab of their own
      const other = await context.newPage()
      await other.goto(link)
      await other.getByText(`Sign in in this browser as ${email}`).waitFor()
      await expectAccessible(other)
      await other.getByRole("button", { name: "Sign in" }).click()
      await other.getByRole("heading", { name: "Create your organization" }).waitFor()
      await expectAccessible(other)
      await other.getByRole("textbox", { name: "Name" }).fill("Corner bakery")
      await other.getByRole("button", { name: "Create the organization" }).click()
      await other.getByRole("heading", { name: "People", exact: true }).waitFor()
      expect(new URL(other.url()).pathname).toBe("/console/sandbox/people")
      // The tab that waited notices by itself
      await page.bringToFront()
      await page.getByText("Corner bakery").first().waitFor()
      await other.goto(link)
      await other
        .getByText(/not valid|was used/)
        .first()
        .waitFor()
    })
  })

  inBrowser(it, "shows each role what it may do, and no more", function* () {
    const seen = (role: "owner" | "developer" | "viewer") =>
      Effect.gen(function* () {
        const { page } = yield* memberVisit({ role })
        return yield* Effect.promise(async () => {
          await open(page, "/sandbox/people")
          const links = await linksOf(page)
          const invites = await page.getByRole("button", { name: "Invite a person" }).count()
          await open(page, "/sandbox/keys")
          const creates = await page.getByRole("button", { name: "Create a key" }).count()
          const workspaces = await page.getByRole("navigation", { name: "Workspace" }).getByRole("link").allInnerTexts()
          await open(page, "/sandbox/audit-log")
          const reads = await page.getByRole("combobox", { name: "Action" }).count()
          return {
            pages: ["API keys", "Audit log", "Destinations"].filter((name) => links.includes(name)),
            invites: invites > 0,
            creates: creates > 0,
            reads: reads > 0,
            workspaces
          }
        })
      })
    const pages = ["API keys", "Destinations"]
    expect(yield* seen("owner")).toEqual({
      pages: ["API keys", "Audit log", "Destinations"],
      invites: true,
      creates: true,
      reads: true,
      workspaces: ["Sandbox", "Production"]
    })
    const developer = { pages, invites: false, creates: true, reads: false, workspaces: ["Sandbox"] }
    expect(yield* seen("developer")).toEqual(developer)
    expect(yield* seen("viewer")).toEqual({ ...developer, creates: false })
  })

  inBrowser(it, "refuses a workspace that the person may not enter, and an address that leads nowhere", function* () {
    yield* asMember({ role: "developer" }, async (page) => {
      await open(page, "/production/keys")
      await page.getByText("You have no access to the production workspace").waitFor()
      await expectAccessible(page)
      await page.getByRole("link", { name: "Go to sandbox" }).click()
      await page.waitForURL("**/console/sandbox")
      await open(page, "/sandbox/nowhere")
      await page.getByRole("heading", { name: "Page not found" }).waitFor()
      await expectAccessible(page)
    })
  })

  inBrowser(it, "keeps the workspaces of two tabs apart", function* () {
    const { organization, request } = yield* TestService
    const created = yield* asMember({ role: "owner" }, async (page, context) => {
      const production = await context.newPage()
      await open(page, "/sandbox/keys")
      await open(production, "/production/keys")
      expect(await page.title()).toContain("Sandbox")
      expect(await production.title()).not.toContain("Sandbox")
      expect(await page.getByText("Test data. No real money moves here.").count()).toBe(1)
      expect(await production.getByText("Test data. No real money moves here.").count()).toBe(0)
      // The session's selected workspace is production now; this tab still works in the sandbox
      await page.bringToFront()
      await page.getByRole("button", { name: "Create a key" }).first().click()
      await page.getByRole("textbox", { name: "Name" }).fill("From the sandbox's tab")
      await page.getByRole("checkbox", { name: /Read the catalog/ }).check()
      await page.getByRole("button", { name: "Create the key" }).click()
      const key = (await page.locator(".secret code").innerText()).trim()
      await page.getByRole("button", { name: "I have stored it" }).click()
      await page.getByRole("row", { name: /From the sandbox's tab/ }).waitFor()
      await open(production, "/production/keys")
      expect(await production.getByRole("row", { name: /From the sandbox's tab/ }).count()).toBe(0)
      return key
    })
    expect(created).toMatch(/^pk_test_/)
    const used = yield* request("GET", `/v2/organizations/${organization.id}/provider/products`, { key: created })
    expect(used.status, used.text).toBe(200)
    const refused = yield* request("GET", `/v2/organizations/${organization.id}/integrations/endpoints`, {
      key: created
    })
    expect(refused.status).toBe(403)
  })

  inBrowser(it, "is used with the keyboard alone: skip link, navigation, dialogs and the account menu", function* () {
    yield* asMember({ role: "owner" }, async (page) => {
      const focused = () => page.evaluate("document.activeElement.textContent.trim()")
      await open(page, "/sandbox/people")
      await page.keyboard.press("Tab")
      expect(await focused()).toBe("Skip to the content")
      await page.keyboard.press("Enter")
      expect(await page.evaluate("document.activeElement.id")).toBe("main")
      // A navigation moves the focus to the new page's heading
      await page.getByRole("link", { name: "API keys" }).focus()
      await page.keyboard.press("Enter")
      await page.getByRole("heading", { name: "API keys" }).waitFor()
      await page.locator("h1:focus").waitFor()
      // A dialog holds the focus, closes with Escape, and gives the focus back
      await page.getByRole("button", { name: "Create a key" }).first().focus()
      await page.keyboard.press("Enter")
      await page.getByRole("dialog").waitFor()
      for (let steps = 0; steps < 40; steps++) {
        await page.keyboard.press("Tab")
        expect(
          await page.evaluate(
            "document.activeElement === document.body || document.activeElement.closest('dialog') !== null"
          )
        ).toBe(true)
      }
      await page.keyboard.press("Escape")
      await page.getByRole("dialog").waitFor({ state: "detached" })
      expect(await focused()).toBe("Create a key")
      const menu = page.locator(".side .account-button")
      await menu.focus()
      await page.keyboard.press("Enter")
      await page.getByRole("link", { name: "Your sessions" }).waitFor()
      await page.keyboard.press("Escape")
      expect(await menu.getAttribute("aria-expanded")).toBe("false")
      expect(await page.evaluate("document.activeElement.className")).toBe("account-button")
    })
  })

  inBrowser(it, "keeps the chosen appearance, and signs out in every tab", function* () {
    yield* asMember({ role: "viewer", browser: { colorScheme: "light" } }, async (page, context) => {
      const background = () => page.evaluate("getComputedStyle(document.body).backgroundColor")
      await open(page, "/sandbox/people")
      const light = await background()
      await page.locator(".side .account-button").click()
      await page.getByRole("button", { name: "Dark" }).click()
      const dark = await background()
      expect(dark).not.toBe(light)
      await page.reload()
      await settled(page)
      expect(await background()).toBe(dark)
      const other = await context.newPage()
      await open(other, "/sandbox/sessions")
      await page.bringToFront()
      await page.locator(".side .account-button").click()
      await page.getByRole("button", { name: "Sign out" }).click()
      await page.getByRole("heading", { name: "Sign in" }).waitFor()
      await other.bringToFront()
      await other.getByRole("heading", { name: "Sign in" }).waitFor()
    })
  })

  inBrowser(it, "never flashes the system's appearance at who has chosen the other", function* () {
    const { page } = yield* memberVisit({ role: "viewer", browser: { colorScheme: "light" } })
    const background = () => page.evaluate("getComputedStyle(document.body).backgroundColor")
    const dark = yield* Effect.promise(async () => {
      await open(page, "/sandbox/people")
      await page.locator(".side .account-button").click()
      await page.getByRole("button", { name: "Dark" }).click()
      const dark = await background()
      // Of the page's scripts only the one in its head arrives
      await page.route(/\/assets\/(?!theme-)[^/]+\.js$/, () => {})
      await page.reload({ waitUntil: "commit" })
      await page.locator("#console").waitFor({ state: "attached" })
      return dark
    })
    yield* eventually(
      "the chosen background",
      Effect.promise(async () => ((await background()) === dark ? Option.some(dark) : Option.none()))
    )
    yield* Effect.promise(async () => {
      expect(await page.evaluate("document.querySelector('meta[name=color-scheme]').content")).toBe("dark")
      expect(await page.locator("#console").innerHTML()).toBe("")
    })
  })

  inBrowser(it, "reads the same thing again for a 304, in its own workspace alone, and shows it", function* () {
    yield* asMember({ role: "owner" }, async (page) => {
      const read = (environment: string) =>
        page.waitForResponse(
          (response) =>
            /\/integrations\/deliveries\?/.test(response.url()) &&
            response.request().headers()["service-workspace"] === environment
        )
      await open(page, "/sandbox/deliveries")
      await page.getByRole("link", { name: "Events", exact: true }).click()
      await settled(page)
      const again = read("sandbox")
      await page.getByRole("link", { name: "Deliveries", exact: true }).click()
      expect((await again).status()).toBe(304)
      await settled(page)
      await page.getByText("No deliveries yet").waitFor()
      const other = read("production")
      await page.getByRole("navigation", { name: "Workspace" }).getByRole("link", { name: "Production" }).click()
      await page.getByRole("link", { name: "Deliveries", exact: true }).click()
      const answer = await other
      expect([answer.status(), await answer.request().headerValue("if-none-match")]).toEqual([200, null])
    })
  })

  inBrowser(it, "has the filters of a list behind a button on a phone, which says whether any is on", function* () {
    yield* asMember({ role: "owner", browser: { viewport: { width: 360, height: 740 } } }, async (page) => {
      await open(page, "/sandbox/deliveries?state=failed")
      const state = page.getByLabel("State")
      expect(await state.isVisible()).toBe(false)
      await page.getByRole("button", { name: "Filters On" }).click()
      expect(await state.inputValue()).toBe("failed")
      await page.getByRole("button", { name: "Clear filters" }).click()
      await page.getByRole("button", { name: "Filters", exact: true }).click()
      await state.waitFor({ state: "hidden" })
      await expectNoSidewaysScroll(page)
    })
  })

  inBrowser(it, "is accessible with nothing beyond its edge: light, dark and on a phone", function* () {
    yield* asMember({ role: "owner" }, async (page) => {
      const names = ["start", "keys", "people", "audit-log", "account", "sessions"]
      await expectAccessiblePages(page, [...names.map((name) => `/sandbox/${name}`), "/production/account"])
      await page.getByRole("link", { name: "API keys" }).click()
      await page.getByRole("heading", { name: "API keys" }).waitFor()
      await settled(page)
      await page.locator(".side .account-button").click()
      await expectAccessible(page)
      await page.emulateMedia({ colorScheme: "dark" })
      await page.locator("html[data-theme=dark]").waitFor()
      await expectAccessible(page)
      await page.keyboard.press("Escape")
      await page.emulateMedia({ colorScheme: "light" })
      await page.getByRole("button", { name: "Create a key" }).first().click()
      await expectAccessibleInAllAppearances(page)
    })
  })

  inBrowser(it, "has its navigation in a drawer on a phone", function* () {
    yield* asMember({ role: "owner", browser: { viewport: phone } }, async (page) => {
      await open(page, "/sandbox/keys")
      await expectAccessible(page)
      await page.getByRole("button", { name: "Open the navigation" }).click()
      await expectAccessible(page)
      await page.getByRole("dialog").getByRole("link", { name: "People" }).click()
      await page.getByRole("heading", { name: "People", exact: true }).waitFor()
      expect(await page.getByRole("dialog").count()).toBe(0)
    })
  })
})

const linksOf = (page: Page): Promise<ReadonlyArray<string>> =>
  page.getByRole("navigation", { name: "Pages" }).getByRole("link").allInnerTexts()
