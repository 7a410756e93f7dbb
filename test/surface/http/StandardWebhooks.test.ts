import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { Webhook } from "standardwebhooks"
import { standardWebhooksSecret, verifyWebhook } from "../../../src/webhooks/index.ts"
import { endQueued } from "../../destinations/deliveries/StoredDeliveries.ts"
import { payment, received, withWorker } from "../../destinations/endpoints/Delivering.ts"
import { makeConsumer, type ReceivedRequest } from "../../harness/Consumer.ts"
import { type Answer, onSharedService, TestService } from "../../harness/TestService.ts"
import { makeTenant } from "../../inbound/Notifications.ts"
import { posting } from "./Payments.ts"

// The specification's own library verifies what arrives, as an integrator uses it: with the shown secret and no code

const makeDestination = Effect.gen(function* () {
  const service = yield* TestService
  const tenant = yield* makeTenant
  const consumer = yield* makeConsumer
  const send = (path: string, body?: unknown) =>
    posting(service, { organizationId: tenant.id, key: tenant.key })(`/integrations${path}`, body)
  const created = yield* send("/endpoints", { name: "Standard", url: consumer.url, events: ["payment.succeeded"] })
  return { tenant, consumer, send, created, id: String(created.json["id"]) }
})

const standardSecretIn = ({ json, status, text }: Answer): string => {
  expect(status, text).toBe(200)
  expect(json["standardWebhooksSecret"]).toBe(standardWebhooksSecret(String(json["signingSecret"])))
  return String(json["standardWebhooksSecret"])
}

const headersOf = ({ headers }: ReceivedRequest): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))

/** The event, as the library returns it. Throws if it refuses the request. */
const verified = (request: ReceivedRequest, secret: string): unknown =>
  new Webhook(secret).verify(request.body, headersOf(request))

onSharedService("a delivery, for the libraries of Standard Webhooks", (it) => {
  it.scoped("verifies with the secret that creating the endpoint shows, under the event's id", function* () {
    const { consumer, created, tenant } = yield* makeDestination
    const secret = standardSecretIn(created)
    yield* payment(tenant)
    const request = yield* withWorker(received(consumer, 1))
    const event = verifyWebhook({
      body: request.body,
      header: String(request.headers["service-signature"]),
      secret: String(created.json["signingSecret"])
    })
    expect(verified(request, secret)).toEqual(event)
    expect(request.headers["webhook-id"]).toBe(event.id)
    expect(String(request.headers["service-signature"])).toContain(`t=${request.headers["webhook-timestamp"]},`)
    // Whatever is signed, changed: the library refuses it
    const other = { ...request, body: Buffer.from(`${request.body.toString()} `) }
    expect(() => verified(other, secret)).toThrow("No matching signature")
    for (const [name, value] of [
      ["webhook-id", `svc_evt_${"0".repeat(64)}`],
      ["webhook-timestamp", String(Number(request.headers["webhook-timestamp"]) - 1)]
    ] as const) {
      expect(() => verified({ ...request, headers: { ...request.headers, [name]: value } }, secret)).toThrow()
    }
    expect(() => verified(request, standardWebhooksSecret(`whsec_${"A".repeat(43)}`))).toThrow()
  })

  it.scoped("verifies with either secret after a rotation", function* () {
    const { consumer, created, id, send, tenant } = yield* makeDestination
    const rotated = yield* send(`/endpoints/${id}/rotate-secret`)
    yield* payment(tenant)
    const request = yield* withWorker(received(consumer, 1))
    expect(String(request.headers["webhook-signature"]).split(" ")).toHaveLength(2)
    for (const secret of [standardSecretIn(created), standardSecretIn(rotated)]) {
      expect(verified(request, secret)).toMatchObject({ type: "payment.succeeded" })
    }
  })

  it.scoped("verifies if it is a synthetic test, and if it is sent again", function* () {
    const { sql } = yield* TestService
    const { consumer, created, id, send, tenant } = yield* makeDestination
    const secret = standardSecretIn(created)
    const test = yield* send(`/endpoints/${id}/test`, { type: "payment.succeeded" })
    const synthetic = yield* withWorker(received(consumer, 1))
    expect(verified(synthetic, secret)).toMatchObject({ id: test.json["eventId"], test: true })
    expect(synthetic.headers["webhook-id"]).toBe(test.json["eventId"])
    yield* payment(tenant)
    const [delivery] = yield* endQueued(sql, sql`endpoint_id = ${id}`, "failed")
    expect((yield* send(`/deliveries/${delivery?.id}/retry`)).status).toBe(200)
    const again = yield* withWorker(received(consumer, 2))
    expect(verified(again, secret)).toMatchObject({ id: again.headers["webhook-id"], type: "payment.succeeded" })
  })
})
