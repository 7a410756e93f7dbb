import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Context, Effect } from "effect"
import { expandGrants, type Grant, grants } from "../../../src/identity/keys/Permissions.ts"
import { ProviderPaymentRefused } from "../../../src/platform/errors/Errors.ts"
import { KeyedHash } from "../../../src/platform/kit/crypto/KeyedHash.ts"
import { Idempotency } from "../../../src/platform/kit/Idempotency.ts"
import { derivedKey } from "../../../src/surface/mcp/OperationTool.ts"
import { onSharedService, TestService } from "../../harness/TestService.ts"
import { dataOf, newTenant, part, payAt, type Tenant } from "../../payments/ConnectedTenant.ts"
import { makePrice, pay } from "../http/Payments.ts"
import { type McpClient, overHttp } from "./McpClient.ts"

/** A tenant with a client of the tool server, whose calls succeed unless a test says otherwise. */
const start = Effect.gen(function* () {
  const service = yield* TestService
  const tenant = yield* newTenant
  const mcp = yield* overHttp(service.baseUrl, tenant.key)
  return { service, tenant, mcp, call: succeeding(mcp) }
})

const succeeding =
  (mcp: McpClient) =>
  (tool: string, args: Record<string, unknown> = {}): Effect.Effect<Record<string, unknown> & { id: string }> =>
    Effect.map(mcp.call(tool, args), ({ isError, json }) => {
      expect([tool, isError, JSON.stringify(json)]).toEqual([tool, false, expect.any(String)])
      return { ...json, id: String(json["id"]) }
    })

const countAt = (tenant: Tenant, path: string) =>
  Effect.map(tenant.atProvider(`${path}?limit=100`), (list) => dataOf(list).length)

