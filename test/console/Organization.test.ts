import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { expectAccessible } from "../harness/Accessibility.ts"
import { browserNote } from "../harness/Browser.ts"
import { newEmail } from "../harness/SignIn.ts"
import { inBrowser, memberVisit, onConsole, open, signInBrowser, visit } from "./ConsoleBed.ts"

onConsole(`the organization in a browser${browserNote}`, (it) => {
  inBrowser(it, "is renamed by its owner and closed once the word is typed; then another can be made", function* () {
    const { context, page } = yield* visit()
    yield* signInBrowser(context, newEmail())
    yield* Effect.promise(async () => {
      await page.goto("/console/")
      await page.getByRole("textbox", { name: "Name" }).fill("Corner bakrey")
      await page.getByRole("button", { name: "Create the organization" }).click()
      await page.getByRole("navigation", { name: "Pages" }).waitFor()
      await open(page, "/sandbox/people")
      await page.getByRole("button", { name: "Rename the organization" }).click()
      await expectAccessible(page)
      await page.getByRole("textbox", { name: "Name" }).fill("https://evil.example")
      await page.getByRole("button", { name: "Rename", exact: true }).click()
      await page.locator("[name=name][aria-invalid=true]").waitFor()
      await page.getByRole("textbox", { name: "Name" }).fill("Corner bakery")
      await page.getByRole("button", { name: "Rename", exact: true }).click()
      await page.getByText("Who works in Corner bakery").waitFor()

      await page.getByRole("button", { name: "Close the organization" }).click()
      const dialog = page.getByRole("dialog")
      await expectAccessible(page)
      await dialog.getByRole("button", { name: "Close the organization" }).click()
      await dialog.getByText("Type CLOSE, as it is written here.").waitFor()
      await dialog.getByRole("textbox").fill("CLOSE")
      await dialog.getByRole("button", { name: "Close the organization" }).click()
      await page.getByRole("heading", { name: "Create your organization" }).waitFor()
    })
  })

  inBrowser(it, "is not closed while it has something, nor is this offered to anyone but its owner", function* () {
    const owner = yield* memberVisit({ role: "owner" })
    const admin = yield* memberVisit({ role: "admin" })
    yield* Effect.promise(async () => {
      await open(owner.page, "/sandbox/people")
      await owner.page.getByRole("button", { name: "Close the organization" }).click()
      const dialog = owner.page.getByRole("dialog")
      await dialog.getByRole("textbox").fill("CLOSE")
      await dialog.getByRole("button", { name: "Close the organization" }).click()
      await dialog.getByText(/disconnect the account in sandbox.*remove its other members/).waitFor()
      await open(admin.page, "/sandbox/people")
      await admin.page.getByRole("table", { name: "Members of the organization" }).waitFor()
      expect(await admin.page.getByRole("button", { name: "Close the organization" }).count()).toBe(0)
    })
  })
})
