import { expect } from "@effect/vitest"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { expectAccessible } from "../harness/Accessibility.ts"
import { browserNote } from "../harness/Browser.ts"
import { makeConsumer } from "../harness/Consumer.ts"
import { eventuallyDone } from "../harness/Eventually.ts"
import { TestService } from "../harness/TestService.ts"
import { payAt } from "../payments/ConnectedTenant.ts"
import { pay } from "../surface/http/Payments.ts"
import { makeOffer, provider } from "./CatalogData.ts"
import { asMember, expectAccessiblePages, inBrowser, memberVisit, onConsole, open, settled } from "./ConsoleBed.ts"
import { makeDestination } from "./EventPagesData.ts"

/** Pays for a price by the API and the provider's page: the ids of the payment and its session. */
const paid = (price: string) =>
  Effect.gen(function* () {
    const service = yield* TestService
    const { id, testKey } = service.organization
    const session = yield* pay(service, { organizationId: id, key: testKey, priceId: price })
    return { payment: String(session.json["payment_intent"]), session: String(session.json["id"]) }
  })

/**
 * The page of a new payment of R$45.00, on which the answer to the first refund is lost after it was made. The next ones get
 * the `answers`, and those after them are sent on.
 */
const withLostRefund = Effect.fnUntraced(function* (
  product: string,
  answers: ReadonlyArray<{ readonly status: number; readonly json: object }> = []
) {
  const { get } = yield* provider
  const { price } = yield* makeOffer(product, { currency: "brl", unit_amount: 4500 })
  const { payment } = yield* paid(price)
  const charge = String((yield* get(`/payment-intents/${payment}`))["latest_charge"])
  const { page } = yield* memberVisit({ role: "owner" })
  const dialog = page.getByRole("dialog")
  const keys: Array<string | undefined> = []
  yield* Effect.promise(async () => {
    await page.route("**/provider/refunds", async (route) => {
      if (route.request().method() !== "POST") return route.continue()
      keys.push(route.request().headers()["idempotency-key"])
      if (keys.length === 1) {
        await route.fetch()
        return route.abort("connectionreset")
      }
      const answer = answers[keys.length - 2]
      return answer === undefined ? route.continue() : route.fulfill(answer)
    })
    await open(page, `/sandbox/payments/${payment}`)
  })
  /** Opens the dialog and asks for R$5.00, up to the last click. */
  const ask = async () => {
    await page.getByRole("button", { name: "Refund", exact: true }).click()
    await dialog.getByLabel("Amount").fill("5")
    await dialog.getByLabel("Type REFUND to confirm").fill("REFUND")
  }
  const refunded = Effect.map(get(`/charges/${charge}`), (found) => found["amount_refunded"])
  return { ask, dialog, keys, refunded }
})

