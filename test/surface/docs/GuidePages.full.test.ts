import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { guideNames, guidePath } from "../../../src/surface/docs/Guides.ts"
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
      for (const path of ["/docs", ...guideNames.map(guidePath), "/docs/search?q=key"]) {
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
