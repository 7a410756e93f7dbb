import { randomUUID } from "node:crypto"
import { BlockList } from "node:net"
import { HttpServerRequest } from "@effect/platform"
import { expect, vi } from "@effect/vitest"
import { Context, Duration, Effect, Fiber, Layer, Predicate, Redacted, Ref } from "effect"
import pg from "pg"
import { Keys, presentedKey } from "../../../src/identity/keys/Keys.ts"
import type { Grant } from "../../../src/identity/keys/Permissions.ts"
import { RequestAdmission } from "../../../src/identity/RequestAdmission.ts"
import { Sessions } from "../../../src/identity/sign-in/Sessions.ts"
import { ApiKeyInvalid } from "../../../src/platform/errors/Errors.ts"
import {
  type Answer,
  inDatabase,
  onOneService,
  onService,
  type RequestOptions,
  sendRequest,
  TestService,
  testPublicUrl
} from "../../harness/TestService.ts"
import { expectFailure } from "./Refusals.ts"

/** A new key of the first organization: its bucket is full. */
const newKey = (permissions: ReadonlyArray<Grant> = ["*", "webhook-endpoints:*"]) =>
  Effect.flatMap(TestService, ({ makeKey, organization }) => makeKey(organization.id, permissions))

/** The cookie of a new session of the first organization's owner. */
const newSession = Effect.gen(function* () {
  const { organization, services, sql } = yield* TestService
  const [owner] = yield* sql<{ id: string }>`
    SELECT person_id AS id FROM payments.memberships WHERE organization_id = ${organization.id}`
  const { token } = yield* Context.get(services, Sessions).create(owner?.id ?? "", null)
  return `__Host-svc_session=${Redacted.value(token)}`
}).pipe(Effect.orDie)

const listEndpoints = (options: RequestOptions) =>
  Effect.flatMap(TestService, ({ organization, request }) =>
    request("GET", `/v2/organizations/${organization.id}/integrations/endpoints`, options)
  )

/** Leaves so many tokens in every bucket of this kind: of each credential, or of each organization. */
const leave = (tokens: number, of: "credential" | "organization" = "credential") =>
  inDatabase`
    UPDATE payments.rate_limits SET tokens = ${tokens}, refilled_at = clock_timestamp()
    WHERE starts_with(bucket, 'organization:') = ${of === "organization"}`

const passSeconds = (seconds: number) =>
  Effect.flatMap(TestService, ({ passTime }) => passTime(Duration.seconds(seconds)))

/** What is left in the bucket of the service's organization. */
const organizationTokens = Effect.gen(function* () {
  const { organization, sql } = yield* TestService
  const [bucket] = yield* sql<{ tokens: number }>`
    SELECT tokens FROM payments.rate_limits WHERE bucket = ${`organization:${organization.id}`}`
  return bucket?.tokens
})

/** As many processes as that on one database; each effect is a request with the key to one of them. */
const processesOf = Effect.fnUntraced(function* (key: string, count: number) {
  const { clock, services } = yield* TestService
  const keys = Context.get(services, Keys)
  const presented = presentedKey(key)
  const limits = { rateLimitPerMinute: 600, failedAuthenticationsPerMinute: 5, trustedProxies: new BlockList() }
  const start = Effect.provide(Layer.build(RequestAdmission.layer(limits)), services)
  const processes = yield* Effect.replicateEffect(Effect.map(start, Context.get(RequestAdmission)), count)
  const request = HttpServerRequest.fromWeb(new Request("http://service.example/"))
  return processes.map(({ admit, policies }) =>
    admit(
      "key",
      (tokens) => keys.admit(presented, policies, tokens),
      () => new ApiKeyInvalid(),
      keys.exists(presented)
    ).pipe(Effect.withClock(clock), Effect.provideService(HttpServerRequest.HttpServerRequest, request))
  )
})

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

const onLimited = onOneService({ ...api, rateLimitPerMinute: 600 })

