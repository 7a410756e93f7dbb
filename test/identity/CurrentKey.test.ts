import { expect } from "@effect/vitest"
import { onSharedService, TestService } from "../harness/TestService.ts"
import { expectFailure } from "../surface/http/Refusals.ts"

const path = "/identity/api-key"

onSharedService("a key's own description", (it) => {
  it.effect("says where it acts and what it may do, whatever that is, and never the key", function* () {
    const { makeKey, organization, request } = yield* TestService
    const narrow = yield* makeKey(organization.id, ["products:read", "webhook-endpoints:*"])
    const shown = yield* request("GET", path, { key: narrow })
    expect(shown.status, shown.text).toBe(200)
    expect(shown.json).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      organizationId: organization.id,
      environment: "sandbox",
      permissions: ["products:read", "webhook-endpoints:read", "webhook-endpoints:write"]
    })
    const live = yield* request("GET", path, { key: organization.liveKey })
    expect(live.json).toMatchObject({ organizationId: organization.id, environment: "production" })
  })

  it.effect("needs a good key: no session, no revoked key, and nothing that is not asked for", function* () {
    const { organization, request, sql, makeKey } = yield* TestService
    const none = { status: 401, code: "authentication_required" } as const
    expectFailure(yield* request("GET", path), none)
    const cookie = `__Host-svc_session=${"A".repeat(43)}`
    expectFailure(yield* request("GET", path, { headers: { cookie } }), none)
    const key = yield* makeKey(organization.id, ["products:read"])
    yield* sql`UPDATE payments.api_keys SET revoked_at = now() WHERE key_hash = sha256(${key}::text::bytea)`
    for (const bad of [key, "pk_test_unknown", "x".repeat(5000)]) {
      expectFailure(yield* request("GET", path, { key: bad }), { status: 401, code: "api_key_invalid" })
    }
    const asked = yield* request("GET", `${path}?organization=other`, { key: organization.testKey })
    expectFailure(asked, { status: 422, code: "validation_failed", fields: ["organization"] })
  })
})
