import { createServer, type IncomingMessage } from "node:http"
import { FetchHttpClient, HttpApi, HttpClient } from "@effect/platform"
import { describe, expect, expectTypeOf } from "@effect/vitest"
import { Chunk, Effect, Option, Redacted, Stream } from "effect"
import { type LineItem, makeClient, type Price, type RetryOptions } from "../../src/client/index.ts"
import { withRetries } from "../../src/client/Retries.ts"
import { eventKey } from "../../src/destinations/publishing/Publication.ts"
import { ProviderObject, ProviderPage } from "../../src/payments/Schemas.ts"
import { Api } from "../../src/surface/contract/Api.ts"
import { resourceOf } from "../../src/surface/contract/ProviderResources.ts"
import { listening } from "../harness/Listening.ts"
import { onSharedServiceWithWorker, TestService } from "../harness/TestService.ts"
import { it } from "../harness/Tests.ts"

const clientOf = (service: TestService["Type"], apiKey = service.organization.testKey) =>
  makeClient({
    baseUrl: service.baseUrl,
    organizationId: service.organization.id,
    apiKey: Redacted.make(apiKey),
    retry: { delay: "10 millis" }
  }).pipe(Effect.provide(FetchHttpClient.layer))

onSharedServiceWithWorker("the client of a running service", (it) => {
  it.effect("creates, reads and changes things with typed answers", function* () {
    const client = yield* clientOf(yield* TestService)
    const product = yield* client.products.create({ payload: { name: "Coffee" } })
    expect(product.id).toMatch(/^prod_/)
    expect((yield* client.products.get({ path: { id: product.id } })).name).toBe("Coffee")
    const endpoint = yield* client.endpoints.create({
      payload: { name: "Shop", url: "http://127.0.0.1:9/hook", events: ["payment.succeeded"] }
    })
    expect(endpoint.signingSecret).toMatch(/^whsec_/)
    expect(endpoint.createdAt).toBeInstanceOf(Date)
    const paused = yield* client.endpoints.update({ path: { id: endpoint.id }, payload: { active: false } })
    expect(paused.active).toBe(false)
    const { data } = yield* client.endpoints.list()
    expect(data.map(({ id }) => id)).toContain(endpoint.id)
  })

  it.effect("sells with typed answers, from the product to the session and its lists", function* () {
    const client = yield* clientOf(yield* TestService)
    const { id: product } = yield* client.products.create({ payload: { name: "Coffee" } })
    const price = yield* client.prices.create({ payload: { product, unit_amount: 1500, currency: "brl" } })
    expectTypeOf(price.unit_amount).toEqualTypeOf<number | null | undefined>()
    expect([price.unit_amount, price.currency, price.product]).toEqual([1500, "brl", product])
    const { id } = yield* client.checkoutSessions.create({
      payload: {
        mode: "payment",
        line_items: [{ price: price.id, quantity: 2 }],
        metadata: { order_id: "4711" }
      }
    })
    const session = yield* client.checkoutSessions.get({ path: { id } })
    expectTypeOf(session.url).toEqualTypeOf<string | null | undefined>()
    expectTypeOf(session.metadata).toEqualTypeOf<Readonly<Record<string, string>> | null | undefined>()
    expectTypeOf(session["expires_at"]).toEqualTypeOf<unknown>()
    expect(session.url).toMatch(/^http/)
    expect([session.status, session.payment_status, session.amount_total]).toEqual(["open", "unpaid", 3000])
    expect(session.metadata?.["order_id"]).toBe("4711")
    const { data } = yield* client.prices.list({ urlParams: { limit: 1 } })
    expectTypeOf(data).toEqualTypeOf<ReadonlyArray<Price>>()
    expect(data.map(({ unit_amount }) => unit_amount)).toEqual([1500])
    const streamed = yield* Stream.runHead(client.prices.list.stream())
    expect(Option.map(streamed, ({ unit_amount }) => unit_amount)).toEqual(Option.some(1500))
    const { charges_enabled } = yield* client.account.get()
    expectTypeOf(charges_enabled).toEqualTypeOf<boolean | null | undefined>()
    expect(charges_enabled).toBe(true)
    const { available } = yield* client.account.balance()
    expect(available?.every(({ amount, currency }) => Number.isInteger(amount) && currency !== "")).toBe(true)
  })

  it.effect("finds prices by their keys, moves a key, and reads and expires what is on sale", function* () {
    const client = yield* clientOf(yield* TestService)
    const base = { currency: "brl", unit_amount: 500, product_data: { name: "Tea" } }
    const small = yield* client.prices.create({ payload: { ...base, lookup_key: "tea-small" } })
    const large = yield* client.prices.create({ payload: { ...base, lookup_key: "tea-large" } })
    const keysOf = (keys: ReadonlyArray<string>) =>
      Effect.map(client.prices.list({ urlParams: { lookup_keys: keys } }), ({ data }) => data.map(({ id }) => id))
    expect(yield* keysOf(["tea-small"])).toEqual([small.id])
    expect(yield* keysOf(["tea-small", "tea-large"])).toEqual([large.id, small.id])
    const moved = yield* client.prices.update({
      path: { id: large.id },
      payload: { lookup_key: "tea-small", transfer_lookup_key: true, metadata: { plan: null } }
    })
    expectTypeOf(moved.lookup_key).toEqualTypeOf<string | null | undefined>()
    expect(moved.lookup_key).toBe("tea-small")
    expect(yield* keysOf(["tea-small"])).toEqual([large.id])

    const line_items = [small, large].map(({ id }) => ({ price: id, quantity: 1 }))
    const { id } = yield* client.checkoutSessions.create({ payload: { mode: "payment", line_items } })
    const lines = yield* Stream.runCollect(
      client.checkoutSessions.lineItems.stream({ path: { id }, urlParams: { limit: 1 } })
    )
    expectTypeOf(lines).toEqualTypeOf<Chunk.Chunk<LineItem>>()
    expect(Chunk.toReadonlyArray(lines).map(({ price }) => price?.["id"])).toEqual([small.id, large.id])
    expect((yield* client.checkoutSessions.expire({ path: { id } })).status).toBe("expired")
    const link = yield* client.paymentLinks.create({ payload: { line_items } })
    expect((yield* client.paymentLinks.lineItems({ path: { id: link.id } })).data).toHaveLength(2)
    const changed = yield* client.paymentLinks.update({ path: { id: link.id }, payload: { metadata: { a: "1" } } })
    expect(changed.metadata?.["a"]).toBe("1")
  })

  it.effect("fails with the documented error, its fields and its request id", function* () {
    const service = yield* TestService
    const refused = yield* Effect.flip(
      (yield* clientOf(service)).endpoints.create({
        payload: { name: "Shop", url: "https://shop.example:444/", events: ["payout.paid"] }
      })
    )
    expect(refused._tag === "DestinationRejected" && refused.fields).toEqual(["url"])
    expect(refused._tag === "DestinationRejected" && refused.requestId).toMatch(/^req_/)
    const stranger = yield* clientOf(service, service.stranger.testKey)
    expect((yield* Effect.flip(stranger.products.list()))._tag).toBe("OrganizationAccessDenied")
    const nobody = yield* clientOf(service, "pk_test_nothing")
    expect((yield* Effect.flip(nobody.account.get()))._tag).toBe("ApiKeyInvalid")
  })

  it.effect("fails under a tag of its own where the code of the provider's refusal is documented", function* () {
    const client = yield* clientOf(yield* TestService)
    const payload = { code: "TYPED10", discount: { percent_off: 10 }, duration: "once" } as const
    yield* client.promotionCodes.create({ payload })
    const taken = client.promotionCodes.create({ payload }).pipe(
      Effect.as("created"),
      Effect.catchTag("ProviderResourceAlreadyExists", ({ code, fields, requestId, status }) =>
        Effect.succeed({ code, fields, status, named: requestId.startsWith("req_") })
      )
    )
    type Left = Effect.Effect.Error<typeof taken>["_tag"]
    expectTypeOf<Extract<Left, "ProviderResourceAlreadyExists">>().toEqualTypeOf<never>()
    expectTypeOf<"ProviderAmountTooLarge" | "ProviderRequestRefused">().toExtend<Left>()
    expect(yield* taken).toEqual({
      code: "provider_resource_already_exists",
      fields: ["code"],
      status: 422,
      named: true
    })
  })

  it.effect("repeats a mutation under the caller's key without a second effect", function* () {
    const client = yield* clientOf(yield* TestService)
    const create = client.products.create({ payload: { name: "Tea" } })
    const [first, second] = [yield* create, yield* create]
    expect(second.id).toBe(first.id)
    const own = { idempotencyKey: "order-4711", payload: { name: "Tea" } }
    expect((yield* client.products.create(own)).id).toBe((yield* client.products.create(own)).id)
    expect((yield* client.products.create({ payload: { name: "Tea" } })).id).not.toBe(first.id)
  })

  it.effect("streams every item of a list, page by page, each once", function* () {
    const client = yield* clientOf(yield* TestService)
    const made = yield* Effect.forEach(["a", "b", "c", "d", "e"], (name) =>
      client.products.create({ payload: { name } })
    )
    const all = Chunk.toReadonlyArray(
      yield* Stream.runCollect(client.products.list.stream({ urlParams: { limit: 2 } }))
    )
    const ids = all.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.slice(0, 5)).toEqual(made.map(({ id }) => id).toReversed())
    const audit = yield* Stream.runCollect(Stream.take(client.audit.list.stream({ urlParams: { limit: 1 } }), 3))
    expect(new Set(Chunk.map(audit, ({ id }) => id)).size).toBe(3)
  })

  it.effect("streams what a paused endpoint missed, whose cursor is the event's id", function* () {
    const service = yield* TestService
    const client = yield* clientOf(service)
    const endpoint = yield* client.endpoints.create({
      payload: { name: "Paused", url: "http://127.0.0.1:9/hook", events: ["payout.created"] }
    })
    yield* client.endpoints.update({ path: { id: endpoint.id }, payload: { active: false } })
    const ids = ["1", "2", "3"].map((digit) => `svc_evt_${digit.repeat(64)}`)
    const tenant = { organization_id: service.organization.id, environment: "sandbox" }
    const type = "payout.created"
    const now = new Date()
    const keyOf = (id: string) => eventKey(id, now)
    yield* Effect.forEach(ids, (id) =>
      Effect.zipRight(
        service.sql`INSERT INTO payments.events ${service.sql.insert({ ...tenant, id: keyOf(id), public_id: id, type, payload: "{}" })}`,
        service.sql`INSERT INTO payments.skipped_events ${service.sql.insert({
          ...tenant,
          endpoint_id: endpoint.id,
          event_id: id,
          event_key: keyOf(id),
          type,
          provider_event_id: id
        })}`
      )
    )
    const missed = yield* Stream.runCollect(
      client.endpoints.skipped.stream({ path: { id: endpoint.id }, urlParams: { limit: 1 } })
    )
    expect(Chunk.toReadonlyArray(missed).map(({ eventId }) => eventId)).toEqual(ids.toReversed())
  })
})

