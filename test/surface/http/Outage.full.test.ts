import { chmod, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Exit, Scope } from "effect"
import {
  destroyEmbeddedPostgres,
  startEmbeddedPostgres
} from "../../../src/platform/storage/embedded/EmbeddedPostgres.ts"
import { eventuallyIs } from "../../harness/Eventually.ts"
import { createMigratedDatabase } from "../../harness/TestDatabase.ts"
import { describe, expect, it } from "../../harness/Tests.ts"
import { notification, signature } from "../../inbound/Notifications.ts"
import { expectFailure } from "./Refusals.ts"
import { makeOrganization, providerAt, startService } from "./StartedService.ts"

/** Nobody answers for it: none of these tests may need it. */
const provider = providerAt("http://127.0.0.1:9")

const temporaryDirectory = Effect.acquireRelease(
  Effect.promise(async () => {
    const directory = await mkdtemp(join(tmpdir(), "connected-payments-outage-"))
    // Where root runs the tests, the server runs under another account, which must be able to pass
    await chmod(directory, 0o711)
    return directory
  }),
  (directory) =>
    destroyEmbeddedPostgres(directory).pipe(
      Effect.zipRight(Effect.promise(() => rm(directory, { recursive: true, force: true }))),
      Effect.orDie
    )
)

const signedNotification = () => {
  const raw = notification("acct_unlinked")
  return { raw, headers: { "stripe-signature": signature(raw) } }
}

describe("without its database the service", () => {
  it.scopedLive(
    "answers 503 with Retry-After to everything that needs it, and serves again once it is back",
    function* () {
      const directory = yield* temporaryDirectory
      const start = Effect.gen(function* () {
        const scope = yield* Scope.make()
        const { port, url } = yield* startEmbeddedPostgres({ directory, durable: false }).pipe(Scope.extend(scope))
        return { port, url, stop: Scope.close(scope, Exit.void) }
      })
      const database = yield* start
      const { log, request, services } = yield* startService({ databaseUrl: database.url, provider })
      const { id, key } = yield* makeOrganization(services, { name: "outage" })
      const endpoints = `/v2/organizations/${id}/integrations/endpoints`
      const body = { name: "Orders", url: "http://localhost:1/x", events: ["payment.failed"] }
      expect((yield* request("GET", endpoints, { key })).status).toBe(200)
      yield* database.stop

      for (const answer of [
        yield* request("GET", endpoints, { key }),
        yield* request("POST", endpoints, { key, headers: { "idempotency-key": "outage-endpoint" }, body }),
        yield* request("GET", `/v2/organizations/${id}/provider/products`, { key }),
        yield* request("GET", "/health/ready"),
        yield* request("POST", "/webhooks/provider", signedNotification())
      ]) {
        expectFailure(answer, { status: 503, code: "service_unavailable", fields: [] })
        expect(Number(answer.headers.get("retry-after"))).toBeGreaterThanOrEqual(1)
        expect(answer.text).not.toMatch(/ECONN|postgres|127\.0\.0\.1|SELECT|5432/)
      }
      expect((yield* request("GET", "/health/live")).status).toBe(200)
      expectFailure(yield* request("GET", "/nope"), { status: 404, code: "resource_not_found" })

      const again = yield* start
      yield* Effect.addFinalizer(() => again.stop)
      expect(again.port).toBe(database.port)
      const list = yield* eventuallyIs(
        "the service serves again",
        request("GET", endpoints, { key }),
        (answer) => answer.status === 200
      )
      expect(list.json["data"]).toEqual([])
      expect((yield* request("POST", "/webhooks/provider", signedNotification())).status).toBe(200)
      expect(log.filter(({ level }) => level === "ERROR")).toEqual([])
    }
  )

  it.scopedLive("never answers 500 while its connections are cut", function* () {
    const database = yield* createMigratedDatabase
    const { request, services, sql } = yield* startService({ databaseUrl: database.url, provider })
    const { id, key } = yield* makeOrganization(services, { name: "cut" })
    const get = request("GET", `/v2/organizations/${id}/integrations/endpoints`, { key })
    const cut = sql`
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()`
    const statuses = new Set<number>()
    for (let round = 0; round < 10; round++) {
      const [answers] = yield* Effect.all([Effect.replicateEffect(get, 10).pipe(Effect.map((a) => [...a])), cut], {
        concurrency: 2
      })
      for (const { status } of answers) statuses.add(status)
    }
    expect([...statuses].filter((status) => status !== 200 && status !== 503)).toEqual([])
    yield* eventuallyIs("all is well again", get, ({ status }) => status === 200)
  })
})

describe("a defect", () => {
  it.scopedLive("is a 500 that says nothing of it, and is logged whole under the request's id", function* () {
    const database = yield* createMigratedDatabase
    const { log, request, services, sql } = yield* startService({ databaseUrl: database.url, provider })
    const { id, key } = yield* makeOrganization(services, { name: "defect" })
    yield* sql`ALTER TABLE payments.endpoints RENAME TO endpoints_elsewhere`
    const answer = yield* request("GET", `/v2/organizations/${id}/integrations/endpoints`, { key })
    expectFailure(answer, { status: 500, code: "internal_error", fields: [] })
    expect(answer.text).not.toMatch(/endpoints|relation|SELECT|payments\.|\bat \S+:\d/)
    const logged = log.filter(({ level }) => level === "ERROR")
    expect(logged).toHaveLength(1)
    expect(logged[0]?.requestId).toBe(answer.json["requestId"])
    expect(logged[0]?.text).toContain("payments.endpoints")
    expect(log.map(({ text }) => text).join("\n")).not.toContain(key)
    yield* sql`ALTER TABLE payments.endpoints_elsewhere RENAME TO endpoints`
  })
})
