import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { onSharedService, TestService } from "../harness/TestService.ts"
import { makePrice, pay } from "../surface/http/Payments.ts"
import { expectFailure, refusedWith } from "../surface/http/Refusals.ts"
import { overHttp } from "../surface/mcp/McpClient.ts"
import { dataOf, newTenant, part, payAt } from "./ConnectedTenant.ts"

const address = "payer@example.com"

/** A tenant with a customer and a dispute, and keys with and without the permission to read who they are. */
const knownTenant = Effect.gen(function* () {
  const service = yield* TestService
  const tenant = yield* newTenant
  const priceId = yield* makePrice(service, tenant, { recurring: { interval: "month" } })
  const { json } = yield* pay(service, { ...tenant, priceId }, "subscription")
  const { object: dispute } = yield* service.emulator.trigger({
    type: "charge.dispute.created",
    account: tenant.accountId
  })
  const trusted = yield* tenant.keyOf(["payments:read", "customers:read"])
  return { tenant, customer: String(json["customer"]), dispute, trusted }
})

onSharedService("customers", (it) => {
  it.effect("are shown by their id, and nothing that names a person, even to a key with *", function* () {
    const { customer, tenant } = yield* knownTenant
    const answer = yield* tenant.get(`/customers/${customer}`)
    expect(answer.status, answer.text).toBe(200)
    expect(answer.json).toEqual({
      id: customer,
      object: "customer",
      created: expect.any(Number),
      currency: "brl",
      delinquent: false,
      livemode: false
    })
    const list = yield* tenant.get("/customers")
    expect(dataOf(list.json)).toEqual([answer.json])
    expect(list.json).toMatchObject({ has_more: false })
  })

  it.effect("are shown whole to a key to which customers:read was granted, in pages and by time", function* () {
    const { customer, tenant, trusted } = yield* knownTenant
    const as = (path: string) => tenant.send("GET", path, { key: trusted })
    const atProvider = yield* tenant.atProvider(`/customers/${customer}`)
    expect(atProvider).toHaveProperty("email")
    expect((yield* as(`/customers/${customer}`)).json).toEqual(atProvider)
    expect(dataOf((yield* as("/customers?limit=1&created_gte=1000000000")).json)).toEqual([atProvider])
    expect(dataOf((yield* as("/customers?created_lte=1000000000")).json)).toEqual([])
    expectFailure(yield* as(`/customers?email=${address}`), refusedWith(422, "validation_failed", ["email"]))
  })

  it.effect("need payments:read as well", function* () {
    const { customer, tenant } = yield* knownTenant
    const key = yield* tenant.keyOf(["customers:read"])
    expectFailure(yield* tenant.send("GET", `/customers/${customer}`, { key }), refusedWith(403, "permission_denied"))
  })
})

onSharedService("disputes", (it) => {
  it.effect("are read, and listed by their payment and charge, in pages", function* () {
    const { dispute, tenant } = yield* knownTenant
    const { json } = yield* tenant.get(`/disputes/${dispute}`)
    expect(json).toMatchObject({ id: dispute, object: "dispute", status: "needs_response", livemode: false })
    const idsOf = (query: string) =>
      Effect.map(tenant.get(`/disputes?${query}`), (answer) => {
        expect(answer.status, answer.text).toBe(200)
        return dataOf(answer.json).map(({ id }) => id)
      })
    expect(yield* idsOf("limit=1")).toEqual([dispute])
    expect(yield* idsOf(`charge=${json["charge"]}&payment_intent=${json["payment_intent"]}`)).toEqual([dispute])
    expect(yield* idsOf(`starting_after=${dispute}`)).toEqual([])
    expect(yield* idsOf("created_lte=1000000000")).toEqual([])
  })

  it.effect("show their evidence only to who may read customers", function* () {
    const { dispute, tenant, trusted } = yield* knownTenant
    for (const path of [`/disputes/${dispute}`, "/disputes"]) {
      const { json } = yield* tenant.get(path)
      const [shown] = "data" in json ? dataOf(json) : [json]
      expect(shown).toHaveProperty("evidence_details")
      expect(shown).not.toHaveProperty("evidence")
      const whole = (yield* tenant.send("GET", path, { key: trusted })).json
      expect(part("data" in whole ? dataOf(whole)[0] : whole, "evidence")).toHaveProperty("customer_email_address")
    }
  })
})

