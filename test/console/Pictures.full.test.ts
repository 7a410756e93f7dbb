import { mkdirSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import type { BrowserContextOptions, Page } from "playwright-core"
import { phone } from "../harness/Accessibility.ts"
import { hasBrowser } from "../harness/Browser.ts"
import { makeCatalog, provider } from "./CatalogData.ts"
import { memberVisit, onConsole, open, settled, visit } from "./ConsoleBed.ts"
import { BusyWorkspace } from "./EventPagesData.ts"

/**
 * Pictures of every page, to look at: `npm run console:pictures` writes them to `console-pictures/`, which Git ignores.
 * Nothing is compared, so an ordinary run skips this.
 */

const wanted = process.env["CONSOLE_PICTURES"] !== undefined && hasBrowser

const folder = fileURLToPath(new URL("../../console-pictures/", import.meta.url))

const appearances = [
  { name: "light", browser: { colorScheme: "light" } },
  { name: "dark", browser: { colorScheme: "dark" } },
  { name: "375px", browser: { colorScheme: "light", viewport: phone } }
] as const satisfies ReadonlyArray<{ readonly name: string; readonly browser: BrowserContextOptions }>

/** Something to see: a catalog, payments, a destination that works and one that does not. */
const seeded = Effect.gen(function* () {
  const { delivered, event, shop } = yield* Effect.provide(BusyWorkspace, BusyWorkspace.layer)
  const { linkUrl, pageUrl, price, product } = yield* makeCatalog
  const { get, post } = yield* provider
  const session = yield* post("/checkout/sessions", { mode: "payment", line_items: [{ price, quantity: 1 }] })
  const { data } = yield* get("/payment-intents?limit=1")
  return {
    payerPages: [
      ["payer-checkout", String(session["url"])],
      ["payer-link", linkUrl],
      ["payer-page", pageUrl]
    ] as const,
    endpoint: shop,
    delivery: delivered,
    event,
    product,
    payment: String(Object(data)[0]?.id)
  }
})

onConsole("pictures of the console", (it) => {
  it.scoped.skipIf(!wanted)(
    "are made of every page (skipped: they are for people to look at, by `npm run console:pictures`)",
    function* () {
      const ids = yield* seeded
      mkdirSync(folder, { recursive: true })
      const pages: ReadonlyArray<readonly [name: string, path: string]> = [
        ["overview", "/sandbox"],
        ["start", "/sandbox/start"],
        ["payments", "/sandbox/payments"],
        ["charges", "/sandbox/payments?tab=charges"],
        ["checkout-sessions", "/sandbox/payments?tab=sessions&status=Open"],
        ["payment", `/sandbox/payments/${ids.payment}`],
        ["products", "/sandbox/products"],
        ["product-new", "/sandbox/products/new"],
        ["product", `/sandbox/products/${ids.product}`],
        ["promotion-codes", "/sandbox/promotion-codes"],
        ["payment-links", "/sandbox/payment-links"],
        ["checkout-pages", "/sandbox/payment-links?tab=pages"],
        ["destinations", "/sandbox/destinations"],
        ["destination-new", "/sandbox/destinations/new"],
        ["destination", `/sandbox/destinations/${ids.endpoint}`],
        ...["again", "skipped", "verify", "settings"].map(
          (tab) => [`destination-${tab}`, `/sandbox/destinations/${ids.endpoint}?tab=${tab}`] as const
        ),
        ["deliveries", "/sandbox/deliveries"],
        ["delivery", `/sandbox/deliveries/${ids.delivery}`],
        ["events", "/sandbox/events"],
        ["event", `/sandbox/events/${ids.event}`],
        ["keys", "/sandbox/keys"],
        ["people", "/sandbox/people"],
        ["audit-log", "/sandbox/audit-log"],
        ["account", "/sandbox/account"],
        ["account-production", "/production/account"],
        ["sessions", "/sandbox/sessions"],
        ["not-found", "/sandbox/nowhere"]
      ]
      const only = process.env["CONSOLE_PICTURES"] ?? ""
      const narrowest = { name: "360px", browser: { viewport: { width: 360, height: 800 } } } as const
      for (const { browser, name } of [...appearances, narrowest]) {
        const picture = (page: Page, what: string) =>
          page.screenshot({ path: `${folder}${what}-${name}.png`, fullPage: true })
        const opened = yield* memberVisit({ role: "owner", browser })
        const newcomer = yield* visit(browser)
        yield* Effect.promise(async () => {
          for (const [what, path] of pages) {
            if (only.length > 1 && !only.split(",").includes(what)) continue
            await open(opened.page, path)
            await picture(opened.page, what)
          }
          if (only.length > 1 && !only.includes("dialogs")) return
          for (const [what, address] of ids.payerPages) {
            await newcomer.page.goto(address)
            await picture(newcomer.page, what)
          }
          await open(opened.page, "/sandbox/payment-links?tab=pages")
          await opened.page.getByRole("button", { name: "Edit Coffee beans" }).click()
          await opened.page.screenshot({ path: `${folder}checkout-page-edit-${name}.png` })
          await opened.page.keyboard.press("Escape")
          await open(opened.page, "/sandbox/keys")
          await opened.page.getByRole("button", { name: "Create a key" }).first().click()
          await opened.page.screenshot({ path: `${folder}key-new-${name}.png` })
          await opened.page.keyboard.press("Escape")
          if (name.endsWith("px")) {
            await opened.page.getByRole("button", { name: "Open the navigation" }).click()
            await opened.page.screenshot({ path: `${folder}drawer-${name}.png` })
          } else {
            await opened.page.locator(".side .account-button").click()
            await opened.page.screenshot({ path: `${folder}account-menu-${name}.png` })
          }
          await newcomer.page.goto("/console/sign-in")
          await settled(newcomer.page)
          await picture(newcomer.page, "sign-in")
        })
      }
    },
    1_200_000
  )
})
