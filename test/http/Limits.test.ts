import { randomUUID } from "node:crypto"
import { BlockList } from "node:net"
import { expect } from "@effect/vitest"
import { Context, Duration, Effect, Redacted } from "effect"
import type { Grant } from "../../src/identity/Permissions.ts"
import { Sessions } from "../../src/identity/Sessions.ts"
import { type Answer, onService, type RequestOptions, TestService } from "../harness/TestService.ts"
import { expectFailure } from "./Refusals.ts"

/** A new key of the first organization: its bucket is full. */
const newKey = (permissions: ReadonlyArray<Grant> = ["*", "webhook-endpoints:*"]) =>
  Effect.flatMap(TestService, ({ makeKey, organization }) => makeKey(organization.id, permissions))

const listEndpoints = (options: RequestOptions) =>
  Effect.flatMap(TestService, ({ organization, request }) =>
    request("GET", `/v2/organizations/${organization.id}/integrations/endpoints`, options)
  )

/** Leaves so many tokens in every bucket of this kind: of each credential, or of each organization. */
const leave = (tokens: number, of: "credential" | "organization" = "credential") =>
  Effect.flatMap(
    TestService,
    ({ sql }) => sql`
      UPDATE payments.rate_limits SET tokens = ${tokens}, refilled_at = clock_timestamp()
      WHERE starts_with(bucket, 'organization:') = ${of === "organization"}`
  )

/** As if so many seconds had passed. */
const passSeconds = (seconds: number) =>
  Effect.flatMap(TestService, ({ passTime }) => passTime(Duration.seconds(seconds)))

const limitsOf = ({ headers }: Answer) => ({
  limit: headers.get("ratelimit-limit"),
  remaining: headers.get("ratelimit-remaining"),
  reset: headers.get("ratelimit-reset")
})

const many = (requests: number, options: RequestOptions) =>
  Effect.all(
    Array.from({ length: requests }, () => listEndpoints(options)),
    { concurrency: 32 }
  )

const withStatus = (answers: ReadonlyArray<Answer>, status: number) =>
  answers.filter((answer) => answer.status === status)

const api = { roles: { api: true, worker: false }, failedAuthenticationsPerMinute: 5 } as const

