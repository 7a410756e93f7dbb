import { randomBytes } from "node:crypto"
import { Context, Deferred, Effect, Fiber, Redacted } from "effect"
import { Keys } from "../../../src/identity/keys/Keys.ts"
import { cuttingProxy } from "../../harness/CuttingProxy.ts"
import { createMigratedDatabase } from "../../harness/TestDatabase.ts"
import { onService, TestService } from "../../harness/TestService.ts"
import { describe, expect, it } from "../../harness/Tests.ts"
import { expectFailure } from "./Refusals.ts"
import { makeOrganization, providerAt, startService } from "./StartedService.ts"

const provider = providerAt("http://127.0.0.1:9")

const permissions = ["webhook-endpoints:read"] as const

describe("while the database hangs", () => {
  it.scopedLive(
    "unseen keys, sign-in links and payers' forms are answered 503 together, not one after the other",
    function* () {
      const database = yield* createMigratedDatabase
      const line = yield* cuttingProxy(Redacted.value(database.url))
      const url = new URL(Redacted.value(database.url))
      url.port = new URL(line.url).port
      const { request, services } = yield* startService({ databaseUrl: Redacted.make(url.href), provider })
      const { id } = yield* makeOrganization(services, { name: "hanging" })
      const keys = yield* Effect.replicateEffect(
        Context.get(services, Keys).create({
          organizationId: id,
          name: "Unseen",
          permissions: [...permissions],
          author: { kind: "operator", id: "test" }
        }),
        24
      )
      line.stall()
      const byKey = keys.map(({ key }) =>
        request("GET", `/v2/organizations/${id}/integrations/endpoints`, { key: Redacted.value(key) })
      )
      const links = Array.from({ length: 10 }, (_, n) =>
        request("POST", "/identity/sign-in-links", { body: { email: `person${n}@example.com` } })
      )
      const forms = Array.from({ length: 10 }, () =>
        request("POST", "/pay/unknown", {
          raw: "quantity=1",
          headers: { "content-type": "application/x-www-form-urlencoded" }
        })
      )
      const answers = yield* Effect.all([...byKey, ...links, ...forms], { concurrency: "unbounded" })
      for (const answer of answers.slice(0, byKey.length + links.length)) {
        expectFailure(answer, { status: 503, code: "service_unavailable", fields: [] })
      }
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 503))
      for (const { headers } of answers) expect(Number(headers.get("retry-after"))).toBeGreaterThan(0)
    },
    // Each has one deadline of 10 seconds for its turn, its connection and its statement. If each waited for the one
    // before, they would take seven minutes
    240_000
  )
})

onService({ roles: { api: true, worker: false } })("a flood of made-up keys", (it) => {
  it.effect("is refused, and a real one that the process has not seen yet is served", function* () {
    const { makeKey, organization, request } = yield* TestService
    const real = yield* makeKey(organization.id, [...permissions])
    const path = `/v2/organizations/${organization.id}/integrations/endpoints`
    const count = 400
    const begun = yield* Deferred.make<void>()
    const madeUp = Effect.suspend(() =>
      request("GET", path, { key: `pk_test_${randomBytes(32).toString("base64url")}` })
    ).pipe(
      Effect.map(({ status }) => status),
      Effect.zipLeft(Deferred.succeed(begun, undefined))
    )
    const flood = yield* Effect.fork(
      Effect.all(
        Array.from({ length: count }, () => madeUp),
        { concurrency: count }
      )
    )
    yield* Deferred.await(begun)
    expect((yield* request("GET", path, { key: real })).status).toBe(200)
    expect(new Set(yield* Fiber.join(flood))).toEqual(new Set([401]))
  })
})
