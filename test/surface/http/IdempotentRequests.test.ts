import { randomUUID } from "node:crypto"
import { Effect, Fiber } from "effect"
import { eventuallyTrue } from "../../harness/Eventually.ts"
import { type Answer, inDatabase, onService, type RequestOptions, TestService } from "../../harness/TestService.ts"
import { expect, layer } from "../../harness/Tests.ts"
import { replying } from "../../payments/ScriptedProvider.ts"
import { ScriptedService, scriptedTenant } from "../../payments/ScriptedService.ts"
import { expectFailure } from "./Refusals.ts"
import { idOf } from "./Samples.ts"

const P = "/provider"
const endpoints = "/integrations/endpoints"

const endpointBody = { name: "Orders", url: "http://localhost:1/hook", events: ["payment.succeeded"] }

/** A mutation of the contract: a good body, the same with its names in another order, and another one. */
interface Mutation {
  readonly path: string
  readonly body: unknown
  readonly reordered: unknown
  readonly other: unknown
}

/** A product and a price of the first organization, for what refers to them. */
const catalog = Effect.gen(function* () {
  const product = idOf(yield* send(`${P}/products`, { body: { name: "Coffee" } }))
  const price = idOf(yield* send(`${P}/prices`, { body: { product, currency: "brl", unit_amount: 1500 } }))
  return { product, price }
})

const mutations = Effect.map(
  catalog,
  ({ price, product }): ReadonlyArray<Mutation> => [
    {
      path: `${P}/products`,
      body: { name: "Coffee", metadata: { b: "2", a: "1" } },
      reordered: { metadata: { a: "1", b: "2" }, name: "Coffee" },
      other: { name: "Tea" }
    },
    {
      path: `${P}/prices`,
      body: { product, currency: "brl", unit_amount: 1500 },
      reordered: { unit_amount: 1500, currency: "brl", product },
      other: { product, currency: "brl", unit_amount: 1501 }
    },
    {
      path: `${P}/checkout/sessions`,
      body: { mode: "payment", line_items: [{ price, quantity: 1 }], client_reference_id: "order-1" },
      reordered: { client_reference_id: "order-1", line_items: [{ quantity: 1, price }], mode: "payment" },
      other: { mode: "payment", line_items: [{ price, quantity: 2 }], client_reference_id: "order-1" }
    },
    {
      path: endpoints,
      body: endpointBody,
      reordered: { events: endpointBody.events, url: endpointBody.url, name: endpointBody.name },
      other: { ...endpointBody, events: ["payment.failed"] }
    }
  ]
)

/** A POST of the first organization, under a new idempotency key unless one is given. */
const send = (
  path: string,
  options: RequestOptions & { readonly idempotencyKey?: string; readonly of?: "organization" | "stranger" }
) =>
  Effect.flatMap(TestService, (service) => {
    const { idempotencyKey = randomUUID(), of = "organization", ...rest } = options
    const { id, testKey } = service[of]
    return service.request("POST", `/v2/organizations/${id}${path}`, {
      key: testKey,
      headers: { "idempotency-key": idempotencyKey },
      ...rest
    })
  })

const isReplay = ({ headers }: Answer) => headers.get("idempotent-replayed") === "true"

const reused = { status: 409, code: "idempotency_key_reused", fields: [] }
const inProgress = { status: 409, code: "idempotency_request_in_progress", fields: [] }

const storedKeys = (key: string) =>
  inDatabase<{ dump: string }>`
    SELECT to_jsonb(k)::text || encode(coalesce(answer, ''), 'escape') AS dump
    FROM payments.idempotency_keys k WHERE key = ${key}`

/** How many objects of a kind the first organization has. */
const countOf = (path: string) =>
  Effect.flatMap(TestService, ({ organization, request }) =>
    Effect.map(
      request("GET", `/v2/organizations/${organization.id}${path}${path === endpoints ? "" : "?limit=100"}`, {
        key: organization.testKey
      }),
      ({ json }) => (Array.isArray(json["data"]) ? json["data"].length : Number.NaN)
    )
  )

