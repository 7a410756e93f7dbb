import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { CheckoutPages } from "../../src/payments/checkout-pages/CheckoutPages.ts"
import { eventuallyDone } from "../harness/Eventually.ts"
import { inDatabase, onService, sendRequest, serviceOf, TestService } from "../harness/TestService.ts"
import { expectFailure, refusedWith } from "../surface/http/Refusals.ts"
import { idOf } from "../surface/http/Samples.ts"
import { dataOf, newTenant, part, payAt, priceOf, soldItems, type Tenant } from "./ConnectedTenant.ts"
import { png } from "./images/Pictures.ts"

const pageOf = (tenant: Tenant, more: object = {}) =>
  Effect.gen(function* () {
    const sold = yield* priceOf(tenant, {}, "Coffee <b>beans</b>")
    const created = yield* tenant.post("/checkout-pages", {
      title: 'Beans & "more" <script>alert(1)</script>',
      items: [{ price: sold.price, quantity: 2, adjustableQuantity: { minimum: 0, maximum: 5 } }],
      ...more
    })
    expect(created.status, created.text).toBe(200)
    return { ...sold, page: created.json, id: idOf(created), slug: String(created.json["slug"]) }
  })

const open = (slug: string, rest = "") => sendRequest("GET", `/pay/${slug}${rest}`)

const hidden = (html: string) =>
  Object.fromEntries(
    [...html.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)].map(([, name = "", value = ""]) => [
      name,
      value
    ])
  )

const goOn = (slug: string, fields: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    const { text } = yield* sendRequest("GET", `/pay/${slug}`)
    return yield* submit(slug, new URLSearchParams({ ...hidden(text), ...fields }).toString())
  })

const submit = (slug: string, raw: string | Uint8Array, type = "application/x-www-form-urlencoded") =>
  sendRequest("POST", `/pay/${slug}`, { raw, headers: { "content-type": type } })

/** Every payer of the tests has one address: each test begins with full limits. */
const refill = Effect.flatMap(TestService, ({ passTime }) => passTime("2 minutes"))

const sessionsOf = (tenant: Tenant) =>
  Effect.map(tenant.get("/checkout/sessions?limit=100"), ({ json }) => dataOf(json))

const linesOf = (tenant: Tenant, id: unknown) =>
  Effect.map(tenant.get(`/checkout/sessions/${id}/line-items`), ({ json }) =>
    dataOf(json).map((line) => [part(line, "price")["id"], line["quantity"]])
  )

