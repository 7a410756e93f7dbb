import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Effect, Option } from "effect"
import type { BrowserContext, Page } from "playwright-core"
import { browserNote } from "../harness/Browser.ts"
import { eventually } from "../harness/Eventually.ts"
import { newEmail } from "../harness/SignIn.ts"
import { inDatabase, sendRequest, TestService } from "../harness/TestService.ts"
import { inBrowser, mailedLink, onConsole, settled, visit } from "./ConsoleBed.ts"
import { makeShop } from "./Shop.ts"

/** The whole way through the console, as a newcomer goes it: nothing is there but the service. */

const patience = 90_000

const go = async (page: Page, name: string) => {
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name, exact: true }).click()
  await page.getByRole("heading", { level: 1, name, exact: true }).waitFor()
  await settled(page)
}

/** The requests that the service refuses to a browser, as they happen: the method, the path and the status. */
const refusalsTo = (context: BrowserContext) =>
  Effect.map(TestService, ({ baseUrl }) => {
    const refusals: Array<string> = []
    context.on("response", (response) => {
      const { origin, pathname } = new URL(response.url())
      if (origin === baseUrl && response.status() >= 400) {
        refusals.push(`${response.request().method()} ${pathname} ${response.status()}`)
      }
    })
    return refusals
  })

/** A shop's program, with nothing but the key that the console showed: sells something, and answers the payer's page. */
const sell = (organizationId: string, key: string, amount: number) =>
  Effect.gen(function* () {
    const post = (path: string, body: unknown) =>
      Effect.map(
        sendRequest("POST", `/v2/organizations/${organizationId}/provider${path}`, {
          key,
          headers: { "idempotency-key": randomUUID() },
          body
        }),
        (answer) => {
          expect(answer.status, answer.text).toBeLessThan(300)
          return answer.json
        }
      )
    const product = yield* post("/products", { name: "Coffee" })
    const price = yield* post("/prices", { product: product["id"], currency: "brl", unit_amount: amount })
    const lines = [{ price: price["id"], quantity: 1 }]
    return String((yield* post("/checkout/sessions", { mode: "payment", line_items: lines }))["url"])
  })

/** Somebody else's browser: pays on the provider's page. */
const payAt = (url: string, label: RegExp) =>
  Effect.gen(function* () {
    const { context, page } = yield* visit()
    context.setDefaultTimeout(patience)
    yield* Effect.promise(async () => {
      // Where the payer returns to is the shop's own site: nothing answers there
      await page.goto(url)
      const returned = page.waitForRequest("https://shop.example/**")
      await page.getByRole("button", { name: label }).click()
      await returned
    })
  }).pipe(Effect.scoped)

