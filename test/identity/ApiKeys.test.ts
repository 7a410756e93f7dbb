import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { newEmail, onSharedServiceWithMail, type Person, signIn, signInMember, signInOwner } from "../harness/SignIn.ts"
import { inDatabase, sendRequest, TestService } from "../harness/TestService.ts"
import { expectFailure } from "../surface/http/Refusals.ts"

const path = "/identity/api-keys"
const denied = { status: 403, code: "permission_denied", fields: [] }
const workspace = { status: 403, code: "workspace_access_required", fields: [] }
const missing = { status: 404, code: "resource_not_found", fields: [] }

const create = (person: Person, body: Readonly<Record<string, unknown>>) => person.request("POST", path, { body })
const listed = (person: Person) =>
  Effect.map(person.request("GET", path), ({ json, status, text }) => {
    expect(status, text).toBe(200)
    return Array.from(Object(json["data"]), (key): Readonly<Record<string, unknown>> => Object(key))
  })
const select = (person: Person, environment: string) =>
  Effect.map(person.request("PUT", "/identity/session/workspace", { body: { environment } }), ({ status }) =>
    expect(status).toBe(200)
  )

const use = (organizationId: string, key: unknown) =>
  sendRequest("GET", `/v2/organizations/${organizationId}/integrations/endpoints`, { key: String(key) })

