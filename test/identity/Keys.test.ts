import { createHash, randomUUID } from "node:crypto"
import { Context, Effect, FastCheck, Redacted } from "effect"
import { permissionsOf } from "../../src/identity/keys/GrantPolicy.ts"
import { Keys } from "../../src/identity/keys/Keys.ts"
import {
  entrusted,
  expandGrants,
  type Grant,
  isPermission,
  isWebhookPermission,
  permissions
} from "../../src/identity/keys/Permissions.ts"
import { onSharedService, TestService } from "../harness/TestService.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { expectFailure } from "../surface/http/Refusals.ts"

describe("grants", () => {
  it("of * amount to all permissions of payments and to no webhook management", () => {
    expect([...expandGrants(["*"])].toSorted()).toEqual(
      [
        "payments:read",
        "payments:write",
        "products:read",
        "products:write",
        "payment-account:read",
        "coupons:read",
        "coupons:write",
        "transactions:read",
        "subscriptions:write"
      ].toSorted()
    )
  })

  it("of webhook-endpoints:* amount to both scopes and nothing else", () => {
    expect([...expandGrants(["webhook-endpoints:*"])].toSorted()).toEqual([
      "webhook-endpoints:read",
      "webhook-endpoints:write"
    ])
  })

  it("that no wildcard includes are those of owners and admins alone", () => {
    expect(entrusted.toSorted()).toEqual(["audit-log:read", "customers:read"])
    const wild = expandGrants(["*", "webhook-endpoints:*"])
    for (const permission of entrusted) {
      expect(wild.has(permission), permission).toBe(false)
      const roles = (["owner", "admin", "developer", "viewer"] as const).filter((role) =>
        permissionsOf(role).has(permission)
      )
      expect(roles, permission).toEqual(["owner", "admin"])
    }
  })

  it("add up, in any order, and never beyond what was granted", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.subarray<Grant>([...permissions, "*", "webhook-endpoints:*"]), (granted) => {
        const held = expandGrants(granted)
        expect(expandGrants(granted.toReversed())).toEqual(held)
        for (const permission of [...held].filter(isPermission)) {
          const wide = isWebhookPermission(permission) ? "webhook-endpoints:*" : "*"
          const widened = !entrusted.includes(permission) && granted.includes(wide)
          expect(granted.includes(permission) || widened, permission).toBe(true)
        }
      })
    )
  })
})

/** A row as an older system could have left it. */
const insertRow = (options: {
  readonly key: string
  readonly environment: "sandbox" | "production"
  readonly prefix: string
}) =>
  Effect.flatMap(
    TestService,
    ({ organization, sql }) =>
      sql`
      INSERT INTO payments.api_keys
        (id, organization_id, environment, name, key_hash, key_prefix, last_four, permissions)
      VALUES (${randomUUID()}, ${organization.id}, ${options.environment}, 'Migrated',
        ${createHash("sha256").update(options.key).digest()}, ${options.prefix}, ${options.key.slice(-4)},
        ${["webhook-endpoints:*"]}::text[])`
  )

const listEndpoints = (key: string) =>
  Effect.flatMap(TestService, ({ organization, request }) =>
    request("GET", `/v2/organizations/${organization.id}/integrations/endpoints`, { key })
  )

const whoHas = (key: string) =>
  Effect.flatMap(TestService, ({ services }) => Context.get(services, Keys).authenticate(Redacted.make(key)))

const author = { kind: "operator", id: "test" } as const

const invalid = { status: 401, code: "api_key_invalid", fields: [] }

onSharedService("keys", (it) => {
  it.effect("are stored as their SHA-256, prefix and last four characters, and nothing more", function* () {
    const { organization, services, sql } = yield* TestService
    const { key, record } = yield* Context.get(services, Keys).create({
      organizationId: organization.id,
      name: "Shop",
      permissions: ["products:read"],
      author
    })
    const text = Redacted.value(key)
    const [row] = yield* sql<{ hash: Buffer; prefix: string; lastFour: string; dump: string }>`
        SELECT key_hash AS hash, key_prefix AS prefix, last_four AS "lastFour", to_jsonb(k)::text AS dump
        FROM payments.api_keys k WHERE id = ${record.id}`
    expect(row?.hash.equals(createHash("sha256").update(text).digest())).toBe(true)
    expect(row).toMatchObject({ prefix: "pk_test_", lastFour: text.slice(-4) })
    for (let start = "pk_test_".length; start + 5 <= text.length; start++) {
      expect(row?.dump).not.toContain(text.slice(start, start + 5))
    }
    expect(JSON.stringify({ record, key })).not.toContain(text)
  })

  it.effect("of an older form work in sandbox", function* () {
    const { makeKey, organization, request } = yield* TestService
    for (const key of [`sk_${randomUUID()}`, `legacy-${randomUUID()}`, randomUUID()]) {
      yield* insertRow({ key, environment: "sandbox", prefix: key.slice(0, 3) })
      const create = yield* request("POST", `/v2/organizations/${organization.id}/integrations/endpoints`, {
        key,
        headers: { "idempotency-key": randomUUID() },
        body: { name: "Migrated", url: "http://localhost:1/hook", events: ["payment.failed"] }
      })
      expect(create.json).toMatchObject({ environment: "sandbox" })
    }
    const live = yield* makeKey(organization.id, ["webhook-endpoints:*"], { mode: "live" })
    expect((yield* listEndpoints(live)).json["data"]).toEqual([])
  })

  it.effect("of an older form work in production if their prefix has _live_ anywhere in it", function* () {
    for (const prefix of ["old_live_", "acme2_live_", "rk_v2_live_", "ACME_live_", "my-app_live_", "_live_"]) {
      const key = `${prefix}${randomUUID()}`
      expect((yield* Effect.either(insertRow({ key, environment: "sandbox", prefix })))._tag, prefix).toBe("Left")
      yield* insertRow({ key, environment: "production", prefix })
      expect((yield* whoHas(key)).environment, prefix).toBe("production")
      expect((yield* listEndpoints(key)).status, prefix).toBe(200)
    }
  })

  it.effect("stay in the sandbox whatever follows their prefix", function* () {
    for (const prefix of ["pk_test_", "old_", "key-"]) {
      const key = `${prefix}${randomUUID()}_live_${randomUUID()}`
      yield* insertRow({ key, environment: "sandbox", prefix })
      expect((yield* whoHas(key)).environment, prefix).toBe("sandbox")
      expect((yield* listEndpoints(key)).status, prefix).toBe(200)
    }
  })

  it.effect("whose form says another environment than their row are refused", function* () {
    const sandboxForm = `pk_test_${"a".repeat(43)}`
    const liveForm = `pk_live_${"b".repeat(43)}`
    yield* insertRow({ key: sandboxForm, environment: "production", prefix: "pk_live_" })
    yield* insertRow({ key: liveForm, environment: "sandbox", prefix: "pk_test_" })
    expectFailure(yield* listEndpoints(sandboxForm), invalid)
    expectFailure(yield* listEndpoints(liveForm), invalid)
  })

  it.effect("whose prefix and environment disagree can't be stored", function* () {
    const key = `pk_test_${"c".repeat(43)}`
    const stored = yield* Effect.either(insertRow({ key, environment: "production", prefix: "pk_test_" }))
    expect(stored._tag).toBe("Left")
  })
})