onService({ ...api, rateLimitPerMinute: 600 })("the request rate of a credential", (it) => {
  it.effect("is 600 per minute: that many pass at once, and ten a second after them", () =>
    Effect.gen(function* () {
      const options = { key: yield* newKey() }
      expect(limitsOf(yield* listEndpoints(options))).toEqual({ limit: "600", remaining: "599", reset: "1" })
      const startedAt = Date.now()
      const answers = yield* many(800, options)
      const seconds = (Date.now() - startedAt) / 1000
      const passed = withStatus(answers, 200).length
      expect(passed).toBeGreaterThanOrEqual(599)
      expect(passed).toBeLessThanOrEqual(600 + Math.ceil(10 * seconds))
      expect(passed + withStatus(answers, 429).length).toBe(800)
      yield* leave(0)
      yield* passSeconds(3)
      const later = withStatus(yield* many(50, options), 200).length
      expect(later).toBeGreaterThanOrEqual(30)
      expect(later).toBeLessThan(50)
    })
  )

  it.effect("is refused above it with rate_limit_exceeded and after how many seconds to come again", () =>
    Effect.gen(function* () {
      const options = { key: yield* newKey() }
      yield* listEndpoints(options)
      yield* leave(-0.5)
      const refused = yield* listEndpoints(options)
      expectFailure(refused, { status: 429, code: "rate_limit_exceeded", fields: [] })
      expect(refused.headers.get("retry-after")).toBe("1")
      expect(limitsOf(refused)).toEqual({ limit: "600", remaining: "0", reset: "61" })
      yield* passSeconds(1)
      expect((yield* listEndpoints(options)).status).toBe(200)
    })
  )

  it.effect("is not lowered by what is refused", () =>
    Effect.gen(function* () {
      const options = { key: yield* newKey() }
      yield* listEndpoints(options)
      yield* leave(-20)
      expect(withStatus(yield* many(50, options), 429)).toHaveLength(50)
      yield* leave(-20)
      yield* passSeconds(2.5)
      expect((yield* listEndpoints(options)).status).toBe(200)
    })
  )

  it.effect("is one key's own: another key of the organization does not share it, nor does a session", () =>
    Effect.gen(function* () {
      const { organization, services, sql } = yield* TestService
      const [one, other] = [{ key: yield* newKey() }, { key: yield* newKey() }]
      const [owner] = yield* sql<{ id: string }>`
        SELECT person_id AS id FROM payments.memberships WHERE organization_id = ${organization.id}`
      const sessions = Context.get(services, Sessions)
      const newSession = Effect.map(Effect.orDie(sessions.create(owner?.id ?? "")), ({ token }) => ({
        headers: { cookie: `svc_session=${Redacted.value(token)}` }
      }))
      const [here, there] = [yield* newSession, yield* newSession]
      yield* listEndpoints(one)
      yield* leave(-100)
      expect((yield* listEndpoints(one)).status).toBe(429)
      const full = { limit: "600", remaining: "599", reset: "1" }
      expect(limitsOf(yield* listEndpoints(other))).toEqual(full)
      expect(limitsOf(yield* listEndpoints(here))).toEqual(full)
      yield* leave(-100)
      expectFailure(yield* listEndpoints(here), { status: 429, code: "rate_limit_exceeded" })
      expect(limitsOf(yield* listEndpoints(there))).toEqual(full)
    })
  )

  it.effect("is told with every answer of an authenticated request, whatever it is", () =>
    Effect.gen(function* () {
      const { organization, request, stranger } = yield* TestService
      const key = yield* newKey()
      const poor = yield* newKey(["products:read"])
      const base = `/v2/organizations/${organization.id}`
      const endpoints = `${base}/integrations/endpoints`
      const write = { key, headers: { "idempotency-key": randomUUID() } }
      const body = { name: "Orders", url: "http://localhost:1/hook", events: ["payment.succeeded"] }
      const answers: ReadonlyArray<readonly [number, string, string, RequestOptions]> = [
        [200, "GET", endpoints, { key }],
        [200, "HEAD", endpoints, { key }],
        [200, "POST", endpoints, { ...write, body }],
        [200, "POST", endpoints, { ...write, body }],
        [409, "POST", endpoints, { ...write, body: { ...body, name: "Other" } }],
        [404, "GET", `${endpoints}/${randomUUID()}`, { key }],
        [404, "GET", `${base}/provider/products/prod_missing1`, { key }],
        [422, "GET", `${endpoints}/no-id`, { key }],
        [422, "GET", `${endpoints}?unknown=1`, { key }],
        [422, "POST", endpoints, { ...write, body: {} }],
        [
          422,
          "POST",
          endpoints,
          { ...write, raw: "{", headers: { ...write.headers, "content-type": "application/json" } }
        ],
        [415, "POST", endpoints, { ...write, raw: "a=b", headers: { ...write.headers, "content-type": "text/plain" } }],
        [413, "POST", endpoints, { ...write, body: { name: "a".repeat(300_000) } }],
        [403, "GET", endpoints, { key: poor }],
        [403, "GET", endpoints.replace(organization.id, stranger.id), { key }],
        [422, "GET", endpoints.replace(organization.id, "no-uuid"), { key }]
      ]
      for (const [status, method, path, options] of answers) {
        const answer = yield* request(method, path, options)
        const what = `${method} ${path} ${answer.text}`
        expect(answer.status, what).toBe(status)
        expect(answer.headers.get("ratelimit-limit"), what).toBe("600")
        expect(Number(answer.headers.get("ratelimit-remaining")), what).toBeGreaterThan(500)
        expect(Number(answer.headers.get("ratelimit-reset")), what).toBeGreaterThan(0)
      }
    })
  )

  it.effect("is counted for what is refused after the key was known, too", () =>
    Effect.gen(function* () {
      const { organization, request, stranger } = yield* TestService
      const key = yield* newKey()
      yield* listEndpoints({ key })
      yield* leave(3)
      const denied = yield* request("GET", `/v2/organizations/${stranger.id}/integrations/endpoints`, { key })
      expect(denied.status).toBe(403)
      expect(denied.headers.get("ratelimit-remaining")).toBe("2")
      const invalid = yield* request("GET", `/v2/organizations/${organization.id}/integrations/endpoints?x=1`, { key })
      expect(invalid.status).toBe(422)
      expect(invalid.headers.get("ratelimit-remaining")).toBe("1")
    })
  )

  it.effect("is none of what needs no credential", () =>
    Effect.gen(function* () {
      const { request } = yield* TestService
      for (const path of ["/health/live", "/openapi.json", "/nowhere"]) {
        expect(limitsOf(yield* request("GET", path))).toEqual({ limit: null, remaining: null, reset: null })
      }
    })
  )
})

