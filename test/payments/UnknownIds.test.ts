import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { operations } from "../../src/surface/contract/Api.ts"
import { operationKey } from "../../src/surface/contract/Operations.ts"
import { onSharedService } from "../harness/TestService.ts"
import { expectFailure } from "../surface/http/Refusals.ts"
import { idOf, samples, type Things } from "../surface/http/Samples.ts"
import { newTenant, newTenantWithProduct } from "./ConnectedTenant.ts"

const P = "/v2/organizations/:organizationId/provider"

/** Every operation on one object of the provider's; checkout pages are the service's own. */
const byId = operations
  .filter(({ path }) => path.startsWith(`${P}/`) && path.includes("/:id") && !path.includes("/checkout-pages/"))
  .map(({ method, path }) => [operationKey(method, path), { method, path }] as const)

const nothing = "nothing_1234"

/** Nothing that a body names exists; the bodies of operations by id name none but the one in the path. */
const unknownThings = new Proxy<Things>(Object(), { get: () => nothing })

onSharedService("an id that the provider does not know", (it) => {
  it.effect.each(byId)("is `id` in %s, whatever the provider calls it", function* ([key, { method, path }]) {
    const tenant = yield* newTenant
    const sample = samples[key]
    const answer = yield* tenant.send(method, path.slice(P.length).replace(":id", nothing), {
      headers: { "idempotency-key": randomUUID() },
      ...(sample?.body === undefined ? {} : { body: sample.body(unknownThings) })
    })
    expectFailure(answer, { status: 404, code: "provider_resource_missing", fields: ["id"] })
  })

  it.effect("is named where the body or the query has it", function* () {
    const { product, tenant } = yield* newTenantWithProduct
    const price = idOf(yield* tenant.post("/prices", { product, currency: "brl", unit_amount: 5 }))
    const lines = { line_items: [price, nothing].map((id) => ({ price: id, quantity: 1 })) }
    const amount = { currency: "brl", unit_amount: 5 }
    const code = {
      code: "SUMMER",
      discount: { percent_off: 5 },
      duration: "once",
      products: [product, "prod_nothing"]
    }
    for (const [method, path, body, field] of [
      ["POST", "/prices", { product: nothing, ...amount }, "product"],
      ["PATCH", `/products/${product}`, { default_price: nothing }, "default_price"],
      ["PATCH", `/products/${nothing}`, { default_price_data: amount }, "id"],
      ["POST", "/checkout/sessions", { mode: "payment", ...lines }, "line_items.1.price"],
      ["POST", "/checkout/sessions", { mode: "subscription", ...lines }, "line_items.1.price"],
      ["POST", "/payment-links", lines, "line_items.1.price"],
      ["POST", "/promotion-codes", code, "products.1"],
      ["POST", "/refunds", { charge: nothing }, "charge"],
      ["POST", "/refunds", { payment_intent: nothing }, "payment_intent"],
      ...(["charge", "payment_intent"] as const).flatMap((field) =>
        (["/refunds", "/disputes"] as const).map(
          (list) => ["GET", `${list}?${field}=${nothing}`, undefined, field] as const
        )
      ),
      ["GET", `/balance-transactions?payout=${nothing}`, undefined, "payout"]
    ] as const) {
      const answer = yield* tenant.send(method, path, {
        headers: { "idempotency-key": randomUUID() },
        ...(body === undefined ? {} : { body })
      })
      expect(answer.json["code"], path).toBe("provider_resource_missing")
      expect(answer.json["fields"], path).toEqual([field])
    }
  })
})