onService({ roles: { api: true, worker: false }, endpointLimit: 60 })("a repeated request", (it) => {
  it.effect("gets the first answer, byte for byte, whatever its names' order; nothing is made twice", function* () {
    for (const { body, path, reordered } of yield* mutations) {
      const idempotencyKey = randomUUID()
      const first = yield* send(path, { idempotencyKey, body })
      expect(first.status, first.text).toBe(200)
      expect(first.headers.get("idempotent-replayed")).toBeNull()
      const before = yield* countOf(path)
      for (const again of [body, reordered, body]) {
        const replayed = yield* send(path, { idempotencyKey, body: again })
        expect(replayed.status, path).toBe(200)
        expect(replayed.text, path).toBe(first.text)
        expect(replayed.headers.get("content-type"), path).toBe(first.headers.get("content-type"))
        expect(isReplay(replayed), path).toBe(true)
        expect(replayed.headers.get("request-id")).not.toBe(first.headers.get("request-id"))
      }
      expect(yield* countOf(path), path).toBe(before)
    }
  })

  it.effect("with other parameters or of another operation is refused, and the first answer stays", function* () {
    const all = yield* mutations
    for (const { body, other, path } of all) {
      const idempotencyKey = randomUUID()
      const first = yield* send(path, { idempotencyKey, body })
      expectFailure(yield* send(path, { idempotencyKey, body: other }), reused, path)
      for (const another of all.filter((mutation) => mutation.path !== path)) {
        expectFailure(yield* send(another.path, { idempotencyKey, body: another.body }), reused, another.path)
      }
      expect((yield* send(path, { idempotencyKey, body })).text).toBe(first.text)
    }
  })

  it.effect("is another effect in another organization or environment", function* () {
    const { organization } = yield* TestService
    const idempotencyKey = randomUUID()
    const body = endpointBody
    const mine = yield* send(endpoints, { idempotencyKey, body })
    const theirs = yield* send(endpoints, { idempotencyKey, body, of: "stranger" })
    const live = yield* send(endpoints, {
      idempotencyKey,
      key: organization.liveKey,
      body: { ...body, url: "https://93.184.215.14/hook" }
    })
    expect([mine, theirs, live].map(isReplay)).toEqual([false, false, false])
    expect(new Set([mine, theirs, live].map(idOf)).size).toBe(3)
    const product = { name: "Coffee" }
    const productKey = randomUUID()
    const products = [
      yield* send(`${P}/products`, { idempotencyKey: productKey, body: product }),
      yield* send(`${P}/products`, { idempotencyKey: productKey, body: product, of: "stranger" })
    ]
    expect(products.map(isReplay)).toEqual([false, false])
    expect(new Set(products.map(idOf)).size).toBe(2)
  })

  it.effect("by another key of the organization is the same request", function* () {
    const { makeKey, organization } = yield* TestService
    const idempotencyKey = randomUUID()
    const first = yield* send(endpoints, { idempotencyKey, body: endpointBody })
    const key = yield* makeKey(organization.id, ["webhook-endpoints:write"])
    const second = yield* send(endpoints, { idempotencyKey, body: endpointBody, key })
    expect(second.text).toBe(first.text)
    expect(isReplay(second)).toBe(true)
  })

  it.effect("is no way around authentication and permissions", function* () {
    const { makeKey, organization } = yield* TestService
    const idempotencyKey = randomUUID()
    const first = yield* send(endpoints, { idempotencyKey, body: endpointBody })
    const key = yield* makeKey(organization.id, ["*"])
    const denied = yield* send(endpoints, { idempotencyKey, body: endpointBody, key })
    expectFailure(denied, { status: 403, code: "endpoint_management_forbidden" })
    const unknown = yield* send(endpoints, { idempotencyKey, body: endpointBody, key: "pk_test_unknown" })
    expectFailure(unknown, { status: 401, code: "api_key_invalid" })
    for (const { text } of [denied, unknown]) expect(text).not.toContain(String(first.json["signingSecret"]))
  })

  it.effect("is the first one where the first was refused before it began", function* () {
    const { makeKey, organization } = yield* TestService
    const key = yield* makeKey(organization.id, ["products:read"])
    for (const { body, path } of yield* mutations) {
      const idempotencyKey = randomUUID()
      const refusals = [
        [401, yield* send(path, { idempotencyKey, body, key: "pk_test_unknown" })],
        [403, yield* send(path, { idempotencyKey, body, key })],
        [422, yield* send(path, { idempotencyKey, body: { unknown: 1 } })]
      ] as const
      for (const [status, answer] of refusals) expect(answer.status, answer.text).toBe(status)
      expect(yield* storedKeys(idempotencyKey)).toEqual([])
      const first = yield* send(path, { idempotencyKey, body })
      expect(first.status, first.text).toBe(200)
      expect(isReplay(first)).toBe(false)
    }
  })

  it.effect("is the first one where the first one's destination was refused", function* () {
    const idempotencyKey = randomUUID()
    const refused = yield* send(endpoints, { idempotencyKey, body: { ...endpointBody, url: "http://shop.example/" } })
    expectFailure(refused, { status: 422, code: "destination_rejected", fields: ["url"] })
    expect((yield* send(endpoints, { idempotencyKey, body: endpointBody })).status).toBe(200)
  })

  it.effect("finds nothing of the answer readable in the database", function* () {
    const idempotencyKey = randomUUID()
    const { json, text } = yield* send(endpoints, { idempotencyKey, body: endpointBody })
    const secret = String(json["signingSecret"])
    expect(secret).toMatch(/^whsec_/)
    const [row, ...others] = yield* storedKeys(idempotencyKey)
    expect(others).toEqual([])
    for (const readable of ["whsec_", secret.slice(6), text.slice(0, 20)]) {
      expect(row?.dump).not.toContain(readable)
      expect(row?.dump).not.toContain(Buffer.from(readable).toString("hex"))
    }
  })

  it.effect("is a new one 24 hours later", function* () {
    const idempotencyKey = randomUUID()
    const shift = (interval: string) => inDatabase`
      UPDATE payments.idempotency_keys SET created_at = now() - ${interval}::interval WHERE key = ${idempotencyKey}`
    const first = yield* send(endpoints, { idempotencyKey, body: endpointBody })
    yield* shift("23 hours 59 minutes")
    expect(isReplay(yield* send(endpoints, { idempotencyKey, body: endpointBody }))).toBe(true)
    yield* shift("24 hours 1 second")
    const later = yield* send(endpoints, { idempotencyKey, body: { ...endpointBody, name: "Other" } })
    expect(later.status, later.text).toBe(200)
    expect(isReplay(later)).toBe(false)
    expect(idOf(later)).not.toBe(idOf(first))
  })

  it.effect("makes nothing twice where the first one's process died before it stored its answer", function* () {
    for (const { body, path } of yield* mutations) {
      if (path === endpoints) continue
      const idempotencyKey = randomUUID()
      const first = yield* send(path, { idempotencyKey, body })
      const before = yield* countOf(path)
      // What a process leaves that died between the provider's answer and its own: a running request
      yield* inDatabase`
          UPDATE payments.idempotency_keys
          SET status = NULL, answer = NULL, master_key_id = NULL, locked_until = now() + interval '1 minute'
          WHERE key = ${idempotencyKey}`
      expectFailure(yield* send(path, { idempotencyKey, body }), inProgress, path)
      yield* inDatabase`
          UPDATE payments.idempotency_keys SET locked_until = now() - interval '1 second' WHERE key = ${idempotencyKey}`
      const again = yield* send(path, { idempotencyKey, body })
      expect(again.status, again.text).toBe(200)
      expect(idOf(again), path).toBe(idOf(first))
      expect(yield* countOf(path), path).toBe(before)
      expect((yield* send(path, { idempotencyKey, body })).text).toBe(again.text)
    }
  })

  it.effect("of many at once under one key makes one thing", function* () {
    for (const { body, path } of yield* mutations) {
      const idempotencyKey = randomUUID()
      const before = yield* countOf(path)
      const answers = yield* Effect.all(
        Array.from({ length: 40 }, () => send(path, { idempotencyKey, body })),
        { concurrency: "unbounded" }
      )
      expect(yield* countOf(path), path).toBe(before + 1)
      const made = answers.filter(({ status }) => status === 200)
      expect(made.filter((answer) => !isReplay(answer))).toHaveLength(1)
      expect(new Set(made.map(({ text }) => text)).size).toBe(1)
      for (const answer of answers) if (answer.status !== 200) expectFailure(answer, inProgress, path)
    }
  })
})

