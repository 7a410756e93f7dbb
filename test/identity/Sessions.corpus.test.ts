import { expect } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Option } from "effect"
import { permissionsOf } from "../../src/identity/keys/GrantPolicy.ts"
import type { Role } from "../../src/identity/Principal.ts"
import { type Operation, operationKey } from "../../src/surface/contract/Operations.ts"
import { someOf } from "../harness/Corpus.ts"
import { eventually } from "../harness/Eventually.ts"
import {
  cookieOf,
  hashOf,
  newEmail,
  onServiceWithMail,
  onSharedServiceWithMail,
  type Person,
  signIn,
  signInMember,
  signInOwner
} from "../harness/SignIn.ts"
import { inDatabase, sendRequest, TestService, testPublicUrl } from "../harness/TestService.ts"
import { expectFailure } from "../surface/http/Refusals.ts"
import {
  attemptsThatChangeNothing,
  authenticatedOperations,
  changesNothing,
  makeThings,
  optionsOf,
  pathOf,
  restore,
  type Things
} from "../surface/http/Samples.ts"

/** Signed-in members of the suite's organization, in every workspace unless they say otherwise, and what it has. */
class Fixture extends Context.Tag("test/Sessions/Fixture")<
  Fixture,
  { readonly people: Readonly<Record<Role, Person>>; readonly things: Things }
>() {
  static readonly layer = Layer.effect(
    Fixture,
    Effect.gen(function* () {
      const service = yield* TestService
      const { id, testKey: key } = service.organization
      return {
        things: yield* makeThings(service, { organizationId: id, key }),
        people: {
          owner: yield* signInMember(id, "owner"),
          admin: yield* signInMember(id, "admin"),
          developer: yield* signInMember(id, "developer", ["sandbox", "production"]),
          viewer: yield* signInMember(id, "viewer", ["sandbox", "production"])
        }
      }
    }).pipe(Effect.orDie)
  )
}

const endpointsOf = (organizationId: string) => `/v2/organizations/${organizationId}/integrations/endpoints`
const invalid = { status: 401, code: "session_invalid", fields: [] }
const untrusted = { status: 403, code: "origin_not_trusted", fields: [] }
const workspace = { status: 403, code: "workspace_access_required", fields: [] }
const foreign = { status: 403, code: "organization_access_denied", fields: [] }

