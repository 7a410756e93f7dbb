import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { guidePaths } from "../../../src/surface/docs/GuidePages.ts"
import { browserNote, hasBrowser, openBrowser } from "../../harness/Browser.ts"
import { onSharedService, TestService } from "../../harness/TestService.ts"

onSharedService("the guides", (it) => {
  it.scoped.skipIf(!hasBrowser)(`are read, searched and fit a phone, in a browser${browserNote}`, function* () {
    const { baseUrl } = yield* TestService
    const browser = yield* openBrowser
    yield* Effect.promise(async () => {
      const page = await browser.newPage()
      const elsewhere: Array<string> = []
      const complaints: Array<string> = []
      page.on("console", (message) => complaints.push(message.text()))
      page.on("request", (request) => {
        if (!request.url().startsWith(baseUrl) && !request.url().startsWith("data:")) elsewhere.push(request.url())
      })
      await page.setViewportSize({ width: 1280, height: 900 })
      await page.goto(`${baseUrl}/docs`)
      const contents = page.getByRole("navigation", { name: "Contents" })
      await contents.getByRole("link", { name: "Webhook endpoints" }).click()
      await page.getByRole("heading", { level: 1, name: "Webhook endpoints" }).waitFor()
      expect(await contents.locator("[aria-current=page]").textContent()).toBe("Webhook endpoints")
      // The style has passed the page's policy
      expect(await page.evaluate("getComputedStyle(document.querySelector('header')).position")).toBe("sticky")
      await page.getByRole("searchbox", { name: "Search the guides" }).fill("lost master key")
      await page.keyboard.press("Enter")
      await page.getByRole("link", { name: "Operating it: A lost master key" }).click()
      await page.waitForURL(`${baseUrl}/docs/operating#a-lost-master-key`)

      await page.getByRole("searchbox").fill("success_url")
      await page.keyboard.press("Enter")
      await page.getByRole("link", { name: "Checkout sessions: Create a checkout session" }).click()
      await page.waitForURL(`${baseUrl}/docs/reference/checkout-sessions#create`)
      await page
        .getByText("POST /v2/organizations/{organizationId}/provider/checkout/sessions", { exact: true })
        .waitFor()
      // Errors can be opened without a script
      const problem = page.getByRole("link", { name: "idempotency_key_reused" }).first()
      expect(await problem.isVisible()).toBe(false)
      await page.getByText("Errors", { exact: true }).and(page.locator("summary")).first().click()
      await problem.click()
      await page.waitForURL(`${baseUrl}/docs/errors#idempotency_key_reused`)
      expect(await page.locator("script").count()).toBe(0)

      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme })
        const colors = await page.evaluate(
          "(({ color, backgroundColor }) => ({ color, backgroundColor }))(getComputedStyle(document.body))"
        )
        expect(colors).toEqual(
          colorScheme === "light"
            ? { color: "rgb(28, 36, 48)", backgroundColor: "rgb(255, 255, 255)" }
            : { color: "rgb(223, 229, 236)", backgroundColor: "rgb(18, 22, 28)" }
        )
      }
      await page.setViewportSize({ width: 360, height: 740 })
      for (const path of [...guidePaths, "/docs/search?q=key"].filter((one) => !one.endsWith(".css"))) {
        await page.goto(`${baseUrl}${path}`)
        expect([path, await page.evaluate("document.documentElement.scrollWidth")]).toEqual([path, 360])
      }
      // What is too wide scrolls by itself
      await page.goto(`${baseUrl}/docs/verifying`)
      const scrolls = "(({ clientWidth, scrollWidth }) => scrollWidth > clientWidth)(document.querySelector('pre'))"
      expect(await page.evaluate(scrolls)).toBe(true)
      await page.getByRole("link", { name: "Contents" }).click()
      await contents.getByRole("link", { name: "Errors" }).click()
      await page.waitForURL(`${baseUrl}/docs/errors`)
      expect(elsewhere).toEqual([])
      expect(complaints).toEqual([])
    })
  })
})