onService({ roles: { api: true, worker: false }, endpointLimit: 1 })("a request beyond the endpoint limit", (it) => {
  it.effect("is made under its key once there is room again", function* () {
    const { organization, sql } = yield* TestService
    yield* send(endpoints, { body: endpointBody })
    const idempotencyKey = randomUUID()
    const refused = yield* send(endpoints, { idempotencyKey, body: endpointBody })
    expectFailure(refused, { status: 409, code: "endpoint_limit_reached" })
    yield* sql`UPDATE payments.endpoints SET deleted_at = now() WHERE organization_id = ${organization.id}`
    const again = yield* send(endpoints, { idempotencyKey, body: endpointBody })
    expect(again.status, again.text).toBe(200)
    expect(isReplay(again)).toBe(false)
  })
})

/** A tenant of a provider that does what the test says. */
const scripted = Effect.gen(function* () {
  const { provider } = yield* ScriptedService
  const { calls, send } = yield* scriptedTenant
  const create = (idempotencyKey: string, name = "Coffee") =>
    send("POST", "/products", { headers: { "idempotency-key": idempotencyKey }, body: { name } })
  const creations = () => calls().filter(({ method, path }) => method === "POST" && path === "/v1/products")
  return { provider, create, creations }
})

const product = { id: "prod_Q1w2E3r4T5y6", object: "product", name: "Coffee" }

