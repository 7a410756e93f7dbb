import { Effect } from "effect"
import { colourRules, expectAccessible, expectNoSidewaysScroll } from "../harness/Accessibility.ts"
import { browserNote, hasBrowser, openBrowser } from "../harness/Browser.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { call, connected, raw, sdk, somePrice, someSession, submit } from "./Harness.ts"

/** One URL of each of the emulator's pages. */
const pages = Effect.gen(function* () {
  const { emulator, stripe } = yield* connected()
  const price = yield* somePrice(stripe, { product_data: { name: `Coffee, ${"very".repeat(20)} strong` } })
  const session = yield* someSession(stripe, {
    line_items: [{ price: price.id, quantity: 2 }],
    allow_promotion_codes: true,
    cancel_url: "https://shop.example/cart",
    phone_number_collection: { enabled: true },
    custom_fields: [
      { key: "grind", label: { type: "custom", custom: "Grind" }, type: "text" },
      {
        key: "size",
        label: { type: "custom", custom: "Size" },
        type: "dropdown",
        dropdown: { options: [{ label: "Large", value: "large" }] }
      }
    ]
  })
  const declined = yield* someSession(stripe)
  yield* submit(declined.url, { action: "decline" })
  const paid = yield* someSession(stripe)
  yield* submit(paid.url, { action: "pay" })
  const platform = sdk(emulator.url)
  const account = yield* call(() => platform.accounts.create({ business_profile: { name: "Bakery" } }))
  const link = yield* call(() =>
    platform.accountLinks.create({
      account: account.id,
      type: "account_onboarding",
      refresh_url: "https://shop.example/again",
      // A page that there is
      return_url: emulator.url
    })
  )
  const consent = new URLSearchParams({
    client_id: emulator.oauthClientId,
    redirect_uri: "https://shop.example/back",
    response_type: "code",
    scope: "read_write"
  })
  return {
    checkout: session.url ?? "",
    "a plain checkout": declined.url ?? "",
    "a finished checkout": paid.url ?? "",
    onboarding: (yield* raw("", link.url)).headers.get("location") ?? "",
    consent: `${emulator.url}/oauth/authorize?${consent}`,
    back: `${emulator.url}/`,
    "no such page": `${emulator.url}/b/plink_unknown`
  }
})

describe(`the emulator's pages${browserNote}`, () => {
  it.scopedLive.skipIf(!hasBrowser)(
    "can be read by everybody, on a small screen, in light and dark, and say that they are in test mode",
    function* () {
      const { back: _, ...all } = yield* pages
      const browser = yield* openBrowser
      yield* Effect.promise(async () => {
        const page = await browser.newPage()
        await page.setViewportSize({ width: 360, height: 740 })
        for (const [name, url] of Object.entries(all)) {
          await page.emulateMedia({ colorScheme: "light" })
          await page.goto(url)
          await expectAccessible(page)
          await expectNoSidewaysScroll(page)
          expect([name, await page.getByRole("banner").innerText()]).toEqual([
            name,
            expect.stringMatching(/^Test mode/)
          ])
          await page.emulateMedia({ colorScheme: "dark" })
          await expectAccessible(page, colourRules)
        }
      })
    }
  )

  it.scopedLive.skipIf(!hasBrowser)("take an account's owner through onboarding, by the keyboard alone", function* () {
    const { back, onboarding } = yield* pages
    const browser = yield* openBrowser
    yield* Effect.promise(async () => {
      const page = await browser.newPage()
      await page.goto(onboarding)
      await page.getByLabel("Name of your business").focus()
      await page.keyboard.press("ControlOrMeta+A")
      await page.keyboard.type("Corner bakery")
      await page.keyboard.press("Tab")
      expect(await page.evaluate("document.activeElement.textContent")).toBe("Submit everything")
      await page.keyboard.press("Enter")
      await page.waitForURL(back)
    })
  })
})