onLimited("the request rate of a credential", (it) => {
  it.effect("is 600 per minute: what is left of them passes at once, and ten a second after it", function* () {
    const options = { key: yield* newKey() }
    expect(limitsOf(yield* listEndpoints(options))).toEqual({ limit: "600", remaining: "599", reset: "1" })
    yield* leave(100)
    const startedAt = Date.now()
    const answers = yield* many(200, options)
    const seconds = (Date.now() - startedAt) / 1000
    const passed = withStatus(answers, 200).length
    expect(passed).toBeGreaterThanOrEqual(100)
    expect(passed).toBeLessThanOrEqual(100 + Math.ceil(10 * seconds))
    expect(passed + withStatus(answers, 429).length).toBe(200)
    yield* leave(0)
    yield* passSeconds(3)
    const laterAt = Date.now()
    const later = withStatus(yield* many(50, options), 200).length
    expect(later).toBeGreaterThanOrEqual(30)
    expect(later).toBeLessThanOrEqual(30 + Math.ceil((Date.now() - laterAt) / 100) + 10)
  })

  it.effect("is refused above it with rate_limit_exceeded and after how many seconds to come again", function* () {
    const options = { key: yield* newKey() }
    yield* listEndpoints(options)
    yield* leave(-5)
    const refused = yield* listEndpoints(options)
    expectFailure(refused, { status: 429, code: "rate_limit_exceeded", fields: [] })
    expect(refused.headers.get("retry-after")).toBe("1")
    expect(limitsOf(refused)).toEqual({ limit: "600", remaining: "0", reset: "61" })
    yield* passSeconds(1)
    expect((yield* listEndpoints(options)).status).toBe(200)
  })

  it.effect("is not lowered by what is refused", function* () {
    const options = { key: yield* newKey() }
    yield* listEndpoints(options)
    yield* leave(-600)
    expect(withStatus(yield* many(50, options), 429)).toHaveLength(50)
    yield* leave(-600)
    yield* passSeconds(60.5)
    expect((yield* listEndpoints(options)).status).toBe(200)
  })

  it.effect("is one key's own: another key of the organization does not share it, nor does a session", function* () {
    const [one, other] = [{ key: yield* newKey() }, { key: yield* newKey() }]
    const [here, there] = [{ headers: { cookie: yield* newSession } }, { headers: { cookie: yield* newSession } }]
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

  it.scoped("is told with every answer of an authenticated request, whatever it is", function* () {
    const { clock, organization, request, stranger } = yield* TestService
    const key = yield* newKey()
    const poor = yield* newKey(["products:read"])
    const live = organization.liveKey
    const mcpHeaders = { accept: "application/json, text/event-stream" }
    const cookie = yield* newSession
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
      [404, "GET", `${base}/integrations/deliveries/${randomUUID()}`, { key }],
      [409, "POST", `${base}/provider/products`, { key: live, headers: write.headers, body: { name: "Tea" } }],
      [200, "POST", "/mcp", { key, headers: mcpHeaders, body: { jsonrpc: "2.0", id: 1, method: "tools/list" } }],
      [422, "POST", "/mcp", { key, headers: mcpHeaders, body: [] }],
      [200, "GET", "/identity/session", { headers: { cookie } }],
      [404, "DELETE", `/identity/api-keys/${randomUUID()}`, { headers: { cookie, origin: testPublicUrl } }],
      [403, "POST", "/identity/api-keys", { headers: { cookie }, body: {} }],
      [403, "GET", endpoints.replace(organization.id, stranger.id), { key }],
      [422, "GET", endpoints.replace(organization.id, "no-uuid"), { key }]
    ]
    // However long an answer takes, its token has not come back when it is told
    yield* Effect.acquireRelease(
      Effect.sync(() => clock.hold(true)),
      () => Effect.sync(() => clock.hold(false))
    )
    for (const [status, method, path, options] of answers) {
      const answer = yield* request(method, path, options)
      const what = `${method} ${path} ${answer.text}`
      expect(answer.status, what).toBe(status)
      expect(answer.headers.get("ratelimit-limit"), what).toBe("600")
      expect(Number(answer.headers.get("ratelimit-remaining")), what).toBeGreaterThan(500)
      expect(Number(answer.headers.get("ratelimit-reset")), what).toBeGreaterThan(0)
    }
  })

  it.effect("is counted for what is refused after the key was known, too", function* () {
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

  it.effect("is none of what needs no credential", function* () {
    for (const path of ["/health/live", "/openapi.json", "/nowhere"]) {
      expect(limitsOf(yield* sendRequest("GET", path))).toEqual({ limit: null, remaining: null, reset: null })
    }
  })
})

const guess = (headers: Readonly<Record<string, string>> = {}) =>
  listEndpoints({ key: `pk_test_${randomUUID()}`, headers })

/** Begins each test with a clean record of failures. */
const forgetFailures = passSeconds(60)

const invalid = { status: 401, code: "api_key_invalid" }
const slowedDown = { status: 429, code: "rate_limit_exceeded" }

onService(api)("failed authentications", (it) => {
  it.effect("are limited per address, while a good key from there still passes", function* () {
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

  it.effect("of sessions count with those of keys", function* () {
    yield* forgetFailures
    for (let n = 0; n < 5; n++) {
      const cookie = `__Host-svc_session=${"A".repeat(42)}${n}`
      expectFailure(yield* listEndpoints({ headers: { cookie } }), { status: 401, code: "session_invalid" })
    }
    expectFailure(yield* guess(), slowedDown)
  })

  it.effect("are not those without a credential, or with one that may not do this", function* () {
    const key = yield* newKey(["products:read"])
    yield* forgetFailures
    for (let n = 0; n < 8; n++) {
      expectFailure(yield* listEndpoints({}), { status: 401, code: "authentication_required" })
      expect((yield* listEndpoints({ key })).status).toBe(403)
    }
    expectFailure(yield* guess(), invalid)
  })

  it.effect("are not hidden by a header that says another address", function* () {
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
})

onLimited("the request rate of an organization", (it) => {
  /** What a process took ahead of need is gone after a second. */
  const empty = Effect.zipRight(passSeconds(2), leave(-2000, "organization"))

  it.effect("is that of ten keys, and refuses whichever credential comes next, saying whose limit it is", function* () {
    const { stranger } = yield* TestService
    const [one, other] = [{ key: yield* newKey() }, { key: yield* newKey() }]
    expect((yield* listEndpoints(one)).headers.get("ratelimit-scope")).toBe("credential")
    yield* empty
    for (const options of [one, other]) {
      const refused = yield* listEndpoints(options)
      expectFailure(refused, { status: 429, code: "rate_limit_exceeded", fields: [] })
      expect(refused.json["error"]).toContain("All keys and sessions of this organization together")
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(9)
      expect(refused.headers.get("ratelimit-scope")).toBe("organization")
      expect(limitsOf(refused)).toMatchObject({ limit: "6000", remaining: "0" })
      expect(Number(refused.headers.get("ratelimit-reset"))).toBeGreaterThan(60)
    }
    const there = yield* Effect.flatMap(TestService, ({ request }) =>
      request("GET", `/v2/organizations/${stranger.id}/integrations/endpoints`, { key: stranger.testKey })
    )
    expect(there.status).toBe(200)
    yield* passSeconds(30)
    expect((yield* listEndpoints(other)).status).toBe(200)
  })

  it.effect("is told in place of the credential's own where less of it is left", function* () {
    const options = { key: yield* newKey() }
    yield* listEndpoints(options)
    yield* passSeconds(2)
    yield* leave(100, "organization")
    const answer = yield* listEndpoints(options)
    expect(answer.status).toBe(200)
    expect(answer.headers.get("ratelimit-scope")).toBe("organization")
    expect(limitsOf(answer)).toMatchObject({ limit: "6000" })
    // 100 of them come back each second; the credential itself has 599 left
    expect(Number(answer.headers.get("ratelimit-remaining"))).toBeLessThan(599)
  })

  it.scoped("is not used up by what several processes take ahead of a few requests and do not use", function* () {
    const processes = yield* processesOf(yield* newKey(), 4)
    yield* leave(6000, "organization")
    for (let n = 0; n < 100; n++) {
      yield* Effect.all(processes, { discard: true })
      yield* passSeconds(1.1)
    }
    // Not four a second were sent, of a hundred that come back
    expect(yield* organizationTokens).toBeGreaterThan(5000)
  })

  it.scoped(
    "is not used up by what many processes take ahead for a credential that sends more than its own",
    function* () {
      const processes = yield* processesOf(yield* newKey(), 16)
      const passed = yield* Ref.make(0)
      const send = (admit: (typeof processes)[number]) =>
        Effect.ignore(
          Effect.zipRight(
            admit,
            Ref.update(passed, (count) => count + 1)
          )
        )
      yield* Effect.forEach(processes, send)
      yield* leave(0)
      yield* leave(6000, "organization")
      for (let n = 0; n < 100; n++) {
        // Ten a second pass, each in another process
        yield* passSeconds(0.1)
        const first = n % processes.length
        yield* Effect.forEach([...processes.slice(first), ...processes.slice(0, first)], send)
      }
      expect(yield* passed).toBeGreaterThan(66)
      // Of a hundred a second that come back
      expect(yield* organizationTokens).toBeGreaterThan(5500)
    }
  )

  it.effect("is not used up by what a credential sends beyond its own", function* () {
    const options = { key: yield* newKey() }
    yield* listEndpoints(options)
    yield* passSeconds(2)
    yield* leave(-100)
    yield* leave(3000, "organization")
    expect(withStatus(yield* many(100, options), 429)).toHaveLength(100)
    expect(yield* organizationTokens).toBeGreaterThanOrEqual(3000)
  })
})

/** Statements on credentials and limits that are sent while an effect runs, its clock held. */
const statementsDuring = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const { clock, sql } = yield* TestService
    // Other suites of this test worker have services of their own, which clean up now and then
    const [own] = yield* sql<{ name: string }>`SELECT current_database() AS name`
    return yield* Effect.acquireUseRelease(
      Effect.sync(() => {
        clock.hold(true)
        return vi.spyOn(pg.Client.prototype, "query")
      }),
      (spy) =>
        Effect.map(effect, (answer) => ({
          answer,
          sent: spy.mock.calls
            .filter((_, index) => Object(spy.mock.contexts[index]).database === own?.name)
            .map(([query]: ReadonlyArray<unknown>) => String(Predicate.hasProperty(query, "text") ? query.text : query))
            // Also those are no request's that write times of use every half minute
            .filter(
              (text) => /payments\.(rate_limits|api_keys|sessions)/.test(text) && !text.includes("SET last_used_at")
            )
        })),
      (spy) =>
        Effect.sync(() => {
          spy.mockRestore()
          clock.hold(false)
        })
    )
  })

onLimited("the tokens of a busy key", (it) => {
  it.effect("are taken several at a time: most of its requests send no statement, and each counts", function* () {
    const options = { key: yield* newKey() }
    const startedAt = performance.now()
    const { answer, sent } = yield* statementsDuring(
      Effect.forEach(Array.from({ length: 100 }), () => listEndpoints(options))
    )
    const seconds = (performance.now() - startedAt) / 1000
    expect(withStatus(answer, 200)).toHaveLength(100)
    expect(sent.length).toBeLessThan(15)
    const remaining = answer.map((each) => Number(limitsOf(each).remaining))
    expect(remaining[0]).toBe(599)
    const before = Number(remaining.at(-2))
    const last = Number(remaining.at(-1))
    expect([before, before - 1]).toContain(last)
    // Ten a second come back meanwhile
    expect(last).toBeLessThanOrEqual(500 + Math.ceil(10 * seconds))
    expect(last).toBeGreaterThanOrEqual(500)
  })

  it.effect("are put back unless they are used within a second", function* () {
    const options = { key: yield* newKey() }
    yield* statementsDuring(Effect.forEach(Array.from({ length: 40 }), () => listEndpoints(options)))
    yield* passSeconds(1.5)
    expect(Number(limitsOf(yield* listEndpoints(options)).remaining)).toBeGreaterThanOrEqual(600 - 41 + 15)
  })

  it.scoped("are never more than the limit over two processes, and at most a few fewer", function* () {
    const processes = yield* processesOf(yield* newKey(), 2)
    const startedAt = performance.now()
    const answers = yield* Effect.forEach(
      Array.from({ length: 400 }, () => processes).flat(),
      (admit) =>
        Effect.match(admit, {
          onFailure: ({ _tag }) => _tag,
          onSuccess: () => "passed"
        }),
      { concurrency: 64 }
    )
    const seconds = (performance.now() - startedAt) / 1000
    const passed = answers.filter((answer) => answer === "passed").length
    expect(passed + answers.filter((answer) => answer === "RateLimitExceeded").length).toBe(800)
    expect(passed).toBeGreaterThanOrEqual(600 - 2 * 20)
    expect(passed).toBeLessThanOrEqual(600 + Math.ceil(10 * seconds))
  })
})

onLimited("a refusal", (it) => {
  it.effect("of a key at its limit asks the database once, and not again before a token can be there", function* () {
    const options = { key: yield* newKey() }
    yield* listEndpoints(options)
    yield* leave(-600)
    const { answer: first } = yield* statementsDuring(listEndpoints(options))
    expect(first.status).toBe(429)
    const { clock } = yield* TestService
    clock.hold(true)
    expect((yield* listEndpoints(options)).status).toBe(429)
    const { answer, sent } = yield* statementsDuring(many(100, options))
    expect(withStatus(answer, 429)).toHaveLength(100)
    for (const refused of answer) {
      expect(limitsOf(refused)).toMatchObject({ limit: "600", remaining: "0" })
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1)
    }
    expect(sent).toEqual([])
    yield* passSeconds(61)
    expect((yield* listEndpoints(options)).status).toBe(200)
  })

  it.effect("of a made-up credential asks the database once, however often it is sent", function* () {
    const { clock } = yield* TestService
    const key = `pk_test_${randomUUID()}`
    for (const options of [{ key }, { headers: { cookie: `__Host-svc_session=${"B".repeat(43)}` } }]) {
      yield* passSeconds(60)
      clock.hold(true)
      expect((yield* listEndpoints(options)).status).toBe(401)
      const { answer, sent } = yield* statementsDuring(many(100, options))
      expect(answer.filter(({ status }) => status === 401 || status === 429)).toHaveLength(100)
      // Counted against the address all the same
      expect(withStatus(answer, 429).length).toBeGreaterThanOrEqual(95)
      expect(sent).toEqual([])
    }
  })

  it.effect("of ever other made-up keys looks them up, and counts none beyond the address's limit", function* () {
    yield* passSeconds(60)
    for (let n = 0; n < 6; n++) yield* guess()
    const { answer, sent } = yield* statementsDuring(
      Effect.all(
        Array.from({ length: 40 }, () => guess()),
        { concurrency: 20 }
      )
    )
    expect(withStatus(answer, 429)).toHaveLength(40)
    expect(sent.filter((text) => !text.includes("api_keys"))).toEqual([])
    // Several in one statement
    expect(sent.length).toBeGreaterThan(0)
    expect(sent.length).toBeLessThanOrEqual(40)
  })

  it.effect("is remembered no longer than a second: revocation and new keys take effect", function* () {
    const { organization, services, sql } = yield* TestService
    const key = yield* newKey()
    const options = { key }
    yield* passSeconds(60)
    expect((yield* listEndpoints(options)).status).toBe(200)
    const [record] = yield* sql<{ id: string }>`
        SELECT id FROM payments.api_keys WHERE organization_id = ${organization.id} AND last_four = ${key.slice(-4)}`
    yield* leave(-600)
    expect((yield* listEndpoints(options)).status).toBe(429)
    yield* leave(5)
    const tenant = { organizationId: organization.id, environment: "sandbox" } as const
    const author = { kind: "operator", id: "test" } as const
    yield* Effect.orDie(Context.get(services, Keys).revoke(tenant, record?.id ?? "", author))
    yield* passSeconds(1)
    expect((yield* listEndpoints(options)).status).toBe(401)
    // A key that was brought from elsewhere after somebody had tried it
    const migrated = `sk_other_${randomUUID()}`
    expect((yield* listEndpoints({ key: migrated })).status).toBe(401)
    yield* sql`
        UPDATE payments.api_keys SET revoked_at = NULL, key_hash = sha256(${migrated}::text::bytea), key_prefix = 'sk_other_'
        WHERE organization_id = ${organization.id} AND id = ${record?.id ?? ""}`
    yield* passSeconds(1)
    expect((yield* listEndpoints({ key: migrated })).status).toBe(200)
  })
})

onService({ ...api, failedAuthenticationsPerMinute: 3 })("an address without a credential", (it) => {
  const bodies: ReadonlyArray<RequestOptions> = [
    { body: {} },
    { raw: "{", headers: { "content-type": "application/json" } },
    { raw: "a", headers: { "content-type": "text/plain" } },
    { body: { email: "a".repeat(300_000) } }
  ]

  it.effect("is refused beyond its limit before its body is looked at", function* () {
    for (const [path, limit] of [
      ["/identity/sign-in-links", 3],
      ["/identity/session", 12],
      ["/identity/invitation", 12]
    ] as const) {
      yield* passSeconds(60)
      for (let n = 0; n < limit; n++) {
        expect((yield* sendRequest("POST", path, { body: {} })).status, path).toBe(422)
      }
      for (const options of bodies) {
        const refused = yield* sendRequest("POST", path, options)
        expectFailure(refused, { status: 429, code: "rate_limit_exceeded", fields: [] }, path)
        expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1)
      }
    }
  })
})

onService(api)("readiness", (it) => {
  it.effect("does not wait behind requests for the pool's connections", function* () {
    const { request, sql } = yield* TestService
    const busy = yield* Effect.forkAll(Array.from({ length: 10 }, () => sql`SELECT pg_sleep(4)`))
    const answers = yield* Effect.all(
      Array.from({ length: 20 }, () => request("GET", "/health/ready")),
      { concurrency: "unbounded" }
    )
    expect(withStatus(answers, 200)).toHaveLength(20)
    yield* Fiber.interrupt(busy)
  })
})

const loopback = new BlockList()
loopback.addAddress("127.0.0.1", "ipv4")
loopback.addSubnet("10.0.0.0", 8, "ipv4")

onService({ ...api, trustedProxies: loopback })("failed authentications behind a trusted proxy", (it) => {
  it.effect("are each client's own", function* () {
    yield* forgetFailures
    for (let n = 0; n < 5; n++) yield* guess({ "x-forwarded-for": "203.0.113.1" })
    expectFailure(yield* guess({ "x-forwarded-for": "203.0.113.1" }), slowedDown)
    expectFailure(yield* guess({ "x-forwarded-for": "203.0.113.2" }), invalid)
    expectFailure(yield* guess({ "x-forwarded-for": "203.0.113.1, 10.1.2.3" }), slowedDown)
  })

  it.effect("are not hidden by what the client itself writes into the header", function* () {
    yield* forgetFailures
    for (let n = 0; n < 5; n++) yield* guess({ "x-forwarded-for": `198.51.100.${n}, 10.0.0.${n}, 203.0.113.1` })
    expectFailure(yield* guess({ "x-forwarded-for": "127.0.0.1, 203.0.113.1" }), slowedDown)
    expectFailure(yield* guess({ "x-forwarded-for": ",,, 203.0.113.1" }), slowedDown)
  })
})