onSharedServiceWithMail("a session", (it) => {
  it.layer(Fixture.layer, { timeout: "4 minutes" })("of a member", (it) => {
    for (const [turn, role] of (["owner", "admin", "developer", "viewer"] as const).entries()) {
      const isAllowed = ({ path, permission }: Operation) =>
        path.endsWith("/audit-log")
          ? role === "owner" || role === "admin"
          : role !== "viewer" || permission?.endsWith(":read") === true
      const send = (operation: Operation) =>
        Effect.gen(function* () {
          const { organization } = yield* TestService
          const { people, things } = yield* Fixture
          const path = pathOf(operation, organization.id, things)
          return yield* people[role].request(operation.method, path, optionsOf(operation, things))
        })
      const { attempt, expectNoChange } = attemptsThatChangeNothing()
      const refused = authenticatedOperations.filter((operation) => !isAllowed(operation))

      for (const operation of refused) {
        it.effect(`with the role ${role} is kept out of ${operationKey(operation.method, operation.path)}`, () =>
          attempt(function* () {
            const managesWebhooks = operation.permission?.startsWith("webhook-endpoints:") === true
            const code = managesWebhooks ? "endpoint_management_forbidden" : "permission_denied"
            expectFailure(yield* send(operation), { status: 403, code, fields: [] })
          })
        )
      }

      if (refused.length > 0) {
        it.effect(`with the role ${role} changes nothing by what it is kept out of`, () => expectNoChange)
      }

      for (const operation of someOf(authenticatedOperations, turn).filter(isAllowed)) {
        it.effect(`with the role ${role} is let into ${operationKey(operation.method, operation.path)}`, function* () {
          const { things } = yield* Fixture
          yield* restore(operation, things)
          const answer = yield* send(operation)
          expect(answer.status, answer.text).toBeLessThan(300)
        })
      }
    }

    it.effect("ends, revokes and removes nothing by a request with a body, which would be ignored", function* () {
      const { owner } = (yield* Fixture).people
      const id = "01a1fcfb-855f-758a-8a83-c113f9e1051b"
      for (const path of ["session", `members/${owner.id}`, `invitations/${id}`, `api-keys/${id}`]) {
        const answer = yield* owner.request("DELETE", `/identity/${path}`, { body: { everywhere: true } })
        expectFailure(answer, { status: 422, code: "validation_failed", fields: ["everywhere"] }, path)
      }
      expect((yield* owner.request("GET", "/identity/session")).status).toBe(200)
    })

    it.effect("changes nothing without a trusted origin, and reads without one", () =>
      changesNothing(function* () {
        const { organization, request } = yield* TestService
        const { people, things } = yield* Fixture
        const { cookie } = people.owner
        for (const [turn, operation] of authenticatedOperations.entries()) {
          const name = operationKey(operation.method, operation.path)
          const { headers, ...rest } = optionsOf(operation, things)
          const path = pathOf(operation, organization.id, things)
          const send = (origin: Readonly<Record<string, string>>) =>
            request(operation.method, path, { ...rest, headers: { ...headers, cookie, ...origin } })
          if (operation.method === "GET") {
            expect((yield* send({})).status, name).toBe(200)
            expect((yield* send({ origin: "https://evil.example" })).status, name).toBe(200)
            continue
          }
          const origins = [
            {},
            { origin: "" },
            { origin: "null" },
            { origin: "https://evil.example" },
            { origin: `${testPublicUrl}:8443` },
            { origin: `${testPublicUrl}/` },
            { referer: `${testPublicUrl}/page` }
          ]
          yield* Effect.forEach(someOf(origins, turn), (origin) =>
            Effect.map(send(origin), (answer) => expectFailure(answer, untrusted, `${name} ${JSON.stringify(origin)}`))
          )
        }
      })
    )

    it.effect("gives way to a key beside it, also to one that is not good", function* () {
      const { makeKey, organization, request } = yield* TestService
      const { people } = yield* Fixture
      const { cookie } = people.owner
      const path = endpointsOf(organization.id)
      const weak = yield* makeKey(organization.id, ["payments:read"])
      const forbidden = { status: 403, code: "endpoint_management_forbidden", fields: [] }
      expectFailure(yield* request("GET", path, { key: weak, headers: { cookie } }), forbidden)
      const bad = yield* request("GET", path, { key: `pk_test_${"A".repeat(43)}`, headers: { cookie } })
      expectFailure(bad, { status: 401, code: "api_key_invalid", fields: [] })
      const good = yield* request("GET", path, {
        key: organization.testKey,
        headers: { cookie: "__Host-svc_session=nonsense" }
      })
      expect(good.status).toBe(200)
      // A key needs no origin, and brings the environment of its own
      const body = { name: "By key", url: "https://93.184.215.14/hook", events: ["payment.succeeded"] }
      const headers = { cookie, "idempotency-key": `key-and-cookie-${Date.now()}` }
      const created = yield* request("POST", path, { key: organization.liveKey, headers, body })
      expect(created.json["environment"]).toBe("production")
    })

    it.effect("works in the selected workspace alone", function* () {
      const { organization } = yield* TestService
      const { things } = yield* Fixture
      const person = yield* signInMember(organization.id, "developer", ["sandbox", "production"])
      const path = `${endpointsOf(organization.id)}/${things.endpointId}`
      expect((yield* person.request("GET", path)).status).toBe(200)
      const body = { environment: "production" }
      const selected = yield* person.request("PUT", "/identity/session/workspace", { body })
      expect(selected.json).toMatchObject({ environment: "production", person: { id: person.id } })
      expectFailure(yield* person.request("GET", path), { status: 404, code: "resource_not_found", fields: [] })
      const product = yield* person.request("GET", `/v2/organizations/${organization.id}/provider/products`)
      expectFailure(product, { status: 409, code: "provider_account_not_connected", fields: [] })
    })

    it.effect("works nowhere where its person may not enter, and begins where they may", function* () {
      const { organization, sql } = yield* TestService
      const { things } = yield* Fixture
      for (const [turn, role] of (["developer", "viewer"] as const).entries()) {
        const nowhere = yield* signInMember(organization.id, role)
        for (const operation of someOf(authenticatedOperations, turn)) {
          const path = pathOf(operation, organization.id, things)
          const answer = yield* nowhere.request(operation.method, path, optionsOf(operation, things))
          expectFailure(answer, workspace, operationKey(operation.method, operation.path))
        }
        const inProduction = yield* signInMember(organization.id, role, ["production"])
        expect((yield* inProduction.request("GET", "/identity/session")).json).toMatchObject({
          environment: "production",
          workspaces: [{ environment: "production", permissions: [...permissionsOf(role)] }]
        })
        const back = { body: { environment: "sandbox" } }
        expectFailure(yield* inProduction.request("PUT", "/identity/session/workspace", back), workspace)
        expect((yield* inProduction.request("GET", endpointsOf(organization.id))).status).toBe(200)
        yield* sql`
            UPDATE payments.sessions SET environment = 'sandbox' WHERE token_hash = ${hashOf(inProduction)}`
        expectFailure(yield* inProduction.request("GET", endpointsOf(organization.id)), workspace)
      }
    })

    it.effect("is kept out of other organizations, existing or not", function* () {
      const { stranger } = yield* TestService
      const { people, things } = yield* Fixture
      for (const organizationId of [stranger.id, "00000000-0000-7000-8000-000000000000"]) {
        for (const operation of authenticatedOperations) {
          const path = pathOf(operation, organizationId, things)
          const answer = yield* people.owner.request(operation.method, path, optionsOf(operation, things))
          expectFailure(answer, foreign, operationKey(operation.method, operation.path))
        }
      }
      expectFailure(yield* (yield* signIn(newEmail())).request("GET", endpointsOf(stranger.id)), foreign)
    })

    it.effect("is on record as the author of what its person changes", function* () {
      const { organization, sql } = yield* TestService
      const { people } = yield* Fixture
      const answer = yield* people.developer.request("POST", endpointsOf(organization.id), {
        headers: { "idempotency-key": `author-${Date.now()}` },
        body: { name: "Mine", url: "https://93.184.215.14/hook", events: ["payment.succeeded"] }
      })
      expect(answer.status, answer.text).toBe(200)
      const records = yield* sql`
          SELECT author_kind, author_id, action FROM payments.audit_log WHERE target_id = ${String(answer.json["id"])}`
      expect(records).toEqual([{ author_kind: "person", author_id: people.developer.id, action: "endpoint.created" }])
    })
  })
})