onSharedService("the tools for payments", (it) => {
  it.scoped("name the way out if the provider keeps a failure under the key of a call that brought none", function* () {
    const { call, mcp, service, tenant } = yield* start
    const priceId = yield* makePrice(service, tenant)
    const { json } = yield* pay(service, { ...tenant, priceId })
    const args = { payment_intent: String(json["payment_intent"]), amount: 100 }
    yield* service.emulator.addFault({ fault: "kept_500", account: tenant.accountId, path: "/v1/refunds" })
    for (const _ of [1, 2]) {
      const kept = yield* mcp.call("create_refund", args)
      expect([kept.isError, kept.json["code"]]).toEqual([true, "provider_outcome_unknown"])
      expect(kept.json["error"]).toContain("new idempotency key")
    }
    // Repeating alone never pays back twice; a key that was chosen on purpose does
    expect(yield* countAt(tenant, "/refunds")).toBe(1)
    yield* call("create_refund", { ...args, idempotencyKey: "looked-and-again" })
    expect(yield* countAt(tenant, "/refunds")).toBe(2)
  })

  it.scoped("sell, show what was paid and refund it, as the HTTP API does, and all of it is on record", function* () {
    const { call, mcp, tenant } = yield* start
    const product = yield* call("create_product", { name: "Coffee", metadata: { shop: "1" } })
    const price = yield* call("create_price", {
      product: product.id,
      currency: "brl",
      unit_amount: 1500,
      lookup_key: "coffee"
    })
    const code = yield* call("create_promotion_code", {
      code: `AGENT${randomUUID().slice(0, 8).replaceAll("-", "")}`,
      discount: { percent_off: 10 },
      duration: "once"
    })
    const link = yield* call("create_payment_link", { line_items: [{ price: price.id, quantity: 1 }] })
    const session = yield* call("create_checkout_session", {
      mode: "payment",
      line_items: [{ price: price.id, quantity: 2 }]
    })
    const sold = yield* tenant.sql<{ source: string; prices: unknown; products: unknown }>`
        SELECT source_id AS source, price_ids AS prices, product_ids AS products FROM payments.sold_items
        WHERE organization_id = ${tenant.id}`
    const whole = { prices: [price.id], products: [product.id] }
    expect(new Set(sold)).toEqual(
      new Set([
        { source: link.id, ...whole },
        { source: session.id, ...whole }
      ])
    )
    // Filters of events tell by this mark what the service created
    const atProvider = yield* tenant.atProvider(`/checkout/sessions/${session.id}`)
    expect(part(atProvider, "metadata")).toMatchObject({ svc_source: "connected-payments" })

    yield* payAt(session["url"])
    const paid = yield* call("get_checkout_session", { id: session.id })
    expect(paid).toMatchObject({ status: "complete", payment_status: "paid", amount_total: 3000 })
    const payment_intent = String(paid["payment_intent"])
    const refund = yield* call("create_refund", { payment_intent, amount: 1000 })
    expect(refund).toMatchObject({ object: "refund", amount: 1000, payment_intent })

    const reads: ReadonlyArray<readonly [tool: string, args: Record<string, unknown>, path: string]> = [
      ["list_products", { active: true, limit: 5 }, "/products?active=true&limit=5"],
      ["get_product", { id: product.id }, `/products/${product.id}`],
      ["list_prices", { lookup_keys: ["coffee", "tea"] }, "/prices?lookup_keys=coffee&lookup_keys=tea"],
      ["get_price", { id: price.id }, `/prices/${price.id}`],
      ["list_checkout_sessions", {}, "/checkout/sessions"],
      ["list_checkout_session_line_items", { id: session.id }, `/checkout/sessions/${session.id}/line-items`],
      ["list_payment_links", { active: true }, "/payment-links?active=true"],
      ["get_payment_link", { id: link.id }, `/payment-links/${link.id}`],
      ["list_payment_link_line_items", { id: link.id, limit: 1 }, `/payment-links/${link.id}/line-items?limit=1`],
      ["list_promotion_codes", {}, "/promotion-codes"],
      ["get_promotion_code", { id: code.id }, `/promotion-codes/${code.id}`],
      ["list_payment_intents", { created_gte: 0 }, "/payment-intents?created_gte=0"],
      ["get_payment_intent", { id: payment_intent }, `/payment-intents/${payment_intent}`],
      ["list_charges", {}, "/charges"],
      ["list_refunds", { payment_intent }, `/refunds?payment_intent=${payment_intent}`],
      ["get_refund", { id: refund.id }, `/refunds/${refund.id}`],
      ["list_disputes", {}, "/disputes"],
      ["list_customers", {}, "/customers"],
      ["list_subscriptions", { status: "all" }, "/subscriptions?status=all"],
      ["get_account", {}, "/account"],
      ["get_balance", {}, "/balance"],
      ["get_payout_settings", {}, "/payout-settings"],
      ["list_balance_transactions", { type: "refund" }, "/balance-transactions?type=refund"],
      ["list_payouts", {}, "/payouts"]
    ]
    for (const [tool, args, path] of reads) {
      const lists = tool.startsWith("list_")
      const { isError, json } = yield* mcp.call(tool, lists ? { ...args, full: true } : args)
      const overRest = yield* tenant.get(path)
      expect([tool, isError, overRest.status]).toEqual([tool, false, 200])
      expect([tool, json]).toEqual([tool, overRest.json])
      if (!lists) continue
      // Shorter for a model, unless it asks for all: an item is at most 150 tokens, of about four characters
      const compact = yield* mcp.call(tool, args)
      expect([tool, dataOf(compact.json).map(({ id }) => id)]).toEqual([tool, dataOf(json).map(({ id }) => id)])
      for (const item of dataOf(compact.json)) expect(JSON.stringify(item).length, tool).toBeLessThan(600)
    }

    expect((yield* mcp.call("list_charges")).json).toEqual({
      data: [
        {
          id: expect.stringMatching(/^ch_/),
          amount: 3000,
          amount_refunded: 1000,
          created: expect.any(Number),
          currency: "brl",
          paid: true,
          payment_intent,
          refunded: false,
          status: "succeeded"
        }
      ],
      has_more: false
    })

    const other = yield* call("create_checkout_session", {
      mode: "payment",
      line_items: [{ price: price.id, quantity: 1 }],
      idempotencyKey: "another-session"
    }).pipe(Effect.zipLeft(call("update_price", { id: price.id, nickname: "Cup" })))
    expect(yield* call("expire_checkout_session", { id: other.id })).toMatchObject({ status: "expired" })
    const inactive = yield* call("update_product", { id: product.id, active: false, metadata: { shop: "2" } })
    expect(inactive).toMatchObject({ active: false, metadata: { shop: "2" } })
    expect(yield* call("update_payment_link", { id: link.id, active: false })).toMatchObject({ active: false })
    expect(yield* call("update_promotion_code", { id: code.id, active: false })).toMatchObject({ active: false })
    expect(yield* tenant.audited).toEqual(
      expect.arrayContaining([
        `product.created ${product.id}`,
        `price.created ${price.id}`,
        `promotion_code.created ${code.id}`,
        `payment_link.created ${link.id}`,
        `checkout_session.created ${session.id}`,
        `refund.created ${refund.id}`,
        `product.updated ${product.id}`,
        `price.updated ${price.id}`,
        `checkout_session.expired ${other.id}`,
        `payment_link.updated ${link.id}`,
        `promotion_code.updated ${code.id}`
      ])
    )
    const authors = yield* tenant.sql`
        SELECT DISTINCT author_kind AS author FROM payments.audit_log
        WHERE organization_id = ${tenant.id} AND action LIKE 'refund.%'`
    expect(authors).toEqual([{ author: "api_key" }])
  })

  it.scoped("cancel a subscription with its period, take that back, and cancel it at once", function* () {
    const { call, service, tenant } = yield* start
    const priceId = yield* makePrice(service, tenant, { recurring: { interval: "month" } })
    const id = String((yield* pay(service, { ...tenant, priceId }, "subscription")).json["subscription"])
    for (const cancel_at_period_end of [true, false, true]) {
      const changed = yield* call("update_subscription", { id, cancel_at_period_end })
      expect(changed).toMatchObject({ status: "active", cancel_at_period_end })
    }
    for (const _ of [1, 2]) {
      expect(yield* call("cancel_subscription", { id })).toMatchObject({ id, status: "canceled" })
    }
    expect(yield* call("get_subscription", { id })).toMatchObject({ status: "canceled" })
  })

  it.scoped("do a creation or refund once, however often the call comes, until a new key asks again", function* () {
    const { call, mcp, service, tenant } = yield* start
    const priceId = yield* makePrice(service, tenant)
    const payment_intent = String((yield* pay(service, { ...tenant, priceId })).json["payment_intent"])
    const refund = { payment_intent, amount: 300, metadata: { a: "1", b: "2" } }
    const first = yield* call("create_refund", refund)
    // The order of keys makes no difference
    const again = yield* mcp.call("create_refund", { metadata: { b: "2", a: "1" }, amount: 300, payment_intent })
    expect(again).toMatchObject({ isError: false, meta: { "connected-payments/replayed": true } })
    expect(again.json).toEqual(first)
    const meant = yield* call("create_refund", { ...refund, idempotencyKey: "second-refund" })
    expect(meant.id).not.toBe(first.id)
    expect((yield* call("create_refund", { ...refund, amount: 301 })).id).not.toBe(first.id)
    expect(yield* countAt(tenant, "/refunds")).toBe(3)
    // Another key is another caller
    const colleague = succeeding(yield* overHttp(service.baseUrl, yield* tenant.keyOf(["payments:write"])))
    expect((yield* colleague("create_refund", refund)).id).not.toBe(first.id)

    expect((yield* tenant.post("/refunds", refund, "second-refund")).json["id"]).toBe(meant.id)
    const reused = yield* mcp.call("create_refund", { ...refund, amount: 302, idempotencyKey: "second-refund" })
    expect(reused).toMatchObject({ isError: true, json: { code: "idempotency_key_reused" } })

    const product = { name: "Tea" }
    expect((yield* call("create_product", product)).id).toBe((yield* call("create_product", product)).id)
    // Each payer gets a session, though all pay the same
    const session = { mode: "payment", line_items: [{ price: priceId, quantity: 1 }] }
    const sessions = yield* Effect.all([
      call("create_checkout_session", session),
      call("create_checkout_session", session)
    ])
    expect(new Set(sessions.map(({ id }) => id)).size).toBe(2)
    const keyed = { ...session, idempotencyKey: "session-of-order-7" }
    expect((yield* call("create_checkout_session", keyed)).id).toBe((yield* call("create_checkout_session", keyed)).id)
    // A change is made each time: what lies between may have undone it
    const id = sessions[0].id
    expect((yield* call("expire_checkout_session", { id })).id).toBe(id)
    for (const active of [false, true, false]) {
      expect(yield* call("update_price", { id: priceId, active })).toMatchObject({ active })
    }
  })

  it.scoped("are tried again after a refusal, also one that is kept for its key", function* () {
    const { call, mcp, service, tenant } = yield* start
    const refund = { payment_intent: "pi_doesnotexist" }
    const answers = yield* Effect.all([mcp.call("create_refund", refund), mcp.call("create_refund", refund)])
    for (const { isError, json } of answers) {
      expect([isError, json["code"]]).toEqual([true, "provider_resource_missing"])
    }
    expect(new Set(answers.map(({ json }) => json["requestId"])).size).toBe(2)

    const [{ id } = { id: "" }] = yield* tenant.sql<{ id: string }>`
        SELECT id FROM payments.api_keys WHERE last_four = ${tenant.key.slice(-4)}`
    const product = { name: "Refused at first" }
    const firstKey = derivedKey(
      Context.get(service.services, KeyedHash),
      { author: { kind: "api_key", id } },
      { tool: "create_product", args: product, passedOver: 0 }
    )
    yield* Context.get(service.services, Idempotency)
      .run(
        {
          tenant: { organizationId: tenant.id, environment: "sandbox" },
          key: firstKey,
          operation: "products.create",
          parameters: { ids: {}, payload: product },
          encode: () => ({})
        },
        () => new ProviderPaymentRefused()
      )
      .pipe(Effect.flip)
    const made = yield* call("create_product", product)
    expect(made).toMatchObject(product)
    expect((yield* call("create_product", product)).id).toBe(made.id)
    // The refusal is forgotten before the answer that followed it
    yield* tenant.sql`
        UPDATE payments.idempotency_keys SET created_at = now() - interval '25 hours' WHERE key = ${firstKey}`
    expect((yield* call("create_product", product)).id).toBe(made.id)
  })

  it.scoped("are listed for the permissions of the key alone, and refused without", function* () {
    const { service, tenant } = yield* start
    const all = yield* overHttp(service.baseUrl, yield* tenant.keyOf(["*", "webhook-endpoints:*"]))
    const { tools } = yield* Effect.promise(() => all.client.listTools())
    const permissionOf = new Map(
      tools.map(({ description = "", name }) => [name, / ([\w:-]+)\.$/.exec(description)?.[1] ?? ""])
    )
    expect(tools.length).toBeGreaterThan(50)
    const given: ReadonlyArray<Grant> = grants.filter((grant) => grant !== "*" && !grant.endsWith("endpoints:*"))
    for (const grant of given) {
      const mcp = yield* overHttp(service.baseUrl, yield* tenant.keyOf([grant]))
      const listed = yield* Effect.promise(() => mcp.client.listTools())
      const may = expandGrants([grant])
      const allowed = [...permissionOf].filter(([, permission]) => [...may].some((one) => one === permission))
      expect([grant, listed.tools.map(({ name }) => name)]).toEqual([grant, allowed.map(([name]) => name)])
      const [name, permission = ""] = [...permissionOf].find(([, needed]) => needed !== grant) ?? ["", ""]
      // Before the arguments are looked at
      const { isError, json } = yield* mcp.call(name, { unknown: 1 })
      expect([grant, name, isError, json["code"]]).toEqual([grant, name, true, "permission_denied"])
      expect(json["error"]).toContain(permission)
    }
    // A recurring price needs its own permission, which no declaration says (contract 2.5)
    const seller = yield* overHttp(service.baseUrl, yield* tenant.keyOf(["payments:write"]))
    const subscription = yield* seller.call("create_checkout_session", {
      mode: "subscription",
      line_items: [{ price: "price_any", quantity: 1 }]
    })
    expect(subscription).toMatchObject({ isError: true, json: { code: "permission_denied" } })
  })

  it.scoped("run checkout pages as the HTTP API does: created once, read, closed and opened again", function* () {
    const { call, mcp, service, tenant } = yield* start
    const price = yield* makePrice(service, tenant)
    const args = { title: "Coffee", items: [{ price, quantity: 1, adjustableQuantity: { minimum: 1, maximum: 5 } }] }
    const page = yield* call("create_checkout_page", args)
    expect(page).toMatchObject({ title: "Coffee", active: true, environment: "sandbox" })
    expect(yield* call("create_checkout_page", args)).toEqual(page)
    const other = yield* call("create_checkout_page", { ...args, idempotencyKey: "another-page" })
    expect(other.id).not.toBe(page.id)
    const closed = yield* call("update_checkout_page", { id: page.id, active: false })
    expect(closed).toMatchObject({ id: page.id, active: false, title: "Coffee" })
    for (const [tool, args, path] of [
      ["get_checkout_page", { id: page.id }, `/checkout-pages/${page.id}`],
      ["list_checkout_pages", { active: true, limit: 5 }, "/checkout-pages?active=true&limit=5"],
      ["list_checkout_pages", {}, "/checkout-pages"]
    ] as const) {
      const { isError, json } = yield* mcp.call(tool, args)
      expect([tool, isError, json]).toEqual([tool, false, (yield* tenant.get(path)).json])
    }
    expect(yield* call("update_checkout_page", { id: page.id, active: true })).toMatchObject({ active: true })
    const gone = { id: other.id, idempotencyKey: "delete-the-page" }
    for (const _ of [1, 2]) expect(yield* call("delete_checkout_page", gone)).toEqual({ id: other.id, deleted: true })
    const overRest = yield* tenant.send("DELETE", `/checkout-pages/${other.id}`, {
      headers: { "idempotency-key": gone.idempotencyKey }
    })
    expect([overRest.status, overRest.text, overRest.headers.get("idempotent-replayed")]).toEqual([204, "", "true"])
    const again = yield* mcp.call("delete_checkout_page", { id: other.id })
    expect(again).toMatchObject({ isError: true, json: { code: "resource_not_found" } })
    expect(yield* tenant.audited).toEqual(expect.arrayContaining([`checkout_page.created ${page.id}`]))
    const strangers = yield* overHttp(service.baseUrl, (yield* newTenant).key)
    for (const tool of ["get_checkout_page", "update_checkout_page", "delete_checkout_page"]) {
      const { isError, json } = yield* strangers.call(tool, { id: page.id })
      expect([tool, isError, json["code"]]).toEqual([tool, true, "resource_not_found"])
    }
  })

  it.scoped("keep organizations and environments apart", function* () {
    const { call, service, tenant } = yield* start
    const product = yield* call("create_product", { name: "Mine" })
    const strangers = yield* overHttp(service.baseUrl, (yield* newTenant).key)
    for (const [tool, args] of [
      ["get_product", { id: product.id }],
      ["update_product", { id: product.id, name: "Theirs" }],
      ["create_price", { product: product.id, currency: "brl", unit_amount: 1 }]
    ] as const) {
      const { isError, json } = yield* strangers.call(tool, args)
      expect([tool, isError, json["code"]]).toEqual([tool, true, "provider_resource_missing"])
    }
    expect((yield* strangers.call("list_products")).json["data"]).toEqual([])
    const live = yield* overHttp(service.baseUrl, yield* service.makeKey(tenant.id, ["*"], { mode: "live" }))
    const refused = yield* live.call("get_product", { id: product.id })
    expect(refused).toMatchObject({ isError: true, json: { code: "provider_account_not_connected" } })
  })
})
