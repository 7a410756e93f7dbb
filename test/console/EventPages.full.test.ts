import { setTimeout as sleep } from "node:timers/promises"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { browserNote } from "../harness/Browser.ts"
import { asMember, expectAccessiblePages, inBrowser, memberVisit, onConsole, open, settled } from "./ConsoleBed.ts"
import { BusyWorkspace } from "./EventPagesData.ts"

onConsole(`the pages of events in the console${browserNote}`, (it) => {
  it.layer(BusyWorkspace.layer)((it) => {
    inBrowser(it, "are accessible and fit, in light, in dark and on a phone", function* () {
      const { delivered, event, failed, shop, waiting } = yield* BusyWorkspace
      const own = `/sandbox/destinations/${shop}`
      const paths = [
        "/sandbox",
        "/sandbox/destinations",
        "/sandbox/destinations/new",
        own,
        `${own}?tab=again`,
        `${own}?tab=skipped`,
        `${own}?tab=verify`,
        `${own}?tab=settings`,
        "/sandbox/deliveries",
        "/sandbox/deliveries?state=delivered&type=dispute.closed",
        `/sandbox/deliveries/${delivered}`,
        `/sandbox/deliveries/${failed}`,
        `/sandbox/deliveries/${waiting}`,
        "/sandbox/events",
        `/sandbox/events/${event}`
      ]
      const { page } = yield* memberVisit({ role: "owner" })
      yield* Effect.promise(() => expectAccessiblePages(page, paths))
    })

    inBrowser(it, "what the installation's provider lacks has no entry in the navigation", function* () {
      yield* asMember({ role: "owner" }, async (page) => {
        await page.route(/\/sandbox$/, async (route) => {
          const response = await route.fetch()
          const lacking = 'name="unsupported" content="products.list promotionCodes.list"'
          await route.fulfill({
            response,
            body: (await response.text()).replace('name="unsupported" content=""', lacking)
          })
        })
        await open(page, "/sandbox")
        await page.getByRole("link", { name: "Payment links", exact: true }).waitFor()
        for (const name of ["Products", "Promotion codes"])
          expect(await page.getByRole("link", { name, exact: true }).count()).toBe(0)
      })
    })

    inBrowser(it, "the history's filters live in the address; a delivery says what comes next", function* () {
      const { failed, shop, waiting } = yield* BusyWorkspace
      yield* asMember({ role: "developer" }, async (page) => {
        await open(page, "/sandbox/deliveries")
        await page.getByLabel("State").selectOption("failed")
        await page.waitForURL(/state=failed/)
        await page.getByLabel("Destination").selectOption(shop)
        await page.getByRole("row").filter({ hasText: "payment.refunded" }).getByText("HTTP 404").first().waitFor()
        await page.getByLabel("From").fill("2099-01-01T00:00")
        await page.getByText("No delivery matches").waitFor()
        await page.reload()
        await page.getByText("No delivery matches").waitFor()
        expect(await page.getByLabel("State").inputValue()).toBe("failed")
        expect(await page.getByLabel("From").inputValue()).toBe("2099-01-01T00:00")
        await page.getByRole("button", { name: "Clear filters" }).click()
        await page.waitForURL((url) => url.search === "")
        // The field follows the address
        await expect.poll(() => page.getByLabel("From").inputValue(), { timeout: 30_000 }).toBe("")

        await open(page, `/sandbox/deliveries/${failed}`)
        await page.getByText("The receiver has nothing at this path.").first().waitFor()
        await page.locator(".code pre").getByText('"type": "payment.refunded"').waitFor()

        await open(page, `/sandbox/deliveries/${waiting}`)
        await page
          .locator(".timeline-next")
          .getByText(/Attempt \d is made (in|any)/)
          .waitFor()
      })
    })

    inBrowser(it, "what takes longer to read than the page's reading interval is shown all the same", function* () {
      const { waiting } = yield* BusyWorkspace
      yield* asMember({ role: "developer" }, async (page) => {
        await page.route(`**/deliveries/${waiting}`, async (route) => {
          if (route.request().resourceType() === "fetch") await sleep(2500)
          await route.continue()
        })
        await open(page, `/sandbox/deliveries/${waiting}`)
        await page.locator(".timeline-next").waitFor()
      })
    })

    inBrowser(it, "an event is found by its id and by its payment, and shows where it went", function* () {
      const { event } = yield* BusyWorkspace
      yield* asMember({ role: "viewer" }, async (page) => {
        await open(page, "/sandbox/events")
        await page.getByRole("searchbox").fill(event)
        await page.keyboard.press("Enter")
        await page.getByRole("heading", { name: "Where it went" }).waitFor()
        await settled(page)
        await page.getByRole("row").filter({ hasText: "Shop" }).getByText("Delivered").first().waitFor()
        const payment = (await page.getByRole("link", { name: /^pi_/ }).first().textContent()) ?? ""
        await page.getByRole("link", { name: "All its events" }).click()
        await page.waitForURL(new RegExp(`payment=${payment}`))
        await page.getByText(`Only events of the payment ${payment}`).waitFor()
        await page.getByRole("row").filter({ hasText: "payment.succeeded" }).first().waitFor()
      })
    })

    inBrowser(it, "what failed is chosen and re-sent together; what waits is said, and sent now", function* () {
      const { accounting } = yield* BusyWorkspace
      yield* asMember({ role: "developer" }, async (page) => {
        await open(page, "/sandbox/deliveries")
        await page.getByRole("button", { name: "Choose all that failed (1)" }).click()
        expect(await page.getByRole("checkbox", { checked: true }).count()).toBe(1)
        await page.getByRole("button", { name: "Re-send 1" }).click()
        await page.getByRole("dialog").getByRole("button", { name: "Re-send" }).click()
        await page.getByText("1 queued for one more attempt.").waitFor()

        await open(page, `/sandbox/destinations/${accounting}?tab=again`)
        await page.getByText(/1 delivery waits for another attempt/).waitFor()
        await page.getByRole("button", { name: "Send now" }).click()
        await page.getByRole("dialog").getByRole("button", { name: "Send now" }).click()
        await page
          .getByRole("table", { name: "Replays, newest first" })
          .getByText(/queued/)
          .first()
          .waitFor()
      })
    })

    inBrowser(it, "the overview draws 30 days, each value also by the arrow keys and in a table", function* () {
      yield* BusyWorkspace
      yield* asMember({ role: "viewer" }, async (page) => {
        const asked: Array<string> = []
        page.on("request", (request) => {
          if (request.resourceType() === "fetch") asked.push(new URL(request.url()).pathname)
        })
        await open(page, "/sandbox")
        expect(asked.length).toBeGreaterThan(3)
        expect(asked).toEqual([...new Set(asked)])
        await page.getByText("R$98.00 did not reach the payers, 2 refunds failed").waitFor()
        const chart = page.getByRole("group", { name: /^Volume by day in BRL/ })
        await chart.focus()
        await page.keyboard.press("Home")
        await page.keyboard.press("ArrowRight")
        const table = page.getByRole("table", { name: "Volume by day in BRL" })
        const [day, value] = await table.getByRole("row").nth(2).locator("th, td").allTextContents()
        const legend = await page.locator(".bars").first().getByRole("status").textContent()
        expect(legend).toBe(`${day}Received ${value}`)
        expect(value).toMatch(/^R\$[\d,]+\.\d\d$/)
        // Yen have no decimals
        await page.getByRole("link", { name: "JPY" }).click()
        await page.getByRole("table", { name: "Volume by day in JPY" }).waitFor({ state: "attached" })
        expect(await page.locator(".bars").first().getByRole("status").textContent()).toMatch(/Received ¥[\d,]+$/)
        // Its receiver is down, though nothing has failed for good yet
        const failing = page.getByRole("table", { name: "Destinations with failures in the last 24 hours" })
        await failing.getByRole("link", { name: "Accounting" }).first().waitFor()
        await open(page, "/sandbox/destinations")
        await page
          .getByRole("row")
          .filter({ hasText: "Accounting" })
          .getByText(/waiting$/)
          .first()
          .waitFor()
      })
    })
  })
})
