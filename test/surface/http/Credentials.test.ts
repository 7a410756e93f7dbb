import { randomBytes } from "node:crypto"
import { expect } from "@effect/vitest"
import { Context, Effect, Either, FastCheck } from "effect"
import { credentialPolicies } from "../../../src/identity/keys/CredentialLimitsStatements.ts"
import { Keys, presentedKey } from "../../../src/identity/keys/Keys.ts"
import { recordedQueries } from "../../harness/TestDatabase.ts"
import { onSharedService, type RequestOptions, TestService } from "../../harness/TestService.ts"
import { expectFailure, sendBytes } from "./Refusals.ts"

const authenticationRequired = { status: 401, code: "authentication_required", fields: [] }
const keyInvalid = { status: 401, code: "api_key_invalid", fields: [] }
const sessionInvalid = { status: 401, code: "session_invalid", fields: [] }
const tooLarge = { status: 431, code: "headers_too_large" }
const notHttp = { status: 422, code: "validation_failed", fields: [] }

const list = (options: RequestOptions, query = "") =>
  Effect.flatMap(TestService, ({ organization, request }) =>
    request("GET", `/v2/organizations/${organization.id}/integrations/endpoints${query}`, options)
  )

/** A request whose header lines are sent byte for byte. */
const raw = (...lines: ReadonlyArray<string | Buffer>) =>
  Effect.flatMap(TestService, ({ baseUrl, organization }) => {
    const head = [
      `GET /v2/organizations/${organization.id}/integrations/endpoints HTTP/1.1`,
      "host: payments.example",
      "connection: close",
      ...lines,
      "",
      ""
    ].flatMap((line, index) => [...(index === 0 ? [] : [Buffer.from("\r\n")]), Buffer.from(line)])
    return sendBytes(baseUrl, Buffer.concat(head))
  })

const testKey = Effect.map(TestService, ({ organization }) => organization.testKey)