/** A paid session of a payer who left an address, with its payment and charge. */
const paidTenant = Effect.gen(function* () {
  const service = yield* TestService
  const tenant = yield* newTenant
  const price = yield* makePrice(service, tenant)
  const created = yield* tenant.post("/checkout/sessions", {
    mode: "payment",
    line_items: [{ price, quantity: 1 }],
    metadata: { tax_id: "of the order" }
  })
  yield* payAt(created.json["url"], { email: address })
  const session = yield* tenant.get(`/checkout/sessions/${created.json["id"]}`)
  const intent = yield* tenant.get(`/payment-intents/${session.json["payment_intent"]}`)
  const trusted = yield* tenant.keyOf(["payments:read", "customers:read"])
  const ids = {
    session: String(session.json["id"]),
    intent: String(intent.json["id"]),
    charge: String(intent.json["latest_charge"])
  }
  return { tenant, trusted, ids }
})

onSharedService("who paid", (it) => {
  it.scoped("is null in sessions, payments and charges without customers:read, over HTTP and for tools", function* () {
    const { baseUrl } = yield* TestService
    const { ids, tenant, trusted } = yield* paidTenant
    const agent = yield* overHttp(baseUrl, tenant.key)
    const trustedAgent = yield* overHttp(baseUrl, trusted)
    for (const [path, tool, id, personal] of [
      ["/checkout/sessions", "checkout_session", ids.session, ["customer_details"]],
      ["/payment-intents", "payment_intent", ids.intent, ["receipt_email"]],
      ["/charges", "charge", ids.charge, ["billing_details"]]
    ] as const) {
      const atProvider = yield* tenant.atProvider(`${path.replace("-", "_")}/${id}`)
      for (const at of [`${path}/${id}`, path]) {
        const [plain, whole] = yield* Effect.forEach([tenant.key, trusted], (key) => tenant.send("GET", at, { key }))
        expect([at, plain?.status, plain?.text.includes(address)]).toEqual([at, 200, false])
        const [shown] = "data" in Object(plain?.json) ? dataOf(Object(plain?.json)) : [Object(plain?.json)]
        for (const field of personal) expect([at, field, part(shown)[field]]).toEqual([at, field, null])
        // Nothing else is missing, and an integrator's own pairs are never touched
        expect(Object.keys(part(shown)).toSorted()).toEqual(
          Object.keys(atProvider)
            .filter((field) => field !== "client_secret")
            .toSorted()
        )
        expect(part(shown, "metadata")).toMatchObject({ tax_id: "of the order" })
        if (path !== "/payment-intents") expect(whole?.text).toContain(address)
      }
      const byTool = yield* agent.call(`get_${tool}`, { id })
      expect([tool, byTool.isError, JSON.stringify(byTool.json).includes(address)]).toEqual([tool, false, false])
      const trustedCall = yield* trustedAgent.call(`get_${tool}`, { id })
      if (path !== "/payment-intents") expect(JSON.stringify(trustedCall.json)).toContain(address)
    }
  })

  it.effect("is not on the bank slip's page, which names the payer, without customers:read", function* () {
    const { emulator } = yield* TestService
    const tenant = yield* newTenant
    const trusted = yield* tenant.keyOf(["payments:read", "customers:read"])
    yield* emulator.trigger({ type: "checkout.session.completed", account: tenant.accountId, method: "boleto" })
    const slipFor = (key: string) =>
      Effect.map(tenant.send("GET", "/payment-intents", { key }), ({ json }) =>
        part(dataOf(json)[0], "next_action", "boleto_display_details")
      )
    expect(yield* slipFor(tenant.key)).toMatchObject({
      hosted_voucher_url: null,
      pdf: null,
      number: expect.stringMatching(/\d/)
    })
    expect(yield* slipFor(trusted)).toMatchObject({
      hosted_voucher_url: expect.stringMatching(/^https/),
      pdf: expect.stringMatching(/^https/)
    })
  })
})
