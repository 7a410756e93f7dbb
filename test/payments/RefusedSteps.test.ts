import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { expect, layer } from "../harness/Tests.ts"
import { expectFailure } from "../surface/http/Refusals.ts"
import { type Behaviour, type ProviderCall, replying } from "./ScriptedProvider.ts"
import { ScriptedService, scriptedTenant } from "./ScriptedService.ts"

/** Answers by method and path, and 500 to what is not foreseen. */
const answering =
  (answers: Readonly<Record<string, Behaviour>>): Behaviour =>
  (call, response) =>
    (answers[`${call.method} ${call.path.split("?")[0]}`] ?? replying(500, {}))(call, response)

const refusing = (error: Readonly<Record<string, unknown>>) =>
  replying(400, { error: { type: "invalid_request_error", message: "Refused", ...error } })

/**
 * Answers each POST once: its repeat with the same parameters gets the same answer, refusals included, and one with other
 * parameters is an idempotency_error, as at the provider.
 */
const remembering = (behaviour: (call: ProviderCall) => Behaviour): Behaviour => {
  const known = new Map<string, { readonly parameters: string; readonly answer: Behaviour }>()
  return (call, response) => {
    if (call.method !== "POST") return behaviour(call)(call, response)
    const slot = `${call.headers["stripe-account"]} ${call.headers["idempotency-key"]}`
    const parameters = `${call.path} ${call.body}`
    const { answer, parameters: first } = known.get(slot) ?? { answer: behaviour(call), parameters }
    known.set(slot, { answer, parameters: first })
    const reply = first === parameters ? answer : replying(400, { error: { type: "idempotency_error" } })
    return reply(call, response)
  }
}

/** A new organization that makes one write under one key, and the calls that its tries lead to. */
const underOneKey = (method: string, path: string) =>
  Effect.map(scriptedTenant, ({ calls, send }) => {
    const headers = { "idempotency-key": randomUUID() }
    return {
      send: (body: unknown) => send(method, path, { body, headers }),
      calls: () =>
        calls().map(
          ({ body, method, path }) => `${method} ${path.split("?")[0]} ${new URLSearchParams([...body].slice(0, 1))}`
        )
    }
  })

const writing = (method: string, path: string, body: unknown, behaviour: Behaviour) =>
  Effect.gen(function* () {
    const { provider } = yield* ScriptedService
    const { calls, send } = yield* underOneKey(method, path)
    provider.behave(behaviour)
    return { answer: yield* send(body), calls: calls() }
  })

const price = replying(200, { id: "price_new", object: "price" })

layer(ScriptedService.layer())("a refused step", (it) => {
  it.effect("of a product's change takes the new price out of sale, and names the caller's field", function* () {
    const { answer, calls } = yield* writing(
      "PATCH",
      "/products/prod_123",
      { name: "Tea", default_price_data: { currency: "brl", unit_amount: 5 } },
      answering({
        "POST /v1/prices": price,
        "POST /v1/products/prod_123": refusing({ param: "default_price", code: "some_code" }),
        "POST /v1/prices/price_new": price
      })
    )
    expectFailure(answer, { status: 422, code: "provider_some_code", fields: ["default_price_data"] })
    expect(calls).toEqual([
      "POST /v1/prices currency=brl",
      "POST /v1/products/prod_123 name=Tea",
      "POST /v1/prices/price_new active=false"
    ])
  })

  it.effect("of a product's change leaves its key to the next try, which makes a price of its own", function* () {
    const { provider } = yield* ScriptedService
    const { calls, send } = yield* underOneKey("PATCH", "/products/prod_123")
    let made = 0
    const refused = { prices: true, products: true }
    const newPrice: Behaviour = (call, response) =>
      replying(200, { id: `price_${call.body.get("currency")}_${call.headers["idempotency-key"]}`, object: "price" })(
        call,
        response
      )
    provider.behave(
      remembering((call) => {
        if (call.path === "/v1/prices") {
          made += refused.prices ? 0 : 1
          return refused.prices ? refusing({ param: "currency" }) : newPrice
        }
        return call.path.startsWith("/v1/prices/") || !refused.products
          ? replying(200, { id: "prod_123", object: "product" })
          : refusing({ param: "name" })
      })
    )
    const change = (currency: string) => ({ name: "Tea", default_price_data: { currency, unit_amount: 5 } })
    const fieldsOf = (body: unknown) => Effect.map(send(body), ({ json }) => json["fields"])
    expect(yield* fieldsOf(change("brl"))).toEqual(["default_price_data.currency"])
    refused.prices = false
    expect(yield* fieldsOf(change("usd"))).toEqual(["name"])
    expect(yield* fieldsOf(change("usd"))).toEqual(["name"])
    refused.products = false
    const done = yield* send(change("usd"))
    expect(done.status, done.text).toBe(200)
    expect((yield* send(change("usd"))).text).toBe(done.text)
    expect(made).toBe(3)
    // Two of the three are out of sale; the third one, which was never touched again, is the product's
    expect(calls().filter((call) => call.endsWith("active=false"))).toHaveLength(2)
  })

  it.effect("of a product's change whose outcome is open undoes nothing", function* () {
    const { answer, calls } = yield* writing(
      "PATCH",
      "/products/prod_123",
      { default_price_data: { currency: "brl", unit_amount: 5 } },
      answering({ "POST /v1/prices": price, "POST /v1/prices/price_new": price })
    )
    expectFailure(answer, { status: 502, code: "provider_unavailable" })
    expect(calls.filter((call) => call.includes("/v1/prices/price_new"))).toEqual([])
  })
})
