import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { verifyWebhook } from "../../../src/webhooks/index.ts"
import { makeConsumer } from "../../harness/Consumer.ts"
import { eventuallyTrue } from "../../harness/Eventually.ts"
import { onSharedServiceWithWorker, TestService } from "../../harness/TestService.ts"
import { payAt } from "../../payments/ConnectedTenant.ts"
import { posting } from "./Payments.ts"

onSharedServiceWithWorker("a first payment", (it) => {
  it.scoped("leads from checkout to two signed events that match the order", function* () {
    const service = yield* TestService
    const { organization, request } = service
    const consumer = yield* makeConsumer
    const key = organization.testKey
    const create = (path: string, body: unknown) =>
      Effect.map(posting(service, { organizationId: organization.id, key })(path, body), ({ json, status, text }) => {
        expect(status, text).toBe(200)
        return json
      })
    const endpoint = yield* create("/integrations/endpoints", {
      name: "Orders",
      url: consumer.url,
      events: ["checkout.completed", "payment.succeeded"]
    })
    const product = yield* create("/provider/products", { name: "Coffee" })
    const price = yield* create("/provider/prices", { product: product["id"], currency: "brl", unit_amount: 1500 })
    const session = yield* create("/provider/checkout/sessions", {
      mode: "payment",
      line_items: [{ price: price["id"], quantity: 2 }],
      client_reference_id: "order-1"
    })
    yield* payAt(session["url"])
    yield* eventuallyTrue("both events", () => consumer.received.length === 2)
    const events = consumer.received.map(({ body, headers }) =>
      verifyWebhook({
        body,
        header: String(headers["service-signature"]),
        secret: String(endpoint["signingSecret"]),
        organizationId: organization.id,
        livemode: false
      })
    )
    const paid = yield* request(
      "GET",
      `/v2/organizations/${organization.id}/provider/checkout/sessions/${session["id"]}`,
      { key }
    )
    expect(paid.json).toMatchObject({ status: "complete", payment_status: "paid", client_reference_id: "order-1" })
    expect(events.find(({ type }) => type === "payment.succeeded")?.data).toEqual({
      payment_id: paid.json["payment_intent"],
      amount_received: 3000,
      currency: "brl"
    })
    expect(events.find(({ type }) => type === "checkout.completed")?.data).toMatchObject({
      session_id: session["id"],
      payment_status: "paid",
      price_ids: [price["id"]],
      product_ids: [product["id"]]
    })
  })
})