interface Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

const refusal = (code: string) => ({ error: "No.", code, fields: [], requestId: "req_1" })
const unavailable: Reply = { status: 503, body: refusal("service_unavailable") }
const product: Reply = { status: 200, body: { id: "prod_1" } }

/** A service that gives these replies in turn, `cut` being a connection that is lost, `none` one without an answer; and what it was asked. */
const scripted = (replies: ReadonlyArray<Reply | "cut" | "none">, retry: RetryOptions = {}) =>
  Effect.gen(function* () {
    const asked: Array<{ readonly headers: IncomingMessage["headers"]; readonly at: number }> = []
    const server = createServer((request, response) => {
      const reply = replies[asked.length] ?? product
      asked.push({ headers: request.headers, at: Date.now() })
      if (reply === "cut") request.socket.destroy()
      else if (reply !== "none") {
        response.writeHead(reply.status, { "content-type": "application/json", ...reply.headers })
        response.end(JSON.stringify(reply.body))
      }
    })
    const baseUrl = `http://127.0.0.1:${yield* listening(server)}`
    const client = yield* makeClient({
      baseUrl,
      organizationId: "0198c3a2-5c4e-7b1f-9d3a-2f6e8b7c1d40",
      apiKey: Redacted.make("pk_test_1"),
      retry: { delay: "5 millis", ...retry }
    }).pipe(Effect.provide(FetchHttpClient.layer))
    return { client, asked, baseUrl }
  })

