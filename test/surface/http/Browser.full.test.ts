import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { Browser, browserNote, hasBrowser } from "../../harness/Browser.ts"
import { makeConsumer } from "../../harness/Consumer.ts"
import { eventuallyTrue } from "../../harness/Eventually.ts"
import { onService, TestService } from "../../harness/TestService.ts"
import { posting } from "./Payments.ts"

/** A session for two coffees, and a consumer that is told of its payment. */
const checkout = Effect.gen(function* () {
  const service = yield* TestService
  const { id: organizationId, testKey: key } = service.organization
  const consumer = yield* makeConsumer
  const post = (path: string, body: unknown) =>
    Effect.map(posting(service, { organizationId, key })(path, body), ({ json }) => json)
  yield* post("/integrations/endpoints", { name: "Shop", url: consumer.url, events: ["checkout.completed"] })
  const product = yield* post("/provider/products", { name: 'Coffee <b>"bold"</b>' })
  const price = yield* post("/provider/prices", { product: product["id"], currency: "brl", unit_amount: 1500 })
  const session = yield* post("/provider/checkout/sessions", {
    mode: "payment",
    line_items: [{ price: price["id"], quantity: 2 }]
  })
  return { consumer, session }
})

onService()(`in a browser${browserNote}`, (it) => {
  it.layer(Browser.layer)((it) => {
    it.scoped.skipIf(!hasBrowser)("a payer declines, then pays, returns to the shop, and it is told", function* () {
      const { consumer, session } = yield* checkout
      const browser = yield* Browser
      yield* Effect.promise(async () => {
        const page = await browser.newPage()
        await page.goto(String(session["url"]))
        // What the shop named is text on the page, never markup
        expect(await page.getByText('Coffee <b>"bold"</b>').count()).toBeGreaterThan(0)
        await page.getByRole("button", { name: /decline/i }).click()
        await page
          .getByText(/declined/i)
          .first()
          .waitFor()
        // Nothing answers at the shop's own page
        const returned = page.waitForRequest(`https://shop.example/thanks?session_id=${session["id"]}`)
        await page.getByRole("button", { name: "Pay R$30.00" }).click()
        await returned
      })
      yield* eventuallyTrue("the shop's event", () => consumer.received.length === 1)
    })

    it.scoped.skipIf(!hasBrowser)("the front page leads to the documents, within its policy", function* () {
      const { baseUrl } = yield* TestService
      const browser = yield* Browser
      yield* Effect.promise(async () => {
        const page = await browser.newPage()
        const complaints: Array<string> = []
        page.on("console", (message) => complaints.push(message.text()))
        const answer = await page.goto(baseUrl)
        expect(await answer?.headerValue("content-security-policy")).toMatch(/^default-src 'none'; style-src 'sha256-/)
        expect(await answer?.headerValue("request-id")).toMatch(/^req_/)
        expect(await page.locator("script").count()).toBe(0)
        // The policy has let the page's own style through
        expect(await page.evaluate("getComputedStyle(document.body).maxWidth")).not.toBe("none")
        expect(complaints.filter((text) => /policy/i.test(text))).toEqual([])
        for (const link of await page.getByRole("link").all()) {
          const target = new URL((await link.getAttribute("href")) ?? "", page.url())
          expect([target.pathname, (await fetch(target)).status]).toEqual([target.pathname, 200])
        }
        await page.getByRole("link", { name: "the errors" }).click()
        await page.getByRole("heading", { name: "Errors", exact: true }).waitFor()
      })
    })
  })
})
