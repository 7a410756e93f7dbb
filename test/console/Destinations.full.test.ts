import { expect } from "@effect/vitest"
import { Effect, Option } from "effect"
import type { Page } from "playwright-core"
import { verifyWebhook } from "../../src/webhooks/index.ts"
import { expectAccessible } from "../harness/Accessibility.ts"
import { browserNote } from "../harness/Browser.ts"
import { makeConsumer } from "../harness/Consumer.ts"

import { eventually } from "../harness/Eventually.ts"
import { TestService } from "../harness/TestService.ts"
import { makePrice, pay } from "../surface/http/Payments.ts"
import { asMember, inBrowser, memberVisit, onConsole, open, settled } from "./ConsoleBed.ts"
import { integrations, makeDestination, sendTest } from "./EventPagesData.ts"

const confirm = async (page: Page, label: string) => {
  const dialog = page.getByRole("dialog")
  await dialog.getByRole("button", { name: label, exact: true }).click()
  await dialog.waitFor({ state: "detached" })
}

const codeIn = (page: Page, label: string) => page.locator(".code").filter({ hasText: label }).locator("pre")

onConsole(`the destinations of the console${browserNote}`, (it) => {
  inBrowser(it, "a developer creates one, sees its secret once, breaks its receiver and re-sends", function* () {
    const consumer = yield* makeConsumer
    const { page } = yield* memberVisit({ role: "developer" })
    const secret = yield* Effect.promise(async () => {
      await open(page, "/sandbox/destinations/new")
      await page.getByLabel("URL", { exact: true }).fill(consumer.url)
      await page.getByLabel("Name (optional)").fill("Shop")
      await page.getByLabel("payment.succeeded").check()
      await page.getByRole("button", { name: "Create destination" }).click()
      await page.getByText("it is shown only this once").waitFor()
      expect(await page.evaluate("scrollY")).toBe(0)
      expect(await page.evaluate("document.activeElement.textContent")).toContain("it is shown only this once")
      await expectAccessible(page)
      const shown = (await page.locator(".secret code").first().textContent()) ?? ""
      // The receiver's code has the organization filled in, and the secret only in the environment
      const code = codeIn(page, "A receiver in Node")
      expect(await code.textContent()).toMatch(/organizationId: "[0-9a-f-]{36}"/)
      await page.getByRole("tab", { name: "Python" }).click()
      expect(await codeIn(page, "A receiver in Python").textContent()).not.toContain(shown)
      expect(await codeIn(page, "The receiver's environment").textContent()).toContain(shown)
      await page.getByRole("link", { name: "Next: send a test event" }).click()
      await settled(page)
      expect(await page.content()).not.toContain(shown)
      return shown
    })
    yield* Effect.promise(async () => {
      await page.getByRole("button", { name: "Send a test event" }).click()
      await page.getByText("It arrived: the receiver answered 2xx.").waitFor()
    })
    const [first] = consumer.received
    const event = verifyWebhook({
      body: first?.body ?? "",
      header: String(first?.headers["service-signature"]),
      secret
    })
    expect(event).toMatchObject({ type: "payment.succeeded", test: true })

    consumer.answer(400)
    yield* Effect.promise(async () => {
      await page.getByRole("button", { name: "Send another" }).click()
      await page.getByText("It did not arrive.").waitFor()
      await page.getByRole("link", { name: "Open this delivery" }).click()
      await settled(page)
      await page.getByText("HTTP 400").first().waitFor()
      await page.getByText("11 of 12 attempts left").waitFor()
      await expectAccessible(page)
    })
    consumer.answer(204)
    yield* Effect.promise(async () => {
      await page.getByRole("button", { name: "Re-send" }).click()
      await confirm(page, "Re-send")
      await page.locator(".timeline-end").getByText("Delivered").waitFor()
      expect(await page.locator(".timeline").textContent()).toContain("re-sent by hand")
      expect(await page.getByRole("button", { name: "Re-send" }).count()).toBe(0)
    })
    expect(consumer.received).toHaveLength(3)
  })

  inBrowser(it, "a rotation whose answer is lost is not repeated when the dialog is opened again", function* () {
    const consumer = yield* makeConsumer
    const id = yield* makeDestination("Shop", consumer.url, ["payment.succeeded"])
    yield* asMember({ role: "owner" }, async (page) => {
      let lost: string | undefined
      await page.route("**/rotate-secret", async (route) => {
        if (lost !== undefined) return route.continue()
        lost = await (await route.fetch()).text()
        return route.abort("connectionreset")
      })
      await open(page, `/sandbox/destinations/${id}?tab=settings`)
      const dialog = page.getByRole("dialog")
      const rotate = async () => {
        await page.getByRole("button", { name: "Rotate the secret" }).click()
        await dialog.getByLabel("Type ROTATE to confirm").fill("ROTATE")
        await dialog.getByRole("button", { name: "Rotate" }).click()
      }
      await rotate()
      await dialog.getByText("could not be reached").waitFor()
      await dialog.getByRole("button", { name: "Cancel" }).click()
      await dialog.waitFor({ state: "detached" })
      await rotate()
      await page.getByRole("heading", { name: "The new signing secret" }).waitFor()
      // A second one would have put the receiver's own secret out of use at once
      expect(lost).toContain(await dialog.locator(".secret code").first().textContent())
    })
  })

  inBrowser(it, "a recovery or replay whose answer is lost is started once: a retry keeps its key", function* () {
    const consumer = yield* makeConsumer
    const { get } = yield* integrations
    const id = yield* makeDestination("Shop", consumer.url, ["payment.succeeded"])
    const { page } = yield* memberVisit({ role: "developer" })
    yield* Effect.promise(() => open(page, `/sandbox/destinations/${id}?tab=again`))
    for (const [button, path, list] of [
      ["Recover", "recover", "recoveries"],
      ["Replay", "replay", "replays"]
    ] as const) {
      const keys: Array<string | undefined> = []
      yield* Effect.promise(async () => {
        await page.route(`**/endpoints/${id}/${path}`, async (route) => {
          keys.push(route.request().headers()["idempotency-key"])
          if (keys.length > 1) return route.continue()
          await route.fetch()
          return route.abort("connectionreset")
        })
        const lost = page.getByText("could not be reached")
        await page.getByRole("button", { name: button, exact: true }).click()
        await lost.waitFor()
        await page.getByRole("button", { name: button, exact: true }).click()
        await lost.waitFor({ state: "detached" })
        await expect.poll(() => keys).toEqual([expect.any(String), keys[0]])
        await settled(page)
      })
      expect((yield* get(`/endpoints/${id}/${list}`))["data"]).toHaveLength(1)
    }
  })

  inBrowser(it, "renaming one leaves the types and filters that somebody else has changed meanwhile", function* () {
    const { get, patch } = yield* integrations
    const consumer = yield* makeConsumer
    const id = yield* makeDestination("Shop", consumer.url, ["payment.succeeded"])
    const { page } = yield* memberVisit({ role: "owner" })
    yield* Effect.promise(() => open(page, `/sandbox/destinations/${id}?tab=settings`))
    yield* patch(`/endpoints/${id}`, { events: ["payment.succeeded", "payment.failed"], filters: { amountMin: 500 } })
    const save = async (name: string) => {
      await page.getByLabel("Name", { exact: true }).fill(name)
      await page.getByRole("button", { name: "Save changes" }).click()
      await page.getByRole("heading", { level: 1, name }).waitFor()
    }
    yield* Effect.promise(() => save("New shop"))
    const changed = { events: ["payment.succeeded", "payment.failed"], filters: { amountMin: 500 } }
    expect(yield* get(`/endpoints/${id}`)).toMatchObject({ name: "New shop", ...changed })
    // What was saved before is no change any more
    yield* patch(`/endpoints/${id}`, { name: "Their shop" })
    yield* Effect.promise(async () => {
      await page.getByLabel("Currencies (optional)").fill("brl")
      await page.getByRole("button", { name: "Save changes" }).click()
      await page.getByRole("heading", { level: 1, name: "Their shop" }).waitFor()
    })
    expect(yield* get(`/endpoints/${id}`)).toMatchObject({ name: "Their shop", filters: { currencies: ["brl"] } })
  })

  inBrowser(it, "each problem is shown at its field: by the page while typing, then by the service", function* () {
    yield* asMember({ role: "admin" }, async (page) => {
      await open(page, "/sandbox/destinations/new")
      await page.getByRole("button", { name: "Create destination" }).click()
      await page.getByText("Write the receiver’s URL").waitFor()
      await page.getByText("Choose at least one event type").waitFor()

      await page.getByLabel("URL", { exact: true }).fill("https://shop.example/hook?token=1")
      await page.getByText("Leave the query out").waitFor()
      await page.getByRole("button", { name: "All payments" }).click()
      expect(await page.getByLabel("payment.refunded").isChecked()).toBe(true)
      await page.getByLabel("Products (optional)").fill("coffee")
      await page.getByText("is not a product's id").waitFor()
      await page.getByLabel("Products (optional)").fill("prod_1")
      await page.getByText("3 chosen types would never be sent").waitFor()
      await page.getByLabel("Least amount (optional)").fill("10")
      await page.getByLabel("Greatest amount (optional)").fill("5")
      await page.getByText("must not be greater").waitFor()
      await page.getByLabel("Greatest amount (optional)").fill("")
      await page.getByRole("button", { name: "Add a pair" }).click()
      await page.getByLabel("Key 1").fill("a b")
      await page.getByText("without spaces").waitFor()
      await page.getByRole("button", { name: "Remove pair 1" }).click()
      await expectAccessible(page)

      // Nobody knows this name: only the service can tell
      await page.getByLabel("URL", { exact: true }).fill("https://nowhere.invalid/hook")
      await page.getByRole("button", { name: "Create destination" }).click()
      await page
        .getByText(/could not be resolved/)
        .first()
        .waitFor()
      expect(await page.getByLabel("URL", { exact: true }).getAttribute("aria-invalid")).toBe("true")
      await page.getByText(/req_/).first().waitFor()
    })
  })

  inBrowser(it, "one is paused, activated, renamed, rotated, recovered, replayed and deleted", function* () {
    const consumer = yield* makeConsumer
    consumer.answer(400)
    const id = yield* makeDestination("Shop", consumer.url, ["payment.succeeded", "payment.refunded"])
    yield* sendTest(id, "payment.succeeded")
    yield* asMember({ role: "owner" }, async (page) => {
      await open(page, `/sandbox/destinations/${id}`)
      await page.getByRole("button", { name: "Pause" }).click()
      await confirm(page, "Pause")
      await page.getByText("A paused destination gets no test events").waitFor()
      await page.getByRole("button", { name: "Activate" }).click()
      await confirm(page, "Activate")
      await page.getByRole("button", { name: "Send a test event" }).waitFor()

      await page.getByRole("link", { name: "Skipped while paused" }).click()
      await page.getByText("Nothing was skipped").waitFor()

      await page.getByRole("link", { name: "Send again" }).click()
      await page.getByRole("button", { name: "Recover" }).click()
      // Synthetic tests are not recovered
      await page.getByText("Nothing had failed").waitFor()
      await page.getByRole("button", { name: "Replay" }).click()
      await page
        .getByText(/^\d+ queued, \d+ left out/)
        .first()
        .waitFor()
      await expectAccessible(page)

      await page.getByRole("link", { name: "Settings" }).click()
      await page.getByLabel("Name", { exact: true }).fill("New shop")
      await page.getByLabel("payment.refunded").uncheck()
      await page.getByLabel("Currencies (optional)").fill("brl")
      await page.getByRole("button", { name: "Save changes" }).click()
      await page.getByRole("heading", { level: 1, name: "New shop" }).waitFor()
      await expectAccessible(page)

      await page.getByRole("button", { name: "Rotate the secret" }).click()
      const dialog = page.getByRole("dialog")
      await dialog.getByText("two signatures").waitFor()
      await dialog.getByLabel("Type ROTATE to confirm").fill("rotate")
      await dialog.getByRole("button", { name: "Rotate" }).click()
      await dialog.getByText("Type ROTATE, as it is written here.").waitFor()
      await dialog.getByLabel("Type ROTATE to confirm").fill("ROTATE")
      await dialog.getByRole("button", { name: "Rotate" }).click()
      await page.getByRole("heading", { name: "The new signing secret" }).waitFor()
      const secret = (await dialog.locator(".secret code").first().textContent()) ?? ""
      expect(secret).toMatch(/^whsec_/)
      await expectAccessible(page)
      await dialog.getByRole("button", { name: "I have stored it" }).click()
      await dialog.waitFor({ state: "detached" })
      expect(await page.content()).not.toContain(secret)

      await page.getByRole("link", { name: "Activity" }).click()
      await page.getByText("Also signs new events until").waitFor()
      await page.getByText("in BRL").waitFor()

      await page.getByRole("link", { name: "Settings" }).click()
      await page.getByRole("button", { name: "Delete this destination" }).click()
      await confirm(page, "Delete for good")
      await page.getByRole("heading", { level: 1, name: "Destinations" }).waitFor()
      await settled(page)
      await page.getByText("New shop", { exact: true }).waitFor({ state: "detached" })
      // Its history stays
      await open(page, `/sandbox/deliveries?destination=${id}`)
      await page
        .getByRole("cell", { name: /Deleted destination/ })
        .first()
        .waitFor()
    })
  })

  inBrowser(it, "what happens while one is paused is listed there, and a replay of that time sends it", function* () {
    const service = yield* TestService
    const consumer = yield* makeConsumer
    const { get, patch } = yield* integrations
    const id = yield* makeDestination("Paused shop", consumer.url, ["checkout.completed"])
    yield* patch(`/endpoints/${id}`, { active: false })
    const tenant = { organizationId: service.organization.id, key: service.organization.testKey }
    yield* pay(service, { ...tenant, priceId: yield* makePrice(service, tenant) })
    const skipped = yield* eventually(
      "the skipped event",
      Effect.map(get(`/endpoints/${id}/skipped`), ({ data }) =>
        Option.fromNullable(Array.isArray(data) ? data.at(0) : undefined)
      )
    )
    yield* asMember({ role: "developer" }, async (page) => {
      await open(page, `/sandbox/destinations/${id}?tab=skipped`)
      const row = page.getByRole("row").filter({ hasText: "checkout.completed" })
      await row.waitFor()
      expect(await row.count()).toBe(1)
      expect(await row.getByRole("link").first().getAttribute("href")).toContain(`/sandbox/events/${skipped.eventId}`)
      expect(await page.getByRole("link", { name: "Replay their time" }).count()).toBe(0)
      await expectAccessible(page)
      await page.getByRole("button", { name: "Activate" }).click()
      await confirm(page, "Activate")
      await page.getByRole("link", { name: "Replay their time" }).click()
      await page.getByRole("button", { name: "Replay" }).click()
      const replay = page.getByRole("row").filter({ hasText: "1 queued, 0 left out" })
      await replay.getByText("Finished").waitFor()
      await expectAccessible(page)
      await page.getByRole("link", { name: "Activity" }).click()
      await page.getByRole("cell", { name: "Delivered" }).first().waitFor()
    })
    expect(consumer.received.map(({ body }) => Object(JSON.parse(body.toString())).id)).toEqual([skipped.eventId])
  })
})