describe("the client's answers", () => {
  const path = { id: "cs_1" }

  it.scopedLive("leave out what the provider sends as another type, and keep all else", function* () {
    const changed = {
      id: "cs_1",
      url: { href: "https://pay.example" },
      amount_total: "3000",
      payment_status: "paid",
      metadata: { order_id: 4711 },
      status: null,
      payment_intent: { id: "pi_1" },
      later: [1]
    }
    const { client } = yield* scripted([
      { status: 200, body: changed },
      { status: 200, body: { data: [changed], has_more: false, url: "/v1" } }
    ])
    const session = yield* client.checkoutSessions.get({ path })
    const known = { id: "cs_1", payment_status: "paid", status: null, later: [1] }
    const left = { url: undefined, amount_total: undefined, metadata: undefined, payment_intent: undefined }
    expect(session).toEqual({ ...known, ...left })
    expect("mode" in session).toBe(false)
    expect(yield* client.checkoutSessions.list()).toEqual({ data: [session], has_more: false, url: "/v1" })
  })

  it.scopedLive("of the provider's refusals keep the generic tag under any other code", function* () {
    const { client } = yield* scripted([
      { status: 422, body: refusal("provider_amount_too_large") },
      { status: 422, body: refusal("provider_parameter_unknown") }
    ])
    const tagOf = Effect.map(Effect.flip(client.checkoutSessions.list()), ({ _tag }) => _tag)
    expect([yield* tagOf, yield* tagOf]).toEqual(["ProviderAmountTooLarge", "ProviderRequestRefused"])
  })

  it.scopedLive("have an id, or fail", function* () {
    const { client } = yield* scripted([{ status: 200, body: { url: "https://pay.example" } }])
    expect((yield* Effect.flip(client.checkoutSessions.get({ path })))._tag).toBe("ParseError")
  })

  it("are of a described resource in every operation that answers an object of the provider's, but two", () => {
    const undescribed: Array<string> = []
    HttpApi.reflect(Api, {
      onGroup: () => {},
      onEndpoint: ({ endpoint, group }) => {
        const { ast } = endpoint.successSchema
        const answersObject = ast === ProviderObject.ast || ast === ProviderPage.ast
        const described = resourceOf(group.identifier, endpoint.name) !== undefined
        if (answersObject !== described) undescribed.push(`${group.identifier}.${endpoint.name}`)
      }
    })
    // A search answers objects of two kinds
    expect(undescribed).toEqual(["search.payments", "account.payoutSettings"])
  })
})