onConsole(`the payments of the console${browserNote}`, (it) => {
  inBrowser(it, "an owner creates a session, pays it, sees its event and refunds it in two parts", function* () {
    const consumer = yield* makeConsumer
    yield* makeDestination("Shop", consumer.url, ["payment.succeeded", "payment.refunded"])
    yield* makeOffer("Coffee", { currency: "brl", unit_amount: 4500 })
    yield* asMember({ role: "owner" }, async (page, context) => {
      await open(page, "/sandbox/payments?tab=sessions")
      await page.getByRole("button", { name: "New checkout session" }).first().click()
      const dialog = page.getByRole("dialog")
      await expect.poll(() => page.evaluate("document.activeElement.tagName")).toMatch(/SELECT|INPUT/)
      await dialog.getByLabel("Price", { exact: true }).selectOption({ label: "Coffee · R$45.00" })
      await dialog.getByLabel("Your reference").fill("order-77")
      await expectAccessible(page)
      await dialog.getByRole("button", { name: "Create session" }).click()
      const opened = context.waitForEvent("page")
      await dialog.getByRole("link", { name: "Open the payer's page" }).click()
      const shop = await opened
      // Where the payer returns to is somebody else's: nothing answers there
      const returned = shop.waitForRequest("https://shop.example/**")
      await shop.getByRole("button", { name: /^Pay R\$45\.00/ }).click()
      await returned
      await shop.close()

      await dialog.getByRole("link", { name: "Show the session" }).click()
      await page.getByRole("heading", { level: 1, name: "Payment of R$45.00" }).waitFor()
      await settled(page)
      await page.getByText("order-77").waitFor()
      await page.getByText("Visa •••• 4242").waitFor()
      await page.getByRole("link", { name: "payment.succeeded" }).waitFor()
      await page.getByText("1 attempt, answered 204").first().waitFor()
      await expectAccessible(page)

      await page.getByRole("button", { name: "Refund", exact: true }).click()
      await dialog.getByLabel("Amount").fill("50")
      await dialog.getByText("At most R$45.00 can still be refunded.").waitFor()
      await dialog.getByLabel("Amount").fill("5")
      await dialog.getByLabel("Reason").selectOption("requested_by_customer")
      await expectAccessible(page)
      // Not before it is typed
      await dialog.getByRole("button", { name: "Refund R$5.00" }).click()
      await dialog.getByText("Type REFUND, as it is written here.").waitFor()
      await dialog.getByLabel("Type REFUND to confirm").fill("REFUND")
      await dialog.getByRole("button", { name: "Refund R$5.00" }).click()
      await dialog.waitFor({ state: "detached" })
      await page.getByText("Partly refunded").first().waitFor()
      await page.getByRole("cell", { name: "Requested by the customer" }).waitFor()
      await page.getByRole("link", { name: "payment.refunded" }).waitFor()

      await page.getByRole("button", { name: "Refund", exact: true }).click()
      await dialog.getByLabel("Type REFUND to confirm").fill("REFUND")
      await dialog.getByRole("button", { name: "Refund R$40.00" }).click()
      await dialog.waitFor({ state: "detached" })
      await page.getByRole("button", { name: "Refund", exact: true }).waitFor({ state: "detached" })
      await page.locator(".payment-headline").getByText("Refunded", { exact: true }).waitFor()

      await page.getByRole("link", { name: "Payments" }).first().click()
      await settled(page)
      await page.getByRole("cell", { name: "R$45.00" }).first().waitFor()
    })
    expect(consumer.received.length).toBeGreaterThanOrEqual(2)
  })

  inBrowser(it, "a refund whose answer is lost is made once, however often it is tried again", function* () {
    const { ask, dialog, keys, refunded } = yield* withLostRefund("Juice", [
      { status: 409, json: { error: "Busy", code: "idempotency_request_in_progress" } },
      { status: 429, json: { error: "Slowly", code: "rate_limit_exceeded" } }
    ])
    yield* Effect.promise(async () => {
      await ask()
      for (const answer of ["could not be reached", "Busy", "Slowly"]) {
        await dialog.getByRole("button", { name: "Refund R$5.00" }).click()
        await dialog.getByText(answer).waitFor()
      }
      await dialog.getByRole("button", { name: "Refund R$5.00" }).click()
      await dialog.waitFor({ state: "detached" })
    })
    expect(keys).toEqual(Array.from({ length: 4 }, () => keys[0]))
    expect(yield* refunded).toBe(500)
  })

  inBrowser(it, "a refund whose answer is lost is not made again by who closes the dialog and asks anew", function* () {
    const { ask, dialog, keys, refunded } = yield* withLostRefund("Tea")
    yield* Effect.promise(async () => {
      await ask()
      await dialog.getByRole("button", { name: "Refund R$5.00" }).click()
      await dialog.getByText("could not be reached").waitFor()
      await dialog.getByRole("button", { name: "Cancel" }).click()
      await dialog.waitFor({ state: "detached" })
      await ask()
      await dialog.getByRole("button", { name: "Refund R$5.00" }).click()
      await dialog.waitFor({ state: "detached" })
    })
    expect(keys).toEqual([keys[0], keys[0]])
    expect(yield* refunded).toBe(500)
  })

  inBrowser(it, "a payment is found by order, e-mail and amount, and lists what it sold", function* () {
    const { price } = yield* makeOffer("Rare tea", { currency: "brl", unit_amount: 7313 })
    const { get, post } = yield* provider
    const session = yield* post("/checkout/sessions", {
      mode: "payment",
      line_items: [{ price, quantity: 2 }],
      client_reference_id: "order 4711/a"
    })
    yield* payAt(String(session["url"]), { email: "ana.rare@shop.example" })
    // The sale is recorded when the provider reports it
    yield* eventuallyDone(
      "the sale is recorded",
      Effect.map(get("/payment-intents?sale=true&limit=1"), ({ data }) => {
        const [{ sale }] = Object(data)
        return sale?.checkout_session === session["id"] && sale.description === "2 × Rare tea"
      })
    )
    const owner = yield* memberVisit({ role: "owner" })
    const search = async (page: Page, text: string) => {
      await page.getByRole("searchbox").fill(text)
      await page.keyboard.press("Enter")
      await page.getByRole("heading", { level: 1, name: `Search: ${text}` }).waitFor()
      await settled(page)
    }
    yield* Effect.promise(async () => {
      const { page } = owner
      await open(page, "/sandbox/payments")
      const row = page.getByRole("row").filter({ hasText: "2 × Rare tea" })
      await row.getByRole("cell", { name: "order 4711/a" }).waitFor()
      for (const text of ["order 4711/a", "ana.rare@shop.example", "146.26", "BRL 146,26"]) {
        await search(page, text)
        expect(page.url()).not.toContain("4711")
        expect(page.url()).not.toContain("ana")
        await page.getByRole("link", { name: "R$146.26" }).first().click()
        await page.getByRole("heading", { level: 1, name: "Payment of R$146.26" }).waitFor()
      }
      await search(page, "order-nowhere")
      await page.getByText("No session of the last 90 days has this reference").waitFor()
      await expectAccessible(page)
    })
    const developer = yield* memberVisit({ role: "developer" })
    yield* Effect.promise(async () => {
      await open(developer.page, "/sandbox")
      await search(developer.page, "ana.rare@shop.example")
      await developer.page.getByText("Only owners and admins see e-mail addresses").waitFor()
    })
  })

  inBrowser(it, "a payment is found by its charge's or session's id; lists are filtered in the address", function* () {
    const { emulator, organization } = yield* TestService
    const { get } = yield* provider
    const { price } = yield* makeOffer("Tea", { currency: "jpy", unit_amount: 900 })
    const { payment, session } = yield* paid(price)
    const charge = String((yield* get(`/payment-intents/${payment}`))["latest_charge"])
    yield* emulator.trigger({ type: "payment_intent.payment_failed", account: organization.accountId })
    yield* asMember({ role: "developer" }, async (page) => {
      for (const id of [payment, charge, session]) {
        await open(page, "/sandbox/payments")
        await page.getByRole("searchbox").fill(` ${id} `)
        await page.keyboard.press("Enter")
        await page.getByRole("heading", { level: 1, name: "Payment of ¥900" }).waitFor()
      }
      await open(page, "/sandbox/payments")
      await page.getByLabel("Status").selectOption("Failed")
      await page.getByText(/newest (?:is|are) “Failed”/).waitFor()
      expect(new URL(page.url()).searchParams.get("status")).toBe("Failed")
      await page.reload()
      await settled(page)
      expect(await page.getByLabel("Status").inputValue()).toBe("Failed")
      expect(await page.getByRole("cell", { name: "Succeeded" }).count()).toBe(0)
      await page.getByLabel("To", { exact: true }).fill("2020-01-31")
      await page.getByText("No payments in this time").waitFor()
      await page.getByRole("button", { name: "Clear filters" }).click()
      await page.getByRole("cell", { name: "Succeeded" }).first().waitFor()

      // What there is not is said with the request to quote
      await open(page, "/sandbox/payments/pi_nowhere")
      await page.getByText(/names no object of the connected account/).waitFor()
      await page.locator(".notice-request", { hasText: "req_" }).waitFor()
    })
  })

  inBrowser(it, "an open session is ended, and its payer reads that it has expired", function* () {
    const { post } = yield* provider
    const { price } = yield* makeOffer("Cake", { currency: "brl", unit_amount: 2500 })
    const session = yield* post("/checkout/sessions", { mode: "payment", line_items: [{ price, quantity: 2 }] })
    yield* asMember({ role: "developer" }, async (page, context) => {
      await open(page, `/sandbox/payments/${session["id"]}`)
      await page.getByRole("heading", { level: 1, name: "Checkout session of R$50.00" }).waitFor()
      await page.getByRole("cell", { name: "Cake" }).waitFor()
      await page.getByRole("button", { name: "End session" }).click()
      await page.getByRole("dialog").getByRole("button", { name: "End session" }).click()
      await page.getByRole("dialog").waitFor({ state: "detached" })
      await page.getByText("Expired", { exact: true }).first().waitFor()
      expect(await page.getByRole("button", { name: "End session" }).count()).toBe(0)
      const shop = await context.newPage()
      await shop.goto(String(session["url"]))
      await shop.getByText("has expired").waitFor()
    })
  })

  inBrowser(it, "a viewer sees payments and their deliveries, but no refund and no personal data", function* () {
    const { baseUrl, organization, request } = yield* TestService
    const { price } = yield* makeOffer("Bread", { currency: "kwd", unit_amount: 1500 })
    const created = yield* request("POST", `/v2/organizations/${organization.id}/provider/checkout/sessions`, {
      key: organization.testKey,
      headers: { "idempotency-key": crypto.randomUUID() },
      body: { mode: "payment", line_items: [{ price, quantity: 1 }] }
    })
    yield* payAt(created.json["url"], { email: "payer@example.com" })
    const path = `/sandbox/payments/${created.json["id"]}`
    const viewer = yield* memberVisit({ role: "viewer" })
    const owner = yield* memberVisit({ role: "owner" })
    yield* Effect.promise(async () => {
      await open(owner.page, path)
      await owner.page.getByText("payer@example.com").waitFor()

      const { page } = viewer
      await open(page, path)
      await page.getByRole("heading", { level: 1, name: /Payment of KWD.1\.500/ }).waitFor()
      expect(await page.content()).not.toContain("payer@example.com")
      expect(await page.getByRole("button", { name: /refund|end session/i }).count()).toBe(0)
      await page.getByRole("heading", { name: "Events and where they went" }).waitFor()
      await open(page, "/sandbox/payments?tab=sessions")
      expect(await page.getByRole("button", { name: "New checkout session" }).count()).toBe(0)
      // Neither the address nor the API opens a workspace that was not granted
      await page.goto(`${baseUrl}/console/production/payments`)
      await page.locator("h1").first().waitFor()
      expect(await page.getByRole("table").count()).toBe(0)
    })
  })

  inBrowser(it, "each page is accessible and never scrolls sideways: light, dark and on a phone", function* () {
    const { emulator, organization } = yield* TestService
    const { price } = yield* makeOffer("Sold to everybody", { currency: "brl", unit_amount: 1000 })
    const { payment } = yield* paid(price)
    const dispute = yield* emulator.trigger({ type: "charge.dispute.created", account: organization.accountId })
    const { get } = yield* provider
    const disputed = String((yield* get(`/disputes/${dispute.object}`))["payment_intent"])
    yield* asMember({ role: "owner" }, async (page) => {
      await expectAccessiblePages(page, [
        "/sandbox/payments",
        "/sandbox/payments?tab=charges",
        "/sandbox/payments?tab=sessions",
        `/sandbox/payments/${payment}`,
        `/sandbox/payments/${disputed}`
      ])
      await page.getByText("The payer's bank asks for evidence").waitFor()
    })
  })
})
