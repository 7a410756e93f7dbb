import { Effect, Option } from "effect"
import type { Client } from "pg"
import { connectionTo } from "../harness/Connection.ts"
import { makeConsumer } from "../harness/Consumer.ts"
import { eventually, eventuallyIs, eventuallyTrue } from "../harness/Eventually.ts"
import { type RequestOptions, requestTo } from "../harness/TestService.ts"
import type { LocalFile } from "./ServiceProcess.ts"

type Json = Record<string, unknown>

/** An integrator's backend: everything over HTTP, with the key of the local organization. */
export const integrator = (local: LocalFile) => {
  const request = requestTo(local.baseUrl)
  const path = (suffix: string) => `/v2/organizations/${local.organizationId}${suffix}`

  const call = (method: string, suffix: string, body?: unknown, options: RequestOptions = {}) =>
    request(method, path(suffix), {
      key: local.apiKey,
      ...(body === undefined ? {} : { body, headers: { "idempotency-key": crypto.randomUUID() } }),
      ...options
    })

  const succeed = (method: string, suffix: string, body?: unknown): Effect.Effect<Json> =>
    Effect.flatMap(call(method, suffix, body), ({ json, status, text }) =>
      status === 200 ? Effect.succeed(json) : Effect.dieMessage(`${method} ${suffix} answered ${status}: ${text}`)
    )

  const listed = (suffix: string): Effect.Effect<ReadonlyArray<Json>> =>
    Effect.map(succeed("GET", suffix), ({ data }) => (Array.isArray(data) ? data : []))

  return {
    call,
    get: (suffix: string) => succeed("GET", suffix),
    post: (suffix: string, body: unknown) => succeed("POST", suffix, body),

    subscribe: (url: string, events: ReadonlyArray<string> = ["payment.succeeded"]) =>
      Effect.map(succeed("POST", "/integrations/endpoints", { name: "Orders", url, events }), (endpoint) => ({
        id: String(endpoint["id"]),
        secret: String(endpoint["signingSecret"])
      })),

    /** A product, its price and a session that sells it. */
    openCheckout: Effect.gen(function* () {
      const product = yield* succeed("POST", "/provider/products", { name: "Coffee" })
      const price = yield* succeed("POST", "/provider/prices", {
        product: product["id"],
        currency: "brl",
        unit_amount: 1500
      })
      const session = yield* succeed("POST", "/provider/checkout/sessions", {
        mode: "payment",
        line_items: [{ price: price["id"], quantity: 1 }]
      })
      return { productId: String(product["id"]), sessionId: String(session["id"]), url: String(session["url"]) }
    }),

    deliveries: (endpointId: string): Effect.Effect<ReadonlyArray<Json>> =>
      Effect.flatMap(listed(`/integrations/endpoints/${endpointId}/deliveries`), (all) =>
        Effect.forEach(all, ({ id }) => succeed("GET", `/integrations/deliveries/${String(id)}`))
      )
  }
}

export const payOn = (url: string) =>
  Effect.promise(() => fetch(url, { method: "POST", body: new URLSearchParams({ action: "pay" }), redirect: "manual" }))

/** Waits until the only delivery of an endpoint is delivered, and answers it. */
export const delivered = (local: LocalFile, endpointId: string) =>
  eventually(
    "the delivery",
    Effect.map(integrator(local).deliveries(endpointId), ([delivery]) =>
      Option.fromNullable(delivery).pipe(Option.filter(({ state }) => state === "delivered"))
    )
  )

/** A payment whose event is refused once, and delivered by the second attempt. */
export const payWithOneFailure = Effect.fnUntraced(function* (local: LocalFile, database: Client) {
  const backend = integrator(local)
  const consumer = yield* makeConsumer
  consumer.answer(500)
  const endpoint = yield* backend.subscribe(consumer.url)
  const checkout = yield* backend.openCheckout
  yield* payOn(checkout.url)
  yield* eventuallyTrue("the first attempt", () => consumer.received.length === 1)
  consumer.answer(204)
  yield* eventuallyIs(
    "a delivery that waits for its retry",
    Effect.promise(() =>
      database.query(
        "UPDATE payments.delivery_queue SET next_attempt_at = now() WHERE lease IS NULL AND attempt_count = 1"
      )
    ),
    ({ rowCount }) => rowCount === 1
  )
  return { backend, checkout, consumer, delivery: yield* delivered(local, endpoint.id), endpoint }
})

/** A session of the test's own on the service's database; it ends with the scope, or with the server. */
export const databaseSession = (local: LocalFile) => connectionTo(local.databaseUrl)
