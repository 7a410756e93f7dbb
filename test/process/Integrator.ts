import { Effect, Option } from "effect"
import { connectionTo } from "../harness/Connection.ts"
import { eventually } from "../harness/Eventually.ts"
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

    /** The deliveries of an endpoint, each with its attempts. */
    deliveries: (endpointId: string): Effect.Effect<ReadonlyArray<Json>> =>
      Effect.flatMap(listed(`/integrations/endpoints/${endpointId}/deliveries`), (all) =>
        Effect.forEach(all, ({ id }) => succeed("GET", `/integrations/deliveries/${String(id)}`))
      )
  }
}

/** The payer pays on the provider's page. */
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

/** A session of the test's own on the service's database; it ends with the scope, or with the server. */
export const databaseSession = (local: LocalFile) => connectionTo(local.databaseUrl)
