import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { verifyWebhook } from "../../../src/webhooks/index.ts"
import { makeConsumer } from "../../harness/Consumer.ts"
import { eventuallyTrue } from "../../harness/Eventually.ts"
import { onService, TestService } from "../../harness/TestService.ts"

onService()("a first payment", (it) => {
  it.scoped("leads from checkout to two signed events that match the order", function* () {
    const { organization, request } = yield* TestService
    const consumer = yield* makeConsumer
    const as = { key: organization.testKey }
    const write = (suffix: string) => ({ "idempotency-key": `first-payment-${suffix}` })
    const path = `/v2/organizations/${organization.id}`
    const endpoint = yield* request("POST", `${path}/integrations/endpoints`, {
      ...as,
      headers: write("endpoint"),
      body: { name: "Orders", url: consumer.url, events: ["checkout.completed", "payment.succeeded"] }
    })
    expect(endpoint.status, endpoint.text).toBe(200)
    const product = yield* request("POST", `${path}/provider/products`, {
      ...as,
      headers: write("product"),
      body: { name: "Coffee" }
    })
    const price = yield* request("POST", `${path}/provider/prices`, {
      ...as,
      headers: write("price"),
      body: { product: product.json["id"], currency: "brl", unit_amount: 1500 }
    })
    const session = yield* request("POST", `${path}/provider/checkout/sessions`, {
      ...as,
      headers: write("session"),
      body: {
        mode: "payment",
        line_items: [{ price: price.json["id"], quantity: 2 }],
        client_reference_id: "order-1"
      }
    })
    expect(session.status, session.text).toBe(200)
    yield* Effect.promise(() =>
      fetch(String(session.json["url"]), {
        method: "POST",
        body: new URLSearchParams({ action: "pay" }),
        redirect: "manual"
      })
    )
    yield* eventuallyTrue("both events", () => consumer.received.length === 2)
    const events = consumer.received.map(({ body, headers }) =>
      verifyWebhook({
        body,
        header: String(headers["service-signature"]),
        secret: String(endpoint.json["signingSecret"]),
        organizationId: organization.id,
        livemode: false
      })
    )
    const paid = yield* request("GET", `${path}/provider/checkout/sessions/${session.json["id"]}`, as)
    expect(paid.json).toMatchObject({ status: "complete", payment_status: "paid", client_reference_id: "order-1" })
    expect(events.find(({ type }) => type === "payment.succeeded")?.data).toEqual({
      payment_id: paid.json["payment_intent"],
      amount_received: 3000,
      currency: "brl"
    })
    expect(events.find(({ type }) => type === "checkout.completed")?.data).toMatchObject({
      session_id: session.json["id"],
      payment_status: "paid",
      price_ids: [price.json["id"]],
      product_ids: [product.json["id"]]
    })
  })
})