onConsole(`the console from a bare start${browserNote}`, (it) => {
  inBrowser(it, "leads an owner from the first mail to events that arrive, fail, and arrive after all", function* () {
    const shop = yield* makeShop
    const email = newEmail()
    const { context, page } = yield* visit()
    context.setDefaultTimeout(patience)
    const refusals = yield* refusalsTo(context)

    yield* Effect.promise(async () => {
      await page.goto("/console/sandbox/start")
      await page.getByRole("textbox", { name: "E-mail address" }).fill(email)
      await page.getByRole("button", { name: "Send me a link" }).click()
      await page.getByRole("heading", { name: "Check your mailbox" }).waitFor()
    })
    const link = yield* mailedLink(email)
    const { key, organizationId, secret } = yield* Effect.promise(async () => {
      await page.goto(link)
      await page.getByRole("button", { name: "Sign in" }).click()
      await page.getByRole("textbox", { name: "Name" }).fill("Corner bakery")
      await page.getByRole("button", { name: "Create the organization" }).click()
      await page.getByRole("heading", { level: 1, name: "Start" }).waitFor()
      await page.getByText("1 of 5 done").waitFor()

      // The account
      await page.getByRole("link", { name: "Connect", exact: true }).click()
      await page.getByRole("button", { name: "Connect an account" }).click()
      await page.getByRole("textbox", { name: "Name of your business" }).fill("Corner bakery")
      await page.getByRole("button", { name: "Submit everything" }).click()
      await page.getByText("The account can charge and is paid out.").waitFor()
      await go(page, "Start")
      await page.getByText("2 of 5 done").waitFor()

      // The key
      await page.getByRole("link", { name: "Create a key" }).click()
      await page.getByRole("heading", { level: 1, name: "API keys" }).waitFor()
      await settled(page)
      await page.getByRole("button", { name: "Create a key" }).first().click()
      await page.getByRole("textbox", { name: "Name" }).fill("The shop's server")
      await page.getByRole("button", { name: "a shop", exact: true }).click()
      await page.getByRole("checkbox", { name: /Change the catalog/ }).check()
      await page.getByRole("button", { name: "Create the key" }).click()
      const key = (await page.locator(".secret code").innerText()).trim()
      expect(key).toMatch(/^pk_test_/)
      const command = await page.getByRole("dialog").locator("pre").innerText()
      expect(command).toContain(key)
      const [, organizationId = ""] = /\/v2\/organizations\/([0-9a-f-]{36})\//.exec(command) ?? []
      await page.getByRole("button", { name: "I have stored it" }).click()
      await page.getByRole("row", { name: /The shop's server/ }).waitFor()
      expect(await page.content()).not.toContain(key)
      await page.reload()
      await page.getByRole("row", { name: /The shop's server/ }).waitFor()
      expect(await page.content()).not.toContain(key)
      await go(page, "Start")
      await page.getByText("3 of 5 done").waitFor()

      // The destination
      await page.getByRole("link", { name: "Add a destination" }).click()
      await page.getByLabel("URL", { exact: true }).fill(shop.url)
      await page.getByLabel("Name (optional)").fill("Shop")
      await page.getByLabel("payment.succeeded").check()
      await page.getByRole("button", { name: "Create destination" }).click()
      await page.getByText("it is shown only this once").waitFor()
      const secret = ((await page.locator(".secret code").first().textContent()) ?? "").trim()
      expect(secret).toMatch(/^whsec_/)
      await go(page, "Start")
      await page.getByText("4 of 5 done").waitFor()
      expect(await page.content()).not.toContain(secret)
      await go(page, "Deliveries")
      await page.getByText("No deliveries yet").waitFor()
      return { key, organizationId, secret }
    })
    shop.setUp(secret, organizationId)

    // A payment, whose event arrives while one looks on
    yield* payAt(yield* sell(organizationId, key, 4500), /^Pay R\$45\.00/)
    const rows = page.getByRole("row").filter({ hasText: "payment.succeeded" })
    yield* Effect.promise(async () => {
      await rows.filter({ hasText: "Delivered" }).waitFor()
      await go(page, "Start")
      await page.getByText("All steps are done").waitFor()
      await go(page, "Deliveries")
    })
    expect(shop.events).toMatchObject([
      { type: "payment.succeeded", organization_id: organizationId, data: { amount_received: 4500 } }
    ])

    // The next one meets a receiver that fails
    shop.setBroken(true)
    yield* payAt(yield* sell(organizationId, key, 900), /^Pay R\$9\.00/)
    yield* Effect.promise(async () => {
      const failing = rows.filter({ hasText: "HTTP 500" }).filter({ hasText: "Waiting to retry" })
      await failing.getByRole("link").first().click()
      await page.getByText("The receiver failed while it handled the event.").first().waitFor()
      await page.getByText("Look up the delivery's id in the receiver's log.").first().waitFor()
      await page
        .getByText(/The next attempt is made/)
        .first()
        .waitFor()
    })
    // Its automatic attempts, which take hours otherwise
    yield* eventually(
      "the last automatic attempt",
      Effect.gen(function* () {
        yield* inDatabase`
          UPDATE payments.delivery_queue SET next_attempt_at = now()
          WHERE organization_id = ${organizationId} AND lease IS NULL AND next_attempt_at > now()`
        const [failed] = yield* inDatabase`
          SELECT 1 FROM payments.deliveries WHERE organization_id = ${organizationId} AND state = 'failed'`
        return Option.fromNullable(failed)
      }),
      2 * patience
    )
    expect(shop.failures()).toBe(6)
    expect(shop.events).toHaveLength(1)

    // Mended, it gets the event by a click
    shop.setBroken(false)
    yield* Effect.promise(async () => {
      await page.locator(".timeline-end").getByText("Failed for good").waitFor()
      await page.getByText("6 of 12 attempts left").waitFor()
      await page.getByRole("button", { name: "Re-send" }).click()
      await page.getByRole("dialog").getByRole("button", { name: "Re-send", exact: true }).click()
      await page.locator(".timeline-end").getByText("Delivered").waitFor()
      await go(page, "Deliveries")
      await rows.filter({ hasText: "Delivered" }).nth(1).waitFor()
      expect(await rows.count()).toBe(2)
    })
    expect(shop.events).toMatchObject([
      { data: { amount_received: 4500 } },
      { type: "payment.succeeded", data: { amount_received: 900 } }
    ])
    // Before signing in, each page asks once who is there
    expect([...new Set(refusals)]).toEqual(["GET /identity/session 401"])
  })
})