layer(ScriptedService.layer())("a request that the provider is asked for", (it) => {
  it.scoped("is in progress while the provider is slow, and replayed when it is done", function* () {
    const { create, creations, provider } = yield* scripted
    const idempotencyKey = randomUUID()
    const answers: Array<() => void> = []
    provider.behave((call, response) => answers.push(() => replying(200, product)(call, response)))
    const first = yield* Effect.fork(create(idempotencyKey))
    yield* eventuallyTrue("the provider is asked", () => creations().length === 1)
    const early = yield* create(idempotencyKey)
    expectFailure(early, inProgress)
    expect(early.headers.get("retry-after")).toBe("1")
    expectFailure(yield* create(idempotencyKey, "Tea"), reused)
    for (const answer of answers) answer()
    const done = yield* Fiber.join(first)
    expect(done.json).toMatchObject(product)
    const again = yield* create(idempotencyKey)
    expect(again.text).toBe(done.text)
    expect(isReplay(again)).toBe(true)
    expect(creations()).toHaveLength(1)
  })

  it.scoped("is not kept if the provider failed; the repeat reaches it under the same derived key", function* () {
    const { create, creations, provider } = yield* scripted
    const idempotencyKey = randomUUID()
    const failures = [
      [502, replying(500, { error: { type: "api_error" } })],
      [502, (_, response) => response.socket?.resetAndDestroy()],
      [503, replying(429, { error: { type: "invalid_request_error", code: "rate_limit" } })]
    ] satisfies ReadonlyArray<readonly [number, Parameters<typeof provider.behave>[0]]>
    for (const [status, behaviour] of failures) {
      provider.behave(behaviour)
      const failed = yield* create(idempotencyKey)
      expect(failed.status, failed.text).toBe(status)
    }
    provider.behave(replying(200, product))
    const done = yield* create(idempotencyKey)
    expect(done.status, done.text).toBe(200)
    expect(isReplay(done)).toBe(false)
    const keys = new Set(creations().map(({ headers }) => headers["idempotency-key"]))
    expect(keys.size).toBe(1)
    expect([...keys][0]).toMatch(/^[0-9a-f]{64}$/)
    expect([...keys]).not.toContain(idempotencyKey)
  })

  it.scoped("is kept if the provider answered it: 402 and 404, not 422", function* () {
    const { create, creations, provider } = yield* scripted
    const refusals = [
      [402, true, replying(402, { error: { type: "card_error", code: "card_declined", message: "Declined." } })],
      [
        404,
        true,
        replying(404, { error: { type: "invalid_request_error", code: "resource_missing", message: "None." } })
      ],
      [
        422,
        false,
        replying(400, { error: { type: "invalid_request_error", code: "parameter_invalid", param: "name" } })
      ]
    ] satisfies ReadonlyArray<readonly [number, boolean, Parameters<typeof provider.behave>[0]]>
    for (const [status, kept, behaviour] of refusals) {
      const idempotencyKey = randomUUID()
      const before = creations().length
      provider.behave(behaviour)
      const first = yield* create(idempotencyKey)
      const second = yield* create(idempotencyKey)
      expect([first.status, second.status], first.text).toEqual([status, status])
      expect(isReplay(second)).toBe(kept)
      expect(creations().length - before).toBe(kept ? 1 : 2)
      if (kept) expect(second.text).toBe(first.text)
    }
  })
})
