import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { onSharedService, TestService } from "../harness/TestService.ts"
import { makePrice, pay } from "../surface/http/Payments.ts"
import { expectFailure, refusedWith } from "../surface/http/Refusals.ts"
import { dataOf, newTenant, part } from "./ConnectedTenant.ts"

const paidTenant = Effect.gen(function* () {
  const service = yield* TestService
  const tenant = yield* newTenant
  const priceId = yield* makePrice(service, tenant)
  const sessions = [yield* pay(service, { ...tenant, priceId }), yield* pay(service, { ...tenant, priceId })]
  return { tenant, intents: sessions.map(({ json }) => String(json["payment_intent"])) }
})

onSharedService("payments", (it) => {
  it.effect("are read as payment intents and as charges, without client secrets", function* () {
    const { intents, tenant } = yield* paidTenant
    expect((yield* tenant.atProvider(`/payment_intents/${intents[0]}`))["client_secret"]).toBeTypeOf("string")
    const intent = yield* tenant.get(`/payment-intents/${intents[0]}`)
    expect(intent.json).toMatchObject({ id: intents[0], status: "succeeded", amount_received: 1500, currency: "brl" })
    const list = yield* tenant.get("/payment-intents?limit=100")
    expect(dataOf(list.json).map(({ id }) => id)).toEqual(intents.toReversed())
    for (const { text } of [intent, list]) {
      expect(text).not.toContain("client_secret")
    }
    const charge = String(intent.json["latest_charge"])
    expect((yield* tenant.get(`/charges/${charge}`)).json).toMatchObject({
      id: charge,
      payment_intent: intents[0],
      amount: 1500,
      paid: true
    })
    expect(dataOf((yield* tenant.get("/charges")).json)).toHaveLength(2)
  })

  it.effect("are listed within times, both included, and page by page", function* () {
    const { tenant } = yield* paidTenant
    for (const path of ["/charges", "/payment-intents"]) {
      const all = dataOf((yield* tenant.get(path)).json)
      const newest = Number(all[0]?.["created"])
      const oldest = Number(all[1]?.["created"])
      const count = (query: string) => Effect.map(tenant.get(`${path}?${query}`), ({ json }) => dataOf(json).length)
      expect(yield* count(`created_gte=${oldest}&created_lte=${newest}`)).toBe(2)
      expect(yield* count(`created_gte=${newest + 1}`)).toBe(0)
      expect(yield* count(`created_lte=${oldest - 1}`)).toBe(0)
      const first = (yield* tenant.get(`${path}?limit=1`)).json
      expect(first["has_more"]).toBe(true)
      const second = (yield* tenant.get(`${path}?limit=1&starting_after=${part(dataOf(first), 0)["id"]}`)).json
      expect([dataOf(second), second["has_more"]]).toEqual([all.slice(1), false])
      expectFailure(
        yield* tenant.get(`${path}?starting_after=unknown_cursor`),
        refusedWith(422, "provider_resource_missing", ["starting_after"])
      )
    }
  })
})