onService()("checkout pages", (it) => {
  it.effect("show what they sell and lead to a session of what was chosen, marked with the page's id", function* () {
    yield* refill
    const tenant = yield* newTenant
    const { id, page, price, product, slug } = yield* pageOf(tenant, {
      allowPromotionCodes: true,
      text: "Roasted\non Monday",
      collect: {
        billingAddress: true,
        phoneNumber: true,
        customFields: [
          { key: "gift", label: "Gift note", type: "text", optional: true },
          { key: "size", label: "Size", type: "dropdown", options: [{ label: "Large", value: "l" }] }
        ]
      },
      successText: "See you <soon>"
    })
    expect(page).toMatchObject({
      environment: "sandbox",
      active: true,
      url: `https://payments.example/pay/${slug}`,
      imageUrl: null,
      items: [{ price, product, name: "Coffee <b>beans</b>", currency: "brl", unitAmount: 1500, recurring: null }]
    })
    expect(slug).toMatch(/^[a-z2-7]{20}$/)

    const shown = yield* open(slug, "?utm_source=mail&utm_source=again")
    expect(shown.status).toBe(200)
    expect(shown.text).toContain("Beans &amp; &quot;more&quot; &lt;script&gt;")
    expect(shown.text).toContain("Coffee &lt;b&gt;beans&lt;/b&gt;")
    expect(shown.text).toContain("R$15.00")
    expect(shown.text).toContain("Test page.")
    expect(shown.text).not.toMatch(/<script|<b>/)
    const policy = shown.headers.get("content-security-policy") ?? ""
    expect(policy).toMatch(/^default-src 'none'; style-src 'sha256-[^']+'; img-src 'self' data:;/)
    expect(policy).not.toContain("script-src")
    expect(shown.headers.get("cache-control")).toBe("no-store")

    const organization = yield* tenant.sql<{ name: string }>`
      SELECT name FROM payments.organizations WHERE id = ${tenant.id}`
    expect(shown.text).toContain(`Sold by ${organization[0]?.name}`)
    expect(page["sales"]).toBe(0)
    const gone = yield* goOn(slug, { q0: "3" })
    expect(gone.status, gone.text).toBe(303)
    const [session] = yield* sessionsOf(tenant)
    expect(gone.headers.get("location")).toBe(session?.["url"])
    expect(session).toMatchObject({
      mode: "payment",
      allow_promotion_codes: true,
      billing_address_collection: "required",
      phone_number_collection: { enabled: true },
      metadata: { svc_checkout_page: id, svc_source: "connected-payments" },
      success_url: `https://payments.example/pay/${slug}/thanks`,
      cancel_url: `https://payments.example/pay/${slug}`,
      amount_total: 4500,
      custom_fields: [{ key: "gift", optional: true }, { key: "size" }]
    })
    expect(yield* linesOf(tenant, session?.["id"])).toEqual([[price, 3]])
    expect(yield* soldItems(tenant, String(session?.["id"]))).toEqual({ prices: [price], products: [product] })

    const thanks = yield* open(slug, "/thanks")
    expect([thanks.status, thanks.text.includes("See you &lt;soon&gt;")]).toEqual([200, true])
    expect(thanks.text).toContain("Test page.")
  })

  it.effect("count their sales, and are named by the payments that they made", function* () {
    yield* refill
    const tenant = yield* newTenant
    const { id, slug } = yield* pageOf(tenant)
    yield* goOn(slug, { q0: "1" })
    const gone = yield* goOn(slug, { q0: "2" })
    yield* payAt(gone.headers.get("location"))
    const salesOf = Effect.map(tenant.get(`/checkout-pages/${id}`), ({ json }) => json["sales"])
    yield* eventuallyDone(
      "the sale is counted",
      Effect.map(salesOf, (sales) => sales === 1)
    )
    const [intent] = dataOf((yield* tenant.get("/payment-intents?sale=true")).json)
    expect(intent?.["sale"]).toMatchObject({ checkout_page: id, description: "2 × Coffee <b>beans</b>" })
  })

  it.effect("create one session for a form sent twice, and another for another choice or attempt", function* () {
    yield* refill
    const tenant = yield* newTenant
    const { slug } = yield* pageOf(tenant)
    const fields = hidden((yield* open(slug)).text)
    const send = (quantity: string, more: Readonly<Record<string, string>> = {}) =>
      Effect.map(submit(slug, new URLSearchParams({ ...fields, q0: quantity, ...more }).toString()), (answer) => [
        answer.status,
        answer.headers.get("location")
      ])
    const [first, second] = yield* Effect.all([send("2"), send("2")], { concurrency: 2 })
    expect(second).toEqual(first)
    expect(first[0]).toBe(303)
    const other = yield* send("3")
    expect(new Set([first[1], other[1], (yield* send("2", { attempt: randomUUID() }))[1]]).size).toBe(3)
    expect(yield* sessionsOf(tenant)).toHaveLength(3)
    // Without a success text, payers return to the return URLs of the organization or the operator
    expect((yield* sessionsOf(tenant))[0]).toMatchObject({
      success_url: "https://shop.example/thanks?session_id={CHECKOUT_SESSION_ID}"
    })
  })

  it.effect("leave out what the payer takes none of, and become a payment if that was the subscription", function* () {
    yield* refill
    const tenant = yield* newTenant
    const monthly = yield* priceOf(tenant, { recurring: { interval: "month", trial_period_days: 7 } })
    const { price } = yield* priceOf(tenant)
    const created = yield* tenant.post("/checkout-pages", {
      title: "Box",
      items: [
        { price, quantity: 1 },
        { price: monthly.price, quantity: 1, adjustableQuantity: { minimum: 0, maximum: 1 } }
      ]
    })
    const slug = String(created.json["slug"])
    expect((yield* open(slug)).text).toContain("R$15.00 every month")
    expect((yield* goOn(slug, { q0: "9" })).status).toBe(422)
    for (const [q1, mode] of [
      ["0", "payment"],
      ["1", "subscription"]
    ] as const) {
      expect((yield* goOn(slug, { q1 })).status).toBe(303)
      const [session] = yield* sessionsOf(tenant)
      expect(session).toMatchObject({ mode })
      expect(yield* linesOf(tenant, session?.["id"])).toHaveLength(q1 === "0" ? 1 : 2)
    }
  })

  it.effect("need subscriptions:write to sell a recurring price, at creation and change", function* () {
    const tenant = yield* newTenant
    const monthly = yield* priceOf(tenant, { recurring: { interval: "month" } })
    const { id } = yield* pageOf(tenant)
    const key = yield* tenant.keyOf(["payments:write"])
    const items = [{ price: monthly.price, quantity: 1 }]
    const denied = { status: 403, code: "permission_denied", fields: [] }
    const headers = { "idempotency-key": randomUUID() }
    expectFailure(yield* tenant.send("POST", "/checkout-pages", { key, headers, body: { title: "T", items } }), denied)
    expectFailure(yield* tenant.send("PATCH", `/checkout-pages/${id}`, { key, body: { items } }), denied)
    expect((yield* tenant.patch(`/checkout-pages/${id}`, { items })).status).toBe(200)
  })

  it.effect("need subscriptions:write to open a page that sells a recurring price, and only then", function* () {
    const tenant = yield* newTenant
    const monthly = yield* priceOf(tenant, { recurring: { interval: "month" } })
    const { id } = yield* pageOf(tenant)
    expect(
      (yield* tenant.patch(`/checkout-pages/${id}`, { items: [{ price: monthly.price, quantity: 1 }] })).status
    ).toBe(200)
    const key = yield* tenant.keyOf(["payments:write"])
    const change = (body: unknown, by = key) => tenant.send("PATCH", `/checkout-pages/${id}`, { key: by, body })
    for (const body of [{ active: true }, { title: "Club" }, { active: false }]) {
      expect([body, (yield* change(body)).status]).toEqual([body, 200])
    }
    expectFailure(yield* change({ active: true }), { status: 403, code: "permission_denied", fields: [] })
    expect((yield* tenant.get(`/checkout-pages/${id}`)).json).toMatchObject({ active: false })
    expect((yield* change({ active: true }, tenant.key)).json).toMatchObject({ active: true })
  })

  it.effect("refuse what can't be sold, or not together, naming the item", function* () {
    const tenant = yield* newTenant
    const stranger = yield* newTenant
    const { price } = yield* priceOf(tenant)
    const inactive = yield* priceOf(tenant)
    yield* tenant.patch(`/prices/${inactive.price}`, { active: false })
    const dollars = yield* priceOf(tenant, { currency: "usd" })
    const [monthly, yearly] = yield* Effect.forEach(["month", "year"], (interval) =>
      priceOf(tenant, { recurring: { interval } })
    )
    const donation = yield* priceOf(tenant, {
      unit_amount: undefined,
      custom_unit_amount: { enabled: true, minimum: 100 }
    })
    const theirs = yield* priceOf(stranger)
    const item = (id: string | undefined, quantity = 1) => ({ price: id ?? "", quantity })
    for (const [items, code, field] of [
      [[item(price), item(inactive.price)], "validation_failed", "items.1.price"],
      [[item(price), item(dollars.price)], "validation_failed", "items.1.price"],
      [[item(monthly?.price), item(yearly?.price)], "validation_failed", "items.0.price"],
      [[item(donation.price, 2)], "validation_failed", "items.0.price"],
      [[item(price), item(price)], "validation_failed", "items.1.price"],
      [[item(price), item(theirs.price)], "provider_resource_missing", "items.1.price"],
      [
        [{ ...item(price, 6), adjustableQuantity: { minimum: 1, maximum: 5 } }],
        "validation_failed",
        "items.0.quantity"
      ],
      [[item(price, 0)], "validation_failed", "items.0.quantity"]
    ] as const) {
      const answer = yield* tenant.post("/checkout-pages", { title: "Page", items })
      expect([answer.status, answer.json["code"]], answer.text).toEqual([422, code])
      expect(part(answer.json, "fields")[0]).toBe(field)
    }
    expect((yield* tenant.post("/checkout-pages", { title: "Page", items: [item(donation.price)] })).status).toBe(200)
  })

  it.effect("show only images that their organization uploaded", function* () {
    const tenant = yield* newTenant
    const stranger = yield* newTenant
    const upload = (of: Tenant, shade: number) =>
      Effect.map(
        of.send("POST", "/product-images", { raw: png({ shade }), headers: { "content-type": "image/png" } }),
        ({ json }) => String(json["url"])
      )
    const own = yield* upload(tenant, 90)
    const theirs = yield* upload(stranger, 91)
    const { id, slug } = yield* pageOf(tenant, { imageUrl: own, imageAlt: 'A "bag"' })
    const file = own.split("/").at(-1)
    expect((yield* open(slug)).text).toContain(`<img src="../product-images/${file}" alt="A &quot;bag&quot;">`)
    // From an address with a slash at its end, the image would be looked for elsewhere
    for (const query of ["", "?utm_source=mail"]) {
      const slashed = yield* open(slug, `/${query}`)
      expect([slashed.status, slashed.headers.get("location")]).toEqual([308, `../${slug}${query}`])
    }
    expect((yield* open("a".repeat(20), "/")).status).toBe(404)
    for (const imageUrl of [theirs, own.replace("payments.example", "evil.example"), "javascript:alert(1)"]) {
      const answer = yield* tenant.patch(`/checkout-pages/${id}`, { imageUrl })
      expectFailure(answer, { status: 422, code: "validation_failed", fields: ["imageUrl"] })
    }
    const without = yield* tenant.patch(`/checkout-pages/${id}`, { imageUrl: "", title: "Plain" })
    expect(without.json).toMatchObject({ imageUrl: null, title: "Plain", imageAlt: 'A "bag"' })
  })

  it.effect("are created once per key, listed, changed and deleted, with records of each change", function* () {
    const tenant = yield* newTenant
    const stranger = yield* newTenant
    const { price } = yield* priceOf(tenant)
    const body = { title: "Page", items: [{ price, quantity: 1 }] }
    const key = randomUUID()
    const [first, second] = [
      yield* tenant.post("/checkout-pages", body, key),
      yield* tenant.post("/checkout-pages", body, key)
    ]
    expect([second.text, second.headers.get("idempotent-replayed")]).toEqual([first.text, "true"])
    expectFailure(
      yield* tenant.post("/checkout-pages", { ...body, title: "Other" }, key),
      refusedWith(409, "idempotency_key_reused")
    )
    const id = idOf(first)
    const other = idOf(yield* tenant.post("/checkout-pages", { ...body, active: false }))
    const page = (query: string) =>
      Effect.map(tenant.get(`/checkout-pages?${query}`), ({ json }) => [
        dataOf(json).map((one) => one["id"]),
        json["has_more"]
      ])
    expect(yield* page("limit=1")).toEqual([[other], true])
    expect(yield* page(`limit=1&starting_after=${other}`)).toEqual([[id], false])
    expect(yield* page("active=false")).toEqual([[other], false])
    expect((yield* stranger.get("/checkout-pages")).json).toEqual({ data: [], has_more: false })
    expectFailure(yield* stranger.get(`/checkout-pages/${id}`), { status: 404, code: "resource_not_found" })
    yield* tenant.patch(`/checkout-pages/${id}`, { successText: "Thanks" })
    const changed = yield* tenant.patch(`/checkout-pages/${id}`, { active: false, successText: "" })
    expect(changed.json).toMatchObject({ id, active: false, title: "Page", successText: null })
    expect((yield* tenant.send("DELETE", `/checkout-pages/${id}`)).status).toBe(204)
    expectFailure(yield* tenant.send("DELETE", `/checkout-pages/${id}`), { status: 404, code: "resource_not_found" })
    expect((yield* tenant.audited).filter((record) => record.startsWith("checkout_page."))).toEqual([
      `checkout_page.created ${id}`,
      `checkout_page.created ${other}`,
      `checkout_page.updated ${id}`,
      `checkout_page.updated ${id}`,
      `checkout_page.deleted ${id}`
    ])
  })

  it.effect("are at most 100 per organization and environment, however many are created at once", function* () {
    const tenant = yield* newTenant
    const { id } = yield* pageOf(tenant)
    yield* tenant.sql`
        INSERT INTO payments.checkout_pages (organization_id, environment, id, slug, active, title, items, collect,
          allow_promotion_codes)
        SELECT organization_id, environment, gen_random_uuid(), slug || n, active, title, items, collect, false
        FROM payments.checkout_pages, generate_series(1, 98) n WHERE organization_id = ${tenant.id} AND id = ${id}`
    const { price } = yield* priceOf(tenant)
    const answers = yield* Effect.all(
      Array.from({ length: 3 }, () =>
        tenant.post("/checkout-pages", { title: "Page", items: [{ price, quantity: 1 }] })
      ),
      { concurrency: 3 }
    )
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409])
    expect(answers.flatMap(({ json, status }) => (status === 409 ? [json["code"]] : []))).toEqual([
      "checkout_page_limit_reached",
      "checkout_page_limit_reached"
    ])
  })

  it.effect("tell payers with a page and a status why nothing can be paid", function* () {
    yield* refill
    const tenant = yield* newTenant
    const { emulator } = yield* TestService
    const { id, slug } = yield* pageOf(tenant, { successText: "See you" })
    const fields = new URLSearchParams({ ...hidden((yield* open(slug)).text), q0: "1" }).toString()
    const told = (path: string, status: number, words: string) =>
      Effect.gen(function* () {
        for (const answer of [yield* open(path), yield* submit(path, fields)]) {
          expect([answer.status, answer.headers.get("content-type")]).toEqual([status, "text/html; charset=utf-8"])
          expect(answer.text).toContain(words)
          expect(answer.text).not.toContain("<form")
        }
      })
    yield* told("a".repeat(20), 404, "No such page")
    yield* told("%3Cscript%3E", 404, "No such page")
    yield* tenant.patch(`/checkout-pages/${id}`, { active: false })
    yield* told(slug, 404, "closed this page")
    yield* tenant.patch(`/checkout-pages/${id}`, { active: true })
    yield* emulator.revokeAccount(tenant.accountId)
    // The first payer finds out, if the provider's notification has not come before
    const first = yield* submit(slug, fields)
    expect([first.status === 503 || first.status === 409, first.text.includes("Nothing was charged")]).toEqual([
      true,
      true
    ])
    yield* told(slug, 503, "take payments at the moment")
    expect((yield* tenant.send("DELETE", `/checkout-pages/${id}`)).status).toBe(204)
    yield* told(slug, 410, "removed this page")
    // Somebody may be paying at the provider meanwhile
    expect((yield* open(slug, "/thanks")).text).toContain("See you")
    expect(yield* Effect.map(tenant.audited, (records) => records.length)).toBeGreaterThan(3)
  })

  it.effect("show the form again, with what to do, if the provider fails or refuses", function* () {
    yield* refill
    const tenant = yield* newTenant
    const { price, slug } = yield* pageOf(tenant)
    for (const [fault, status] of [
      ["html_502", 502],
      ["rate_limit", 503]
    ] as const) {
      const answer = yield* tenant.during({ fault, path: "/v1/checkout/sessions" }, goOn(slug, { q0: "2" }))
      expect([answer.status, answer.text.includes("Wait a moment and try again")], fault).toEqual([status, true])
      expect(answer.text).toContain('<form method="post"')
      expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8")
    }
    // Opening a page asks the provider nothing
    expect((yield* tenant.during({ fault: "html_502" }, open(slug))).status).toBe(200)
    expect((yield* goOn(slug, { q0: "2" })).status).toBe(303)
    yield* tenant.patch(`/prices/${price}`, { active: false })
    const refused = yield* goOn(slug, { q0: "2" })
    expect([refused.status, refused.text.includes("be bought at the moment")]).toEqual([422, true])
  })

  it.effect("take nothing from a form but quantities within bounds", function* () {
    yield* refill
    const tenant = yield* newTenant
    const { id, slug } = yield* pageOf(tenant)
    const fields = hidden((yield* open(slug)).text)
    const form = (more: Readonly<Record<string, string>>) => new URLSearchParams({ ...fields, ...more }).toString()
    for (const q0 of ["", "6", "-1", "1.5", "1e1", "0x2", "٣", "<b>", "99999999999999999999"]) {
      const answer = yield* submit(slug, form({ q0 }))
      expect([answer.status, answer.text.includes("Enter a whole number from 0 to 5.")], q0).toEqual([422, true])
      expect(answer.text).not.toContain("<b>")
    }
    expect((yield* submit(slug, form({ q0: "0" }))).text).toContain("Choose at least one item")
    yield* refill
    for (const raw of [
      "",
      form({ q0: "1", q1: "1" }),
      form({ q0: "1", price: "price_1" }),
      form({ q0: "1", __proto__x: "1" }),
      form({ q0: "1", attempt: "x".repeat(300) }),
      `${form({ q0: "1" })}&q0=2`,
      `${form({ q0: "1" })}&a=%ff`.repeat(1),
      `${form({ q0: "1" })}${"&x=1".repeat(100)}`,
      new Uint8Array([0xff, 0xfe])
    ]) {
      expect((yield* submit(slug, raw)).status, String(raw).slice(0, 200)).toBe(422)
    }
    expect((yield* submit(slug, "{}", "application/json")).status).toBe(415)
    const large = yield* submit(slug, `a=${"x".repeat(100_000)}`)
    expect([large.status, large.headers.get("content-type")]).toEqual([413, "text/html; charset=utf-8"])
    expect(yield* sessionsOf(tenant)).toEqual([])

    // What the page sells was changed while it was open
    const other = yield* priceOf(tenant)
    yield* tenant.patch(`/checkout-pages/${id}`, {
      items: [{ price: other.price, quantity: 1, adjustableQuantity: { minimum: 1, maximum: 5 } }]
    })
    const stale = yield* submit(slug, form({ q0: "1" }))
    expect([stale.status, stale.text.includes("has changed this page meanwhile")]).toEqual([409, true])
    expect(yield* sessionsOf(tenant)).toEqual([])
  })

  it.effect("limit how often an address opens them and goes on, with a page that says to wait", function* () {
    yield* refill
    const { slug } = yield* pageOf(yield* newTenant)
    const { clock } = yield* TestService
    const limits = Effect.gen(function* () {
      const refused = yield* Effect.repeat(submit(slug, ""), {
        until: ({ status }) => status !== 422,
        schedule: Schedule.count
      })
      expect(refused).toBeGreaterThanOrEqual(20)
      const { headers, status, text } = yield* submit(slug, "")
      expect(status).toBe(429)
      expect(text).toContain("Too many requests")
      expect(Number(headers.get("retry-after"))).toBeGreaterThan(0)
      // Whoever only looks has a limit of their own
      const views = yield* Effect.forEach(Array.from({ length: 130 }), () => open(slug), { concurrency: 20 })
      expect([200, 429].map((one) => views.filter(({ status }) => status === one).length)).toEqual([120, 10])
    })
    // Nothing is refilled in the service's process meanwhile, however long this takes
    yield* Effect.acquireUseRelease(
      Effect.sync(() => clock.hold(true)),
      () => limits,
      () => Effect.sync(() => clock.hold(false))
    )
    yield* refill
    expect((yield* goOn(slug, { q0: "1" })).status).toBe(303)
  })

  it.effect("are forgotten long after they were deleted, and not before", function* () {
    yield* refill
    const tenant = yield* newTenant
    const { id, slug } = yield* pageOf(tenant)
    yield* tenant.send("DELETE", `/checkout-pages/${id}`)
    const { clean } = yield* serviceOf(CheckoutPages)
    yield* clean
    expect((yield* open(slug)).status).toBe(410)
    yield* inDatabase`
        UPDATE payments.checkout_pages SET deleted_at = now() - interval '401 days'
        WHERE organization_id = ${tenant.id} AND id = ${id}`
    yield* clean
    expect((yield* open(slug)).status).toBe(404)
  })
})
