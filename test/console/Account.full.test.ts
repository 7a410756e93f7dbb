import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { expectAccessible } from "../harness/Accessibility.ts"
import { browserNote } from "../harness/Browser.ts"
import { newEmail } from "../harness/SignIn.ts"
import { asMember, inBrowser, onConsole, open, settled, signInBrowser, visit } from "./ConsoleBed.ts"

const newcomer = Effect.gen(function* () {
  const opened = yield* visit()
  yield* signInBrowser(opened.context, newEmail())
  const { page } = opened
  yield* Effect.promise(async () => {
    await page.goto("/console/")
    await page.getByRole("textbox", { name: "Name" }).fill("Corner bakery")
    await page.getByRole("button", { name: "Create the organization" }).click()
    await page.getByRole("navigation", { name: "Pages" }).waitFor()
  })
  return opened
})

onConsole(`connecting an account in a browser${browserNote}`, (it) => {
  inBrowser(it, "goes to the provider and comes back, ticks the first steps, and can be ended", function* () {
    const { page } = yield* newcomer
    yield* Effect.promise(async () => {
      await open(page, "/sandbox/start")
      await page.getByText("1 of 5 done").waitFor()
      await expectAccessible(page)
      await page.getByRole("link", { name: "Connect", exact: true }).click()
      await page.getByText("Not connected").waitFor()
      await expectAccessible(page)
      await page.getByRole("button", { name: "Connect an account" }).click()
      // The provider's own page
      await page.getByRole("textbox", { name: "Name of your business" }).fill("Corner bakery")
      await page.getByRole("button", { name: "Leave out a document" }).click()
      await page.getByText("You are back from the provider").waitFor()
      expect(new URL(page.url()).pathname).toBe("/console/sandbox/account")
      await page.getByText("What the provider asks for").waitFor()
      await settled(page)
      await expectAccessible(page)
      await page.getByRole("button", { name: "Supply what is due" }).click()
      await page.getByRole("button", { name: "Submit everything" }).click()
      await page.getByText("The account can charge and is paid out.").waitFor()
      await open(page, "/sandbox/start")
      await page.getByText("2 of 5 done").waitFor()
      await open(page, "/sandbox/account")
      await page.getByRole("button", { name: "Disconnect the account" }).click()
      const dialog = page.getByRole("dialog")
      await dialog.getByText("no longer gets its events").waitFor()
      await expectAccessible(page)
      await dialog.getByRole("button", { name: "Disconnect", exact: true }).click()
      await dialog.getByText("Type DISCONNECT, as it is written here.").waitFor()
      await dialog.getByRole("textbox").fill("DISCONNECT")
      await dialog.getByRole("button", { name: "Disconnect", exact: true }).click()
      await page.getByRole("button", { name: "Connect it again" }).waitFor()
    })
  })

  inBrowser(it, "is for owners and admins: a developer sees the status, and no way to change it", function* () {
    yield* asMember({ role: "developer" }, async (page) => {
      await open(page, "/sandbox/account")
      await page.getByText("The account can charge and is paid out.").waitFor()
      expect(await page.getByRole("button", { name: /connect/i }).count()).toBe(0)
      expect(await page.getByRole("button", { name: "Save" }).count()).toBe(0)
    })
  })

  inBrowser(it, "has return pages, whose refusals are shown at their fields", function* () {
    yield* asMember({ role: "admin" }, async (page) => {
      await open(page, "/sandbox/account")
      const success = page.getByRole("textbox", { name: "After payment" })
      await success.fill("nowhere")
      await page.getByRole("button", { name: "Save" }).click()
      await page.locator(".field-reason").waitFor()
      expect(await success.getAttribute("aria-invalid")).toBe("true")
      expect(await page.getByRole("alert").innerText()).toMatch(/quote req_\w+/)
      await expectAccessible(page)
      await success.fill("https://shop.example/thanks")
      await page.getByRole("button", { name: "Save" }).click()
      await page.getByText("The return pages are saved.").waitFor()
      await page.reload()
      await settled(page)
      expect(await success.inputValue()).toBe("https://shop.example/thanks")
    })
  })

  inBrowser(it, "has a list for going live, of what production takes alone", function* () {
    yield* asMember({ role: "admin" }, async (page) => {
      await open(page, "/production/start")
      const step = (title: string) => page.locator(".step", { hasText: title })
      await step("Set your return pages (to do)").waitFor()
      await step("Create your products again (to do)").waitFor()
      await step("Make a first real payment and see its event arrive (to do)").waitFor()
      expect(await page.getByText("Send a test event").count()).toBe(0)
      await expectAccessible(page)
      await page.getByRole("link", { name: "Set them" }).click()
      await page.getByRole("textbox", { name: "After payment" }).fill("https://shop.example/paid")
      await page.getByRole("button", { name: "Save" }).click()
      await page.getByText("The return pages are saved.").waitFor()
      await open(page, "/production/start")
      await step("Set your return pages (done)").waitFor()
      await page.getByRole("link", { name: "Going live" }).click()
      await page.getByRole("heading", { level: 1, name: "Going live" }).waitFor()
    })
  })
})