onSharedServiceWithMail("API keys", (it) => {
  it.effect("are made as test keys without a mode, shown once, and work at once", function* () {
    const owner = yield* signInOwner
    const body = { name: " Backend ", permissions: ["payments:read", "webhook-endpoints:read"] }
    const answer = yield* create(owner, body)
    expect(answer.status).toBe(201)
    const { key, ...record } = answer.json
    expect(key).toMatch(/^pk_test_[A-Za-z0-9_-]{43}$/)
    expect(record).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: "Backend",
      environment: "sandbox",
      prefix: "pk_test_",
      lastFour: String(key).slice(-4),
      permissions: body.permissions,
      createdAt: expect.stringMatching(/Z$/),
      createdBy: { kind: "person", id: owner.id },
      expiresAt: null,
      lastUsedAt: null
    })
    expect((yield* use(owner.organizationId, key)).status).toBe(200)
    expect(yield* listed(owner)).toEqual([record])
    const audit = yield* inDatabase`
      SELECT environment, author_kind, author_id, action, target_id, request_id FROM payments.audit_log
      WHERE organization_id = ${owner.organizationId} AND target_type = 'api_key'`
    expect(audit).toEqual([
      {
        environment: "sandbox",
        author_kind: "person",
        author_id: owner.id,
        action: "api_key.created",
        target_id: record["id"],
        request_id: answer.headers.get("request-id")
      }
    ])
  })

  it.effect("are made for production with mode live alone, and each environment lists its own", function* () {
    const owner = yield* signInOwner
    const permissions = ["*"]
    const test = yield* create(owner, { name: "Test", permissions, mode: "test" })
    const live = yield* create(owner, { name: "Live", permissions, mode: "live" })
    expect(live.json).toMatchObject({ environment: "production", prefix: "pk_live_" })
    expect(live.json["key"]).toMatch(/^pk_live_[A-Za-z0-9_-]{43}$/)
    expect((yield* listed(owner)).map(({ id }) => id)).toEqual([test.json["id"]])
    yield* select(owner, "production")
    expect((yield* listed(owner)).map(({ id }) => id)).toEqual([live.json["id"]])
    const third = yield* create(owner, { name: "No mode, production selected", permissions })
    expect(third.json["environment"]).toBe("sandbox")
  })

  it.effect("are revoked at once, in the selected environment and one's own organization alone", function* () {
    const owner = yield* signInOwner
    const stranger = yield* signInOwner
    const { id, key } = (yield* create(owner, { name: "Doomed", permissions: ["webhook-endpoints:*"] })).json
    expectFailure(yield* stranger.request("DELETE", `${path}/${id}`), missing)
    yield* select(owner, "production")
    expectFailure(yield* owner.request("DELETE", `${path}/${id}`), missing)
    yield* select(owner, "sandbox")
    expect((yield* use(owner.organizationId, key)).status).toBe(200)
    const revoked = yield* owner.request("DELETE", `${path}/${id}`)
    expect([revoked.status, revoked.text]).toEqual([204, ""])
    expectFailure(yield* use(owner.organizationId, key), { status: 401, code: "api_key_invalid", fields: [] })
    expect(yield* listed(owner)).toEqual([])
    expectFailure(yield* owner.request("DELETE", `${path}/${id}`), missing)
    expectFailure(yield* owner.request("DELETE", `${path}/${randomUUID()}`), missing)
    const nonsense = yield* owner.request("DELETE", `${path}/nonsense`)
    expectFailure(nonsense, { status: 422, code: "validation_failed", fields: ["id"] })
    const actions = yield* inDatabase`
      SELECT action, author_id FROM payments.audit_log WHERE target_id = ${String(id)} ORDER BY id`
    expect(actions).toEqual([
      { action: "api_key.created", author_id: owner.id },
      { action: "api_key.revoked", author_id: owner.id }
    ])
  })

  it.effect("are at most 100 of an organization, revoked ones aside, however many are made at once", function* () {
    const owner = yield* signInOwner
    yield* inDatabase`
      INSERT INTO payments.api_keys
        (id, organization_id, environment, name, key_hash, key_prefix, last_four, permissions, revoked_at)
      SELECT gen_random_uuid(), ${owner.organizationId}, CASE WHEN n % 2 = 0 THEN 'sandbox' ELSE 'production' END, 'Key',
        sha256(${randomUUID()} || n::text::bytea), CASE WHEN n % 2 = 0 THEN 'pk_test_' ELSE 'pk_live_' END, 'last',
        ARRAY['*'], CASE WHEN n > 97 THEN now() END
      FROM generate_series(1, 200) n`
    const body = { name: "One more", permissions: ["*"] }
    const answers = yield* Effect.all(
      Array.from({ length: 8 }, () => create(owner, body)),
      { concurrency: "unbounded" }
    )
    const made = answers.filter(({ status }) => status === 201)
    expect(made).toHaveLength(3)
    for (const answer of answers.filter(({ status }) => status !== 201)) {
      expectFailure(answer, { status: 409, code: "api_key_limit_reached", fields: [] })
    }
    expect((yield* owner.request("DELETE", `${path}/${made[0]?.json["id"]}`)).status).toBe(204)
    expect((yield* create(owner, body)).status).toBe(201)
    expectFailure(yield* create(owner, body), { status: 409, code: "api_key_limit_reached" })
  })

  it.effect("expire when they were told to", function* () {
    const owner = yield* signInOwner
    const expiresAt = "2099-12-31T23:30:00.000+01:00"
    const answer = yield* create(owner, { name: "Short", permissions: ["webhook-endpoints:read"], expiresAt })
    expect(answer.json["expiresAt"]).toBe("2099-12-31T22:30:00.000Z")
    expect((yield* use(owner.organizationId, answer.json["key"])).status).toBe(200)
    yield* inDatabase`
      UPDATE payments.api_keys SET expires_at = now() - interval '1 second' WHERE id = ${String(answer.json["id"])}`
    const refused = { status: 401, code: "api_key_invalid", fields: [] }
    expectFailure(yield* use(owner.organizationId, answer.json["key"]), refused)
  })

  it.effect("are managed by owners, admins and developers, in the workspaces that they may enter", function* () {
    const { organizationId, ...owner } = yield* signInOwner
    const body = { name: "Key", permissions: ["*", "webhook-endpoints:*"] }
    const live = { ...body, mode: "live" }
    const { id } = (yield* create(owner, body)).json
    expect((yield* create(yield* signInMember(organizationId, "admin"), live)).status).toBe(201)
    const developer = yield* signInMember(organizationId, "developer", ["sandbox"])
    expect((yield* create(developer, body)).status).toBe(201)
    expectFailure(yield* create(developer, live), workspace)
    expect(yield* listed(developer)).toHaveLength(2)
    const inProduction = yield* signInMember(organizationId, "developer", ["production"])
    expect((yield* create(inProduction, live)).status).toBe(201)
    expectFailure(yield* create(inProduction, body), workspace)
    expectFailure(yield* inProduction.request("DELETE", `${path}/${id}`), missing)
    const nowhere = yield* signInMember(organizationId, "developer")
    expectFailure(yield* create(nowhere, body), workspace)
    expectFailure(yield* nowhere.request("GET", path), workspace)
    expectFailure(yield* nowhere.request("DELETE", `${path}/${id}`), workspace)
    const viewer = yield* signInMember(organizationId, "viewer", ["sandbox", "production"])
    expectFailure(yield* create(viewer, { name: "Read", permissions: ["payments:read"] }), denied)
    expectFailure(yield* viewer.request("GET", path), denied)
    expectFailure(yield* viewer.request("DELETE", `${path}/${id}`), denied)
    const nobody = yield* signIn(newEmail())
    const noOrganization = { status: 403, code: "organization_access_denied", fields: [] }
    expectFailure(yield* create(nobody, body), noOrganization)
    expectFailure(yield* nobody.request("GET", path), noOrganization)
  })

  it.effect("read the audit log and customers if an owner or admin, not a developer, said so", function* () {
    const { organizationId, ...owner } = yield* signInOwner
    const admin = yield* signInMember(organizationId, "admin")
    const developer = yield* signInMember(organizationId, "developer", ["sandbox", "production"])
    const body = { name: "Auditor", permissions: ["audit-log:read"] }
    expectFailure(yield* create(developer, body), denied)
    expectFailure(yield* create(developer, { ...body, permissions: ["*", "audit-log:read"] }), denied)
    const customers = { name: "Support", permissions: ["payments:read", "customers:read"] }
    expectFailure(yield* create(developer, customers), denied)
    expect(yield* listed(owner)).toEqual([])
    for (const giver of [owner, admin]) {
      expect((yield* create(giver, customers)).status).toBe(201)
      const { key } = (yield* create(giver, body)).json
      const log = `/v2/organizations/${organizationId}/integrations/audit-log`
      expect((yield* sendRequest("GET", log, { key: String(key) })).status).toBe(200)
    }
  })

  it.effect("are not made by keys, nor without a trusted origin", function* () {
    const { organization, request } = yield* TestService
    const owner = yield* signInOwner
    const body = { name: "Key", permissions: ["*"] }
    const required = { status: 401, code: "authentication_required", fields: [] }
    expectFailure(yield* request("POST", path, { body, key: organization.testKey }), required)
    const untrusted = { status: 403, code: "origin_not_trusted", fields: [] }
    expectFailure(yield* request("POST", path, { body, headers: { cookie: owner.cookie } }), untrusted)
    expect(yield* listed(owner)).toEqual([])
  })

  it.effect("refuse bad input", function* () {
    const owner = yield* signInOwner
    const good = { name: "Key", permissions: ["payments:read"] }
    const bad: ReadonlyArray<readonly [change: Readonly<Record<string, unknown>>, fields: ReadonlyArray<string>]> = [
      [{ name: "" }, ["name"]],
      [{ name: "a".repeat(101) }, ["name"]],
      [{ name: "a\nb" }, ["name"]],
      [{ name: 7 }, ["name"]],
      [{ permissions: [] }, ["permissions"]],
      [{ permissions: "*" }, ["permissions"]],
      [{ permissions: ["payments:read", "payments:read"] }, ["permissions"]],
      [{ permissions: ["payments:read", "payments:admin"] }, ["permissions.1"]],
      [{ mode: "production" }, ["mode"]],
      [{ mode: null }, ["mode"]],
      [{ expiresAt: "2000-01-01T00:00:00Z" }, ["expiresAt"]],
      [{ expiresAt: "2099-01-01" }, ["expiresAt"]],
      [{ expiresAt: "2099-02-31T00:00:00" }, ["expiresAt"]],
      [{ expiresAt: "2099-13-01T00:00:00Z" }, ["expiresAt"]],
      [{ expiresAt: 4_102_444_800 }, ["expiresAt"]],
      [{ expiresAt: null }, ["expiresAt"]],
      [{ key: "pk_live_mine", organizationId: randomUUID() }, ["key", "organizationId"]]
    ]
    for (const [change, fields] of bad) {
      const answer = yield* create(owner, { ...good, ...change })
      expectFailure(answer, { status: 422, code: "validation_failed", fields }, JSON.stringify(change))
    }
    expect(yield* listed(owner)).toEqual([])
  })
})