onSharedServiceWithMail("a session lasts", (it) => {
  const shift = (person: Person, expiresIn: string) =>
    inDatabase`
      UPDATE payments.sessions SET expires_at = now() + ${expiresIn}::interval WHERE token_hash = ${hashOf(person)}`
  const hoursLeft = (person: Person) =>
    Effect.map(
      inDatabase<{ hours: number }>`
        SELECT extract(epoch FROM expires_at - now())::float8 / 3600 AS hours
        FROM payments.sessions WHERE token_hash = ${hashOf(person)}`,
      ([row]) => row?.hours ?? 0
    )

  it.effect("12 hours from its last request, and its cookie with it", function* () {
    const owner = yield* signInOwner
    expect(yield* hoursLeft(owner)).toBeCloseTo(12, 1)
    for (const path of ["/identity/session", endpointsOf(owner.organizationId)]) {
      yield* shift(owner, "1 hour")
      const answer = yield* owner.request("GET", path)
      expect(answer.status).toBe(200)
      expect(cookieOf(answer)).toBe(owner.cookie)
      expect(answer.headers.getSetCookie()[0]).toMatch(/Max-Age=43200; Path=\/; HttpOnly; Secure; SameSite=Lax/)
      expect(yield* hoursLeft(owner)).toBeCloseTo(12, 1)
      expect((yield* owner.request("GET", path)).headers.getSetCookie()).toEqual([])
    }
    yield* shift(owner, "1 hour")
    const { json } = yield* owner.request("GET", "/identity/session")
    expect((Date.parse(String(json["expiresAt"])) - Date.now()) / 3_600_000).toBeCloseTo(12, 1)
  })

  it.effect("30 days at most, however much it is used", function* () {
    const { request, sql } = yield* TestService
    const owner = yield* signInOwner
    const began = (days: string) => sql`
        UPDATE payments.sessions SET created_at = now() - ${days}::interval WHERE token_hash = ${hashOf(owner)}`
    yield* began("29 days 23 hours")
    const { json } = yield* owner.request("GET", "/identity/session")
    expect((Date.parse(String(json["expiresAt"])) - Date.now()) / 3_600_000).toBeCloseTo(1, 1)
    yield* began("30 days")
    // As a process of the version before would have extended it
    yield* shift(owner, "12 hours")
    for (const path of ["/identity/session", endpointsOf(owner.organizationId)]) {
      expectFailure(yield* request("GET", path, { headers: { cookie: owner.cookie } }), invalid, path)
    }
  })

  it.effect("no longer: an expired, unknown or malformed one is refused everywhere alike", function* () {
    const owner = yield* signInOwner
    yield* shift(owner, "-1 second")
    const cookies = [
      owner.cookie,
      `__Host-svc_session=${"A".repeat(43)}`,
      "__Host-svc_session=nonsense",
      "__Host-svc_session='--"
    ]
    for (const cookie of cookies) {
      for (const path of ["/identity/session", "/identity/api-keys", endpointsOf(owner.organizationId)]) {
        const answer = yield* sendRequest("GET", path, { headers: { cookie } })
        expectFailure(answer, invalid, `${cookie} ${path}`)
        expect(answer.headers.getSetCookie()).toEqual([])
      }
    }
  })

  it.effect("is not chosen from two cookies, whichever comes first and whatever the request is", function* () {
    const [one, other] = [yield* signInOwner, yield* signInOwner]
    const both = [
      `${one.cookie}; ${other.cookie}`,
      `${other.cookie}; theme=dark; ${one.cookie}`,
      `${one.cookie};${one.cookie}`,
      `${one.cookie}; __Host-svc_session=nonsense`,
      `__Host-svc_session=; ${one.cookie}`,
      `__Host-svc_session =${other.cookie.split("=")[1]}; ${one.cookie}`
    ]
    const requests = [
      ["GET", "/identity/session"],
      ["PUT", "/identity/session/workspace"],
      ["DELETE", "/identity/sessions"],
      ["POST", "/identity/account/oauth"],
      ["GET", endpointsOf(one.organizationId)],
      ["POST", endpointsOf(one.organizationId)]
    ] as const
    for (const cookie of both) {
      for (const [method, path] of requests) {
        const answer = yield* sendRequest(method, path, { headers: { cookie, origin: testPublicUrl } })
        expectFailure(answer, invalid, `${cookie} ${method} ${path}`)
        expect(answer.json["error"]).toContain("more than one cookie")
      }
    }
    // Others' cookies are none of it, with names that are nearly the same
    const cookie = `svc_session=${"A".repeat(43)}; __host-svc_session=${"A".repeat(43)}; ${one.cookie}; x__Host-svc_session=1`
    const answer = yield* sendRequest("GET", "/identity/session", { headers: { cookie } })
    expect(answer.json).toMatchObject({ person: { email: one.email } })
  })

  it.effect("no longer once it was ended, not even by a request that was under way", function* () {
    const { sql } = yield* TestService
    const owner = yield* signInOwner
    // So that the request extends it
    yield* shift(owner, "1 hour")
    const [ended, commits] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    const ending = yield* Effect.fork(
      sql.withTransaction(
        Effect.zipRight(
          Effect.zipRight(shift(owner, "-1 second"), Deferred.succeed(ended, undefined)),
          Deferred.await(commits)
        )
      )
    )
    yield* Deferred.await(ended)
    const underWay = yield* Effect.fork(owner.request("GET", "/identity/session"))
    yield* eventually(
      "a request that waits for the session",
      Effect.map(
        sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        (rows) => (rows.length > 0 ? Option.some(true) : Option.none())
      )
    )
    yield* Deferred.succeed(commits, undefined)
    yield* Fiber.join(ending)
    yield* Fiber.join(underWay)
    expectFailure(yield* owner.request("GET", "/identity/session"), invalid)
  })

  it.effect("until its person signs out: its row and its cookie go, others of theirs stay", function* () {
    const { request, sql } = yield* TestService
    const email = newEmail()
    const first = yield* signIn(email)
    const second = yield* signIn(email)
    expect(first.id).toBe(second.id)
    // Also where the same request would have extended it
    yield* shift(first, "1 hour")
    const answer = yield* first.request("DELETE", "/identity/session")
    expect([answer.status, answer.text]).toEqual([204, ""])
    const cookies = answer.headers.getSetCookie()
    expect(cookies).toHaveLength(1)
    expect(cookies[0]).toMatch(/^__Host-svc_session=; Max-Age=0; Path=\/; HttpOnly; Secure; SameSite=Lax$/)
    expect(yield* sql`SELECT 1 FROM payments.sessions WHERE token_hash = ${hashOf(first)}`).toEqual([])
    expectFailure(yield* first.request("GET", "/identity/session"), invalid)
    expectFailure(yield* first.request("DELETE", "/identity/session"), invalid)
    expect((yield* second.request("GET", "/identity/session")).status).toBe(200)
    const headers = { cookie: second.cookie }
    expectFailure(yield* request("DELETE", "/identity/session", { headers }), untrusted)
    expectFailure(yield* request("DELETE", "/identity/session"), {
      status: 401,
      code: "authentication_required",
      fields: []
    })
  })

  it.effect("in a workspace that exists, and refuses bad input", function* () {
    const owner = yield* signInOwner
    const path = "/identity/session/workspace"
    for (const body of [{ environment: "test" }, { environment: null }, {}]) {
      const answer = yield* owner.request("PUT", path, { body })
      expectFailure(answer, { status: 422, code: "validation_failed", fields: ["environment"] })
    }
    const extra = yield* owner.request("PUT", path, { body: { environment: "production", role: "owner" } })
    expectFailure(extra, { status: 422, code: "validation_failed", fields: ["role"] })
    const query = yield* owner.request("GET", "/identity/session?verbose=1")
    expectFailure(query, { status: 422, code: "validation_failed", fields: ["verbose"] })
    const nobody = yield* signIn(newEmail())
    expectFailure(yield* nobody.request("PUT", path, { body: { environment: "sandbox" } }), workspace)
    expectFailure(yield* owner.request("PUT", path), { status: 422, code: "validation_failed" })
  })
})

onServiceWithMail({ rateLimitPerMinute: 30 })("a session's requests", (it) => {
  it.effect("are counted for it alone, under /identity and /v2 together, with the documented headers", function* () {
    const owner = yield* signInOwner
    const other = yield* signInOwner
    let refused = yield* owner.request("GET", "/identity/session")
    expect(refused.headers.get("ratelimit-limit")).toBe("30")
    for (let n = 0; n < 40 && refused.status === 200; n++) {
      refused = yield* owner.request("GET", n % 2 === 0 ? "/identity/members" : endpointsOf(owner.organizationId))
    }
    expectFailure(refused, { status: 429, code: "rate_limit_exceeded", fields: [] })
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1)
    expect(refused.headers.get("ratelimit-remaining")).toBe("0")
    expect((yield* other.request("GET", "/identity/session")).status).toBe(200)
  })
})
