import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import type { BrowserContext } from "playwright-core"
import { colourRules, expectAccessible } from "../../harness/Accessibility.ts"
import { Browser, browserNote, hasBrowser } from "../../harness/Browser.ts"
import { makeConsumer } from "../../harness/Consumer.ts"
import { eventuallyTrue } from "../../harness/Eventually.ts"
import { onService, TestService, testPublicUrl } from "../../harness/TestService.ts"
import { png } from "../../payments/images/Pictures.ts"
import { posting } from "./Payments.ts"

/** A page with a choice of quantities, and two consumers: one of that page's sales, one of another page's. */
const selling = Effect.gen(function* () {
  const service = yield* TestService
  const { organization, request } = service
  const tenant = { organizationId: organization.id, key: organization.testKey }
  const post = (path: string, body: unknown) => Effect.map(posting(service, tenant)(path, body), ({ json }) => json)
  const product = yield* post("/provider/products", { name: 'Coffee <b>"bold"</b>' })
  const price = yield* post("/provider/prices", { product: product["id"], currency: "brl", unit_amount: 1500 })
  const image = yield* request("POST", `/v2/organizations/${organization.id}/provider/product-images`, {
    key: organization.testKey,
    raw: png({ width: 600 }),
    headers: { "content-type": "image/png" }
  })
  const page = yield* post("/provider/checkout-pages", {
    title: `Beans ${"very".repeat(28)}`,
    text: "Roasted on Monday.\nSent on Tuesday.",
    imageUrl: image.json["url"],
    imageAlt: "A bag of beans",
    items: [{ price: price["id"], quantity: 1, adjustableQuantity: { minimum: 1, maximum: 5 } }],
    collect: { customFields: [{ key: "grind", label: "Grind", type: "text" }] },
    successText: "The first bag leaves on Monday."
  })
  const consumers = yield* Effect.forEach([page["id"], randomUUID()], (id) =>
    Effect.tap(makeConsumer, ({ url }) =>
      post("/integrations/endpoints", {
        name: "Sales of a page",
        url,
        events: ["checkout.completed"],
        filters: { metadata: { svc_checkout_page: id }, products: [product["id"]] }
      })
    )
  )
  return { page, price, product, consumers }
})

/** Opens pages of the service's public URL where it listens; tells what the browser complains of and loads from elsewhere. */
const openPage = async (browser: BrowserContext, baseUrl: string, emulatorUrl: string) => {
  const page = await browser.newPage()
  const complaints: Array<string> = []
  page.on("console", (message) => complaints.push(message.text()))
  const elsewhere: Array<string> = []
  page.on("request", (request) => {
    const url = request.url()
    if (![baseUrl, emulatorUrl, testPublicUrl, "data:"].some((known) => url.startsWith(known))) elsewhere.push(url)
  })
  await page.route(`${testPublicUrl}/**`, async (route) =>
    route.fulfill({
      response: await route.fetch({ url: route.request().url().replace(testPublicUrl, baseUrl), maxRedirects: 0 })
    })
  )
  return { page, complaints, elsewhere }
}

onService()(`checkout pages in a browser${browserNote}`, (it) => {
  it.layer(Browser.layer)((it) => {
    it.scoped.skipIf(!hasBrowser)(
      "a payer on a phone chooses, pays and reads the success text, and the page's own endpoint is told",
      function* () {
        const { consumers, page: sold, price, product } = yield* selling
        const { baseUrl, emulator } = yield* TestService
        const browser = yield* Browser
        yield* Effect.promise(async () => {
          const { complaints, elsewhere, page } = await openPage(browser, baseUrl, emulator.url)
          await page.setViewportSize({ width: 375, height: 667 })
          await page.goto(String(sold["url"]))
          for (const scheme of ["light", "dark"] as const) {
            await page.emulateMedia({ colorScheme: scheme })
            await expectAccessible(page, colourRules)
          }
          await page.getByRole("note").getByText("Test page.").waitFor()
          expect(await page.title()).toMatch(/^Test: Beans/)
          expect(await page.getByRole("heading", { name: 'Coffee <b>"bold"</b>' }).count()).toBe(1)
          // Nothing scrolls sideways, and what is pressed is large enough for a thumb
          expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(375)
          await page.getByAltText("A bag of beans").waitFor()
          expect(await page.evaluate("document.querySelector('img').naturalWidth")).toBe(600)
          const field = page.getByLabel(/Quantity of Coffee/)
          const button = page.getByRole("button", { name: "Continue to payment" })
          for (const target of [field, button]) {
            expect((await target.boundingBox())?.height).toBeGreaterThanOrEqual(44)
          }
          // By keyboard alone: the field is the first that takes the focus
          await page.keyboard.press("Tab")
          expect(await page.evaluate("document.activeElement.name")).toBe("q0")
          await field.fill("3")
          await page.keyboard.press("Enter")
          await page.waitForURL(`${emulator.url}/c/pay/**`)
          await page.getByText("R$45.00").first().waitFor()
          await page.getByRole("link", { name: "Back to the shop" }).click()
          await page.waitForURL(String(sold["url"]))

          await field.fill("2")
          await button.click()
          await page.waitForURL(`${emulator.url}/c/pay/**`)
          await page.getByLabel("Grind").fill("coarse")
          const thanks = `${String(sold["url"])}/thanks`
          // Where another site redirects to is not routed, so the browser finds nobody there
          const sentBack = page.waitForEvent("requestfailed", (request) => request.url() === thanks)
          await page.getByRole("button", { name: "Pay R$30.00" }).click()
          await sentBack
          await page.waitForURL("chrome-error://**")
          await page.goto(thanks)
          await page.getByText("The first bag leaves on Monday.").waitFor()
          expect(elsewhere).toEqual([])
          expect(complaints.filter((text) => /policy|refused/i.test(text))).toEqual([])
        })
        const [own, other] = consumers
        yield* eventuallyTrue("the page's event", () => own?.received.length === 1)
        expect(JSON.parse(String(own?.received[0]?.body))).toMatchObject({
          type: "checkout.completed",
          data: { amount_total: 3000, price_ids: [price["id"]], product_ids: [product["id"]] }
        })
        expect(other?.received).toEqual([])
      }
    )

    it.scoped.skipIf(!hasBrowser)("a refused quantity is said at its field, which keeps what was typed", function* () {
      const { page: sold } = yield* selling
      const { baseUrl, emulator } = yield* TestService
      const browser = yield* Browser
      yield* Effect.promise(async () => {
        const { page } = await openPage(browser, baseUrl, emulator.url)
        await page.goto(String(sold["url"]))
        const field = page.getByLabel(/Quantity of Coffee/)
        // The browser itself would hold it back
        await page.evaluate("document.querySelector('form').noValidate = true")
        await field.fill("9")
        await page.getByRole("button").click()
        await page.getByRole("alert").getByText("Check the quantities").waitFor()
        expect([await field.inputValue(), await field.getAttribute("aria-invalid")]).toEqual(["9", "true"])
        const described = await field.getAttribute("aria-describedby")
        expect(await page.locator(`#${described}`).innerText()).toBe("Enter a whole number from 1 to 5.")
      })
    })
  })
})