const guess = (headers: Readonly<Record<string, string>> = {}) =>
  listEndpoints({ key: `pk_test_${randomUUID()}`, headers })

/** Begins each test with a clean record of failures. */
const forgetFailures = passSeconds(60)

const invalid = { status: 401, code: "api_key_invalid" }
const slowedDown = { status: 429, code: "rate_limit_exceeded" }

onService(api)("failed authentications", (it) => {
  it.effect("are limited per address, while a good key from there still passes", () =>
    Effect.gen(function* () {
      const { organization } = yield* TestService
      yield* forgetFailures
      for (let n = 0; n < 5; n++) expectFailure(yield* guess(), invalid)
      const refused = yield* guess()
      expectFailure(refused, slowedDown)
      const retryAfter = Number(refused.headers.get("retry-after"))
      expect(retryAfter).toBeGreaterThan(0)
      expect(retryAfter).toBeLessThanOrEqual(12)
      expect((yield* listEndpoints({ key: organization.testKey })).status).toBe(200)
      yield* passSeconds(retryAfter)
      expectFailure(yield* guess(), invalid)
    })
  )

  it.effect("of sessions count with those of keys", () =>
    Effect.gen(function* () {
      yield* forgetFailures
      for (let n = 0; n < 5; n++) {
        const cookie = `svc_session=${"A".repeat(42)}${n}`
        expectFailure(yield* listEndpoints({ headers: { cookie } }), { status: 401, code: "session_invalid" })
      }
      expectFailure(yield* guess(), slowedDown)
    })
  )

  it.effect("are not those without a credential, or with one that may not do this", () =>
    Effect.gen(function* () {
      const key = yield* newKey(["products:read"])
      yield* forgetFailures
      for (let n = 0; n < 8; n++) {
        expectFailure(yield* listEndpoints({}), { status: 401, code: "authentication_required" })
        expect((yield* listEndpoints({ key })).status).toBe(403)
      }
      expectFailure(yield* guess(), invalid)
    })
  )

  it.effect("are not hidden by a header that says another address", () =>
    Effect.gen(function* () {
      yield* forgetFailures
      for (let n = 0; n < 5; n++) yield* guess({ "x-forwarded-for": `203.0.113.${n}` })
      for (const headers of [
        { "x-forwarded-for": "203.0.113.77" },
        { "x-forwarded-for": "127.0.0.1" },
        { "x-real-ip": "203.0.113.77" },
        { forwarded: "for=203.0.113.77" },
        { "true-client-ip": "203.0.113.77", "cf-connecting-ip": "203.0.113.77" }
      ]) {
        expectFailure(yield* guess(headers), slowedDown)
      }
    })
  )
})

const loopback = new BlockList()
loopback.addAddress("127.0.0.1", "ipv4")
loopback.addSubnet("10.0.0.0", 8, "ipv4")

onService({ ...api, trustedProxies: loopback })("failed authentications behind a trusted proxy", (it) => {
  it.effect("are each client's own", () =>
    Effect.gen(function* () {
      yield* forgetFailures
      for (let n = 0; n < 5; n++) yield* guess({ "x-forwarded-for": "203.0.113.1" })
      expectFailure(yield* guess({ "x-forwarded-for": "203.0.113.1" }), slowedDown)
      expectFailure(yield* guess({ "x-forwarded-for": "203.0.113.2" }), invalid)
      expectFailure(yield* guess({ "x-forwarded-for": "203.0.113.1, 10.1.2.3" }), slowedDown)
    })
  )

  it.effect("are not hidden by what the client itself writes into the header", () =>
    Effect.gen(function* () {
      yield* forgetFailures
      for (let n = 0; n < 5; n++) yield* guess({ "x-forwarded-for": `198.51.100.${n}, 10.0.0.${n}, 203.0.113.1` })
      expectFailure(yield* guess({ "x-forwarded-for": "127.0.0.1, 203.0.113.1" }), slowedDown)
      expectFailure(yield* guess({ "x-forwarded-for": ",,, 203.0.113.1" }), slowedDown)
    })
  )
})
