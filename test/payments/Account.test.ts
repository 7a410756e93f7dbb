import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { onSharedService, TestService } from "../harness/TestService.ts"
import { makePrice, pay } from "../surface/http/Payments.ts"
import { control, dataOf, newTenant, part } from "./ConnectedTenant.ts"

onSharedService("the connected account", (it) => {
  it.effect("is shown without its owner's personal data and bank accounts", function* () {
    const tenant = yield* newTenant
    yield* control(tenant.accountId, true)
    const shown = yield* tenant.get("/account")
    expect(shown.status, shown.text).toBe(200)
    expect(shown.json).toMatchObject({ id: tenant.accountId, object: "account", charges_enabled: true })
    const known = yield* tenant.atProvider(`/accounts/${tenant.accountId}`)
    expect(Object.keys(known)).toEqual(expect.arrayContaining(["email", "external_accounts", "tos_acceptance"]))
    const personal = ["individual", "company", "external_accounts", "tos_acceptance", "email"]
    expect(Object.keys(shown.json).filter((key) => personal.includes(key))).toEqual([])
    const kept = Object.keys(known).filter((key) => !personal.includes(key))
    expect(Object.keys(shown.json).toSorted()).toEqual(kept.toSorted())
  })

  it.effect("has a balance, which payments move", function* () {
    const service = yield* TestService
    const tenant = yield* newTenant
    const pending = Effect.map(tenant.get("/balance"), ({ json }) =>
      Array.isArray(json["pending"]) ? json["pending"].map(({ amount, currency }) => ({ amount, currency })) : []
    )
    expect((yield* tenant.get("/balance")).json).toMatchObject({ object: "balance", livemode: false })
    yield* pay(service, { ...tenant, priceId: yield* makePrice(service, tenant) })
    const [brl] = (yield* pending).filter(({ currency }) => currency === "brl")
    // 15.00 less the provider's fee
    expect(brl?.amount).toBeGreaterThan(1300)
    expect(brl?.amount).toBeLessThan(1500)
  })

  it.effect("says when it is paid out, and where to in masked form", function* () {
    const tenant = yield* newTenant
    yield* control(tenant.accountId, true)
    const { json, status, text } = yield* tenant.get("/payout-settings")
    expect(status, text).toBe(200)
    expect(json).toEqual({
      object: "payout_settings",
      status: "enabled",
      schedule: { interval: "daily" },
      delay_days: 2,
      destinations: [
        {
          type: "bank_account",
          bank_name: "STRIPE TEST BANK",
          last4: "6789",
          currency: expect.stringMatching(/^[a-z]{3}$/),
          country: expect.stringMatching(/^[A-Z]{2}$/),
          default: true
        }
      ]
    })
    expect(text).not.toMatch(/routing|fingerprint|110000000|ba_/)
  })

  it.effect("that the platform does not control says nothing of where it is paid out to", function* () {
    const tenant = yield* newTenant
    yield* control(tenant.accountId, false)
    const { json } = yield* tenant.get("/payout-settings")
    expect(json).toMatchObject({ object: "payout_settings", status: "enabled", destinations: null })
  })
})

onSharedService("balance transactions and payouts", (it) => {
  it.effect("are listed newest first, by type, time and payout, in pages", function* () {
    const service = yield* TestService
    const tenant = yield* newTenant
    const priceId = yield* makePrice(service, tenant)
    yield* pay(service, { ...tenant, priceId })
    yield* pay(service, { ...tenant, priceId })
    const payout = yield* service.emulator.orderPayout({
      account: tenant.accountId,
      amount: 700,
      currency: "brl",
      state: "paid"
    })
    const list = (query: string) =>
      Effect.map(tenant.get(`/balance-transactions?${query}`), (answer) => {
        expect(answer.status, answer.text).toBe(200)
        return answer.json
      })
    const all = dataOf(yield* list("limit=100"))
    expect(all.map(({ type }) => type)).toEqual(["payout", "charge", "charge"])
    expect(dataOf(yield* list("type=charge"))).toHaveLength(2)
    expect(dataOf(yield* list(`payout=${payout}`)).map(({ id }) => id)).toContain(all[0]?.["id"])
    const created = Number(all[0]?.["created"])
    expect(dataOf(yield* list(`created_gte=${created + 10}`))).toEqual([])
    expect(dataOf(yield* list(`created_lte=${created + 10}&created_gte=0`))).toHaveLength(3)
    const first = yield* list("limit=2")
    expect(first["has_more"]).toBe(true)
    const rest = yield* list(`limit=2&starting_after=${part(dataOf(first), 1)["id"]}`)
    expect(rest["has_more"]).toBe(false)
    expect(dataOf(rest)).toEqual(all.slice(2))
  })

  it.effect("of payouts are listed by state and time, and read by id", function* () {
    const { emulator } = yield* TestService
    const tenant = yield* newTenant
    const order = (state: "pending" | "paid") =>
      emulator.orderPayout({ account: tenant.accountId, amount: 900, currency: "brl", state })
    const paid = yield* order("paid")
    const pending = yield* order("pending")
    const idsOf = (query: string) =>
      Effect.map(tenant.get(`/payouts?${query}`), ({ json }) => dataOf(json).map(({ id }) => id))
    expect(yield* idsOf("")).toEqual([pending, paid])
    expect(yield* idsOf("status=paid")).toEqual([paid])
    expect(yield* idsOf("created_gte=4102444800")).toEqual([])
    expect((yield* tenant.get(`/payouts/${paid}`)).json).toMatchObject({ id: paid, amount: 900, status: "paid" })
  })
})