describe("the client's repeats", () => {
  it.scopedLive("carry one idempotency key through lost connections and failures", function* () {
    const { asked, client } = yield* scripted(["cut", unavailable, { status: 500, body: refusal("internal_error") }])
    expect((yield* client.products.create({ payload: { name: "Coffee" } })).id).toBe("prod_1")
    expect(asked).toHaveLength(4)
    expect(new Set(asked.map(({ headers }) => headers["idempotency-key"])).size).toBe(1)
    expect(asked.every(({ headers }) => headers["x-api-key"] === "pk_test_1")).toBe(true)
  })

  it.scopedLive("wait for as long as the service asks", function* () {
    const limited = { status: 429, headers: { "retry-after": "1" }, body: refusal("rate_limit_exceeded") }
    const { asked, client } = yield* scripted([limited])
    yield* client.products.list().pipe(Effect.ignore)
    expect(asked).toHaveLength(2)
    expect((asked[1]?.at ?? 0) - (asked[0]?.at ?? 0)).toBeGreaterThanOrEqual(990)
  })

  it.scopedLive("end where the service asks for more patience than the caller has", function* () {
    const limited = { status: 429, headers: { "retry-after": "60" }, body: refusal("rate_limit_exceeded") }
    const { asked, client } = yield* scripted([limited])
    expect([(yield* Effect.flip(client.products.list()))._tag, asked.length]).toEqual(["RateLimitExceeded", 1])
  })

  it.scopedLive("end after their number, with the last answer", function* () {
    const { asked, client } = yield* scripted([unavailable, unavailable, unavailable, unavailable], { times: 2 })
    expect((yield* Effect.flip(client.account.get()))._tag).toBe("ServiceUnavailable")
    expect(asked).toHaveLength(3)
  })

  it.scopedLive("are not made of a mutation that takes no key, unless it was not begun", function* () {
    const { asked, baseUrl } = yield* scripted([unavailable])
    const fetching = yield* Effect.provide(HttpClient.HttpClient, FetchHttpClient.layer)
    const patient = withRetries(fetching, { delay: "5 millis" })
    expect((yield* patient.del(baseUrl)).status).toBe(503)
    expect(asked).toHaveLength(1)
  })

  it.scopedLive("are not made of what stays refused", function* () {
    const { asked, client } = yield* scripted([{ status: 422, body: refusal("validation_failed") }])
    expect((yield* Effect.flip(client.products.create({ payload: { name: "Coffee" } })))._tag).toBe("ValidationFailed")
    expect(asked).toHaveLength(1)
  })

  it.scopedLive("begin again where an answer takes too long", function* () {
    const { asked, client } = yield* scripted(["none", "none"], { timeout: "1 second", times: 1 })
    expect((yield* Effect.flip(client.account.get()))._tag).toBe("RequestError")
    expect(asked).toHaveLength(2)
  })
})