onSharedService("a credential", (it) => {
  it.effect("is the key in x-api-key, in whatever case the header's name is written", function* () {
    const key = yield* testKey
    for (const name of ["x-api-key", "X-API-Key", "X-Api-Key", "x-API-kEY"]) {
      expect((yield* raw(`${name}: ${key}`)).status, name).toBe(200)
    }
    expect((yield* raw(`x-api-key:   ${key}\t `)).status, "blanks around a header's value are none of it").toBe(200)
  })

  it.effect("is not taken from another place", function* () {
    const key = yield* testKey
    const places = [
      `authorization: Bearer ${key}`,
      `authorization: ${key}`,
      `authorization: Basic ${Buffer.from(`${key}:`).toString("base64")}`,
      `proxy-authorization: Bearer ${key}`,
      `api-key: ${key}`,
      `x_api_key: ${key}`,
      `x-apikey: ${key}`,
      `x-auth-token: ${key}`,
      `cookie: x-api-key=${key}; api_key=${key}`,
      `referer: https://payments.example/?x-api-key=${key}`
    ]
    for (const line of places) expectFailure(yield* raw(line), authenticationRequired, line.slice(0, 20))
    for (const name of ["x-api-key", "api_key", "apiKey", "key", "access_token"]) {
      const answer = yield* list({}, `?${name}=${key}`)
      expectFailure(answer, authenticationRequired, name)
      expect(answer.text).not.toContain(key)
    }
    expectFailure(yield* raw(`cookie: __Host-svc_session=${key}`), sessionInvalid)
  })

  it.effect("is none where it is empty", function* () {
    expectFailure(yield* raw("x-api-key:"), authenticationRequired)
    expectFailure(yield* raw("x-api-key:    "), authenticationRequired)
    expectFailure(yield* raw("cookie: __Host-svc_session="), authenticationRequired)
  })

  it.effect("given twice, as two values, is no key, whichever comes first", function* () {
    const { organization, stranger } = yield* TestService
    const [mine, theirs] = [organization.testKey, stranger.testKey]
    expectFailure(yield* raw(`x-api-key: ${mine}`, `x-api-key: ${theirs}`), keyInvalid)
    expectFailure(yield* raw(`x-api-key: ${theirs}`, `X-API-Key: ${mine}`), keyInvalid)
    expectFailure(yield* raw(`x-api-key: ${mine}`, `x-api-key: ${mine}`), keyInvalid)
    expectFailure(yield* raw(`x-api-key: ${mine}, ${theirs}`), keyInvalid)
  })

  it.effect("that is a key decides over a cookie, also where it is wrong", function* () {
    const key = yield* testKey
    expect((yield* raw(`x-api-key: ${key}`, `cookie: __Host-svc_session=${"A".repeat(43)}`)).status).toBe(200)
    expectFailure(yield* raw("x-api-key: wrong", `cookie: __Host-svc_session=${"A".repeat(43)}`), keyInvalid)
  })

  it.effect("of 100 KB, with a NUL or another control character, is refused without a 500 or a hang", function* () {
    const key = yield* testKey
    expectFailure(yield* raw(`x-api-key: ${"a".repeat(100_000)}`), tooLarge)
    expectFailure(yield* raw(`x-api-key: ${key}`, `x-other: ${"a".repeat(100_000)}`), tooLarge)
    expectFailure(yield* raw(`cookie: __Host-svc_session=${"a".repeat(100_000)}`), tooLarge)
    expectFailure(yield* raw(`x-api-key: ${"a".repeat(10_000)}`), keyInvalid)
    expectFailure(yield* raw(`cookie: __Host-svc_session=${"a".repeat(10_000)}`), sessionInvalid)
    for (const character of ["\0", "\x01", "\x08", "\x7f", "\r"]) {
      const what = `0x${character.charCodeAt(0).toString(16)}`
      expectFailure(yield* raw(Buffer.from(`x-api-key: ${key}${character}`, "latin1")), notHttp, what)
      expectFailure(yield* raw(Buffer.from(`x-api-key: ${character}`, "latin1")), notHttp, what)
      expectFailure(yield* raw(`x-api-key: ${key}`, Buffer.from(`x-oth${character}er: 1`, "latin1")), notHttp, what)
    }
  })

  it.effect("of bytes that are no UTF-8 is an unknown one", function* () {
    const key = yield* testKey
    for (const bytes of [[0xff], [0xc3, 0x28], [0x80], [0xed, 0xa0, 0x80], [0xf0, 0x9f, 0x98]]) {
      const what = bytes.toString()
      const name = Buffer.from("x-api-key: ")
      expectFailure(yield* raw(Buffer.concat([name, Buffer.from(bytes)])), keyInvalid, what)
      expectFailure(yield* raw(Buffer.concat([name, Buffer.from(key), Buffer.from(bytes)])), keyInvalid, what)
      const cookie = Buffer.concat([Buffer.from("cookie: __Host-svc_session="), Buffer.from(bytes)])
      expectFailure(yield* raw(cookie), sessionInvalid, what)
    }
    for (const cookie of [
      "__Host-svc_session=%",
      "__Host-svc_session=%ff%fe",
      '__Host-svc_session="',
      "__Host-svc_session=%00",
      "__Host-svc_session=a=b"
    ]) {
      expectFailure(yield* raw(`cookie: ${cookie}`), sessionInvalid, cookie)
    }
    expectFailure(yield* raw("cookie: ;;;=;%;__proto__=1"), authenticationRequired)
  })

  it.effect("of any bytes at all is refused in the documented form", function* () {
    const service = yield* TestService
    const bytes = FastCheck.uint8Array({ minLength: 1, maxLength: 60 }).map((array) =>
      Buffer.from(array.filter((byte) => byte !== 10 && byte !== 13))
    )
    yield* Effect.promise(() =>
      FastCheck.assert(
        FastCheck.asyncProperty(bytes, (value) =>
          Effect.gen(function* () {
            const answer = yield* raw(Buffer.concat([Buffer.from("x-api-key: a"), value]))
            expectFailure(answer, answer.status === 401 ? keyInvalid : notHttp, value.toString("hex"))
          }).pipe(Effect.provideService(TestService, service), Effect.runPromise)
        ),
        { numRuns: 150 }
      )
    )
  })

  it.scoped("costs the same look-up and gets the same answer, be it unknown, revoked or expired", function* () {
    const { makeKey, organization, services } = yield* TestService
    const keys = Context.get(services, Keys)
    const tenant = { organizationId: organization.id, environment: "sandbox" } as const
    const revoked = yield* makeKey(organization.id, ["*"])
    const [record] = yield* keys.list(tenant)
    yield* keys.revoke(tenant, record?.id ?? "", { kind: "operator", id: "test" })
    const expired = yield* makeKey(organization.id, ["*"], { expiresAt: new Date(Date.now() - 1000) })
    const unknown = `pk_test_${randomBytes(32).toString("base64url")}`
    const policies = credentialPolicies(600)
    const query = yield* recordedQueries
    const statementsOf = (key: string) =>
      Effect.suspend(() => {
        query.mockClear()
        return Effect.either(
          keys.admit(presentedKey(key), policies, { own: 1, returned: 0, organization: 1, organizationReturned: 0 })
        )
      }).pipe(
        Effect.map((result) => ({
          // As prepared: a statement's name and text, without its values
          statements: query.mock.calls
            .map((call) => JSON.stringify(call[0], (name, value) => (name === "values" ? undefined : value)))
            .filter((text) => text.includes("payments.api_keys")),
          refused: Either.isLeft(result) ? result.left._tag : undefined
        }))
      )
    const looked = yield* Effect.forEach([unknown, revoked, expired], statementsOf)
    expect(looked[0]?.refused).toBe("ApiKeyInvalid")
    expect(looked[0]?.statements).toHaveLength(1)
    expect(looked[1]).toEqual(looked[0])
    expect(looked[2]).toEqual(looked[0])
    const answers = yield* Effect.forEach([unknown, revoked, expired], (key) => list({ key }))
    for (const answer of answers) {
      expectFailure(answer, keyInvalid)
      expect({ ...answer.json, requestId: "" }).toEqual({ ...answers[0]?.json, requestId: "" })
      expect([...answer.headers.keys()]).toEqual([...(answers[0]?.headers.keys() ?? [])])
    }
  })

  it.effect("that is revoked or has expired is refused from the next request on", function* () {
    const { makeKey, organization, services, sql } = yield* TestService
    const keys = Context.get(services, Keys)
    const tenant = { organizationId: organization.id, environment: "sandbox" } as const
    const key = yield* makeKey(organization.id, ["*", "webhook-endpoints:*"])
    const [record] = yield* keys.list(tenant)
    expect((yield* list({ key })).status).toBe(200)
    yield* keys.revoke(tenant, record?.id ?? "", { kind: "operator", id: "test" })
    expectFailure(yield* list({ key }), keyInvalid)
    const brief = yield* makeKey(organization.id, ["*", "webhook-endpoints:*"], {
      expiresAt: new Date(Date.now() + 3_600_000)
    })
    expect((yield* list({ key: brief })).status).toBe(200)
    yield* sql`UPDATE payments.api_keys SET expires_at = now() WHERE expires_at > now()`
    // A process remembers a key for a moment
    yield* Effect.repeat(list({ key: brief }), { while: ({ status }) => status === 200 })
    expectFailure(yield* list({ key: brief }), keyInvalid)
  })
})
