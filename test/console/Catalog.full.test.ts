import { expect } from "@effect/vitest"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { expectAccessible } from "../harness/Accessibility.ts"
import { browserNote } from "../harness/Browser.ts"
import { TestService } from "../harness/TestService.ts"
import { png } from "../payments/images/Pictures.ts"
import { makeOffer, provider } from "./CatalogData.ts"
import { asMember, expectAccessiblePages, inBrowser, memberVisit, onConsole, open, settled } from "./ConsoleBed.ts"

const dialogOf = (page: Page) => page.getByRole("dialog")

const closed = (page: Page) => dialogOf(page).waitFor({ state: "detached" })

const file = (name: string, mimeType: string, bytes: Uint8Array) => ({ name, mimeType, buffer: Buffer.from(bytes) })

onConsole(`the catalog of the console${browserNote}`, (it) => {
  inBrowser(it, "a developer creates a product with an image, adds a price and takes it off sale", function* () {
    yield* asMember({ role: "developer" }, async (page) => {
      await open(page, "/sandbox/products/new")
      const images = page.locator("input[type=file]")
      await images.setInputFiles(file("notes.txt", "text/plain", new Uint8Array([1])))
      await page.getByText("notes.txt is not a JPEG, PNG or WebP image.").waitFor()
      // What it claims to be is believed by the page, and not by the service
      await images.setInputFiles(file("broken.png", "image/png", new Uint8Array([1, 2, 3])))
      await page.locator(".notice-request", { hasText: "req_" }).waitFor()
      await images.setInputFiles(file("cup.png", "image/png", png({ width: 40 })))
      const shown = page.getByAltText("Image 1")
      await shown.waitFor()
      await expect
        .poll(() => shown.evaluate((image) => Number(Reflect.get(image, "naturalWidth"))), { timeout: 30_000 })
        .toBe(40)

      await page.getByLabel("Currency", { exact: true }).selectOption("brl")
      await page.getByRole("button", { name: "Create product" }).click()
      await page.getByText("Write an amount.").waitFor()
      await page.getByLabel("Price", { exact: true }).fill("45")
      await page.getByText("= R$45.00").waitFor()
      await page.getByRole("button", { name: "Create product" }).click()
      // The name is missing, which the service says
      await expect
        .poll(() => page.getByLabel("Name", { exact: true }).getAttribute("aria-invalid"), { timeout: 30_000 })
        .toBe("true")
      await page.getByLabel("Name", { exact: true }).fill("Coffee beans")
      await expectAccessible(page)
      await page.getByRole("button", { name: "Create product" }).click()
      await page.getByRole("heading", { level: 1, name: "Coffee beans" }).waitFor()
      await settled(page)
      await page.getByRole("cell", { name: "R$45.00", exact: true }).waitFor()
      await page.getByAltText("Image 1 of Coffee beans").waitFor()

      await page.getByRole("button", { name: "Add a price" }).first().click()
      const dialog = dialogOf(page)
      await dialog.getByLabel("Again and again, as a subscription").check()
      await dialog.getByLabel("Every", { exact: true }).fill("3")
      await dialog.getByLabel("Free days at first").fill("7")
      await dialog.getByLabel("In tiers").check()
      await dialog.getByLabel("For each unit").first().fill("40")
      await dialog.getByLabel("For each unit").last().fill("35,5")
      await dialog.getByLabel("Lookup key").fill("beans")
      await expectAccessible(page)
      await dialog.getByRole("button", { name: "Add price" }).click()
      await closed(page)
      await page.getByText("From R$40.00 each, in tiers, every 3 months", { exact: true }).waitFor()
      await page.getByText("11 and more").waitFor()
      await page.getByText("R$35.50 each").waitFor()
      await page.getByText("7 days free first").waitFor()

      await page.getByRole("button", { name: "Edit" }).click()
      await dialog.getByLabel("Name", { exact: true }).fill("Coffee beans, 1 kg")
      await dialog.getByRole("button", { name: "Save" }).click()
      await closed(page)
      await page.getByRole("heading", { level: 1, name: "Coffee beans, 1 kg" }).waitFor()

      await page.getByRole("button", { name: /^Take off sale/ }).click()
      await page.getByText("Off sale", { exact: true }).waitFor()
      await page.getByRole("link", { name: "Products" }).first().click()
      await settled(page)
      await page.getByLabel("Show").selectOption("inactive")
      await page.getByRole("link", { name: "Coffee beans, 1 kg" }).waitFor()
    })
  })

  inBrowser(it, "a price is renamed, takes over another's lookup key and becomes the default", function* () {
    const { get, post } = yield* provider
    const { price, product } = yield* makeOffer("Tea", { currency: "jpy", unit_amount: 900, lookup_key: "tea" })
    yield* post("/prices", { product, currency: "jpy", unit_amount: 800 })
    yield* asMember({ role: "admin" }, async (page) => {
      await open(page, `/sandbox/products/${product}`)
      await page.getByRole("button", { name: "Rename ¥800" }).click()
      const dialog = dialogOf(page)
      await dialog.getByLabel("Nickname").fill("Cheaper")
      await dialog.getByLabel("Lookup key").fill("tea")
      await dialog.getByRole("button", { name: "Save" }).click()
      await expect
        .poll(() => dialog.getByLabel("Lookup key").getAttribute("aria-invalid"), { timeout: 30_000 })
        .toBe("true")
      await dialog.getByLabel("Take the key from the price that has it").check()
      await dialog.getByRole("button", { name: "Save" }).click()
      await closed(page)
      await page.getByText("Cheaper", { exact: true }).waitFor()
      await page.getByRole("button", { name: "Make default: ¥800" }).click()
      await page.getByText("Default", { exact: true }).waitFor()
      await page.getByRole("button", { name: "Deactivate ¥900" }).click()
      await page.getByText("Inactive", { exact: true }).waitFor()
      // The default price stays on sale until another takes its place
      expect(await page.getByRole("button", { name: "Deactivate ¥800" }).count()).toBe(0)
    })
    expect(yield* get(`/prices/${price}`)).toMatchObject({ active: false, lookup_key: null })
  })

  inBrowser(it, "a promotion code is created, its double is refused at the code, and it is deactivated", function* () {
    yield* makeOffer("Filter papers", { currency: "brl", unit_amount: 900 })
    const { page } = yield* memberVisit({ role: "developer" })
    const create = async (code: string) => {
      await page.getByRole("button", { name: "New promotion code" }).first().click()
      const dialog = dialogOf(page)
      await dialog.getByLabel("Code", { exact: true }).fill(code)
      await dialog.getByLabel("Percent off").fill("12,5")
      await dialog.getByLabel("Some months").check()
      await dialog.getByLabel("Limit").fill("100")
      await dialog.getByLabel("Filter papers").first().check()
      await expectAccessible(page)
      await dialog.getByRole("button", { name: "Create code" }).click()
    }
    yield* Effect.promise(async () => {
      await open(page, "/sandbox/promotion-codes")
      await create("AUTUMN")
      await closed(page)
      await page.getByText("12.5% off").waitFor()
      await page.getByText("the payments of 3 months").waitFor()
      await page.getByRole("cell", { name: "0 of 100" }).waitFor()

      await create("autumn")
      const code = dialogOf(page).getByLabel("Code", { exact: true })
      await expect.poll(() => code.getAttribute("aria-invalid"), { timeout: 30_000 }).toBe("true")
      await dialogOf(page)
        .getByText(/taken already/)
        .first()
        .waitFor()
      await dialogOf(page)
        .getByText(/req_[0-9a-f]/)
        .waitFor()
      await dialogOf(page).getByRole("button", { name: "Cancel" }).click()
      await closed(page)

      await page.getByRole("button", { name: "Deactivate AUTUMN" }).click()
      await page.getByRole("button", { name: "Activate AUTUMN" }).waitFor()
      await page.getByLabel("Show").selectOption("active")
      await page.getByText("No active codes").waitFor()
    })
  })

  inBrowser(it, "a payment link is created, paid at on the provider's page, and closed", function* () {
    yield* makeOffer("Gift card", { currency: "brl", unit_amount: 5000 })
    yield* asMember({ role: "owner" }, async (page, context) => {
      await open(page, "/sandbox/payment-links")
      await page.getByRole("button", { name: "New payment link" }).first().click()
      const dialog = dialogOf(page)
      await dialog.getByRole("button", { name: "Create link" }).click()
      await dialog.getByText("Choose what is sold.").waitFor()
      await dialog.getByLabel("Price", { exact: true }).selectOption({ label: "Gift card · R$50.00" })
      await dialog.getByLabel("The payer chooses how many").check()
      await dialog.getByLabel("Limit").fill("1")
      await dialog.getByLabel("Message after payment").fill("Thank you, see you soon!")
      await expectAccessible(page)
      await dialog.getByRole("button", { name: "Create link" }).click()
      const payer = context.waitForEvent("page")
      await dialog.getByRole("link", { name: "Open the payment link" }).click()
      const shop = await payer
      await shop.getByLabel("Quantity").fill("2")
      await shop
        .getByRole("button", { name: /^Pay\b/ })
        .first()
        .click()
      await shop.getByText("Thank you, see you soon!").waitFor()
      await shop.close()
      await dialog.getByRole("button", { name: "Done" }).click()
      await closed(page)

      await open(page, "/sandbox/payment-links")
      await page.getByRole("cell", { name: "1 of 1" }).waitFor()
      await page.getByRole("cell", { name: /Gift card/ }).waitFor()
    })
  })

  inBrowser(it, "a checkout page with questions is created, opened, edited, closed and deleted", function* () {
    const { baseUrl } = yield* TestService
    const offer = yield* makeOffer("Roasting course", { currency: "kwd", unit_amount: 15_500 })
    yield* asMember({ role: "developer" }, async (page, context) => {
      await open(page, "/sandbox/payment-links?tab=pages")
      await page.getByRole("button", { name: "New checkout page" }).first().click()
      const dialog = dialogOf(page)
      await dialog.getByLabel("Title").fill("Learn to roast")
      await dialog.locator("input[type=file]").setInputFiles(file("roast.png", "image/png", png({ shade: 40 })))
      await dialog.getByLabel("Description of the image").fill("A roaster")
      // A price that is named by its id
      await dialog.getByLabel("Price", { exact: true }).selectOption({ label: "Another price, by its id" })
      await dialog.getByLabel("Id of the price").fill(offer.price)
      await dialog.locator(".field-hint", { hasText: "Roasting course · KWD" }).waitFor()
      await dialog.getByRole("button", { name: "Ask a question of your own" }).click()
      await dialog.getByLabel("Question", { exact: true }).fill("Which day?")
      await dialog.getByLabel("Answer", { exact: true }).selectOption("dropdown")
      await dialog.getByLabel("Choices, one per line").fill("Monday\nTuesday")
      await expectAccessible(page)
      await dialog.getByRole("button", { name: "Create page" }).click()
      const opened = context.waitForEvent("page")
      await dialog.getByRole("link", { name: "Open the checkout page" }).click()
      const shop = await opened
      await shop.getByRole("heading", { name: "Learn to roast" }).waitFor()
      const address = shop.url()
      expect(address.startsWith(`${baseUrl}/pay/`)).toBe(true)
      await dialog.getByRole("button", { name: "Done" }).click()
      await closed(page)

      await page.getByText("KWD 15.500").waitFor()
      await page.getByRole("button", { name: "Edit Learn to roast" }).click()
      await dialog.getByLabel("Title").fill("Learn to brew")
      await dialog.getByLabel("Text", { exact: false }).first().fill("Bring a cup.")
      await dialog.getByRole("button", { name: "Remove image 1" }).click()
      await dialog.getByLabel("Quantity", { exact: true }).fill("2")
      await dialog.getByLabel("Choices, one per line").fill("Tuesday\nFriday")
      await expectAccessible(page)
      await dialog.getByRole("button", { name: "Save" }).click()
      await closed(page)
      await page.getByRole("link", { name: "Learn to brew" }).waitFor()
      await shop.goto(address)
      await shop.getByRole("heading", { name: "Learn to brew" }).waitFor()
      await shop.getByText("Bring a cup.").waitFor()
      expect(await shop.getByRole("img", { name: "A roaster" }).count()).toBe(0)
      await page.getByRole("button", { name: "Close Learn to brew" }).click()
      await page.getByRole("button", { name: "Open Learn to brew" }).waitFor()
      expect((await shop.goto(address))?.status()).toBe(404)
      await page.getByRole("button", { name: "Delete Learn to brew" }).click()
      await dialog.getByRole("button", { name: "Delete page" }).click()
      await closed(page)
      await page.getByText("No checkout pages yet").waitFor()
      expect((await shop.goto(address))?.status()).toBe(410)
    })
  })

  inBrowser(it, "each page is accessible and never scrolls sideways: light, dark and on a phone", function* () {
    const { product } = yield* makeOffer("Sold to everybody", { currency: "brl", unit_amount: 100 })
    yield* asMember({ role: "owner" }, async (page) => {
      await expectAccessiblePages(page, [
        "/sandbox/products",
        "/sandbox/products/new",
        `/sandbox/products/${product}`,
        "/sandbox/promotion-codes",
        "/sandbox/payment-links",
        "/sandbox/payment-links?tab=pages",
        // Where there is nothing yet
        "/production/products"
      ])
    })
  })
})
