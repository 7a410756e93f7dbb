import { createHmac, hash } from "node:crypto"
import type { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Logger, LogLevel, Redacted, type Tracer } from "effect"
import { type ServiceOptions, servicesLayer, storageLayer } from "../../../src/app/Service.ts"
import { rotateMasterKeys } from "../../../src/destinations/endpoints/MasterKeys.ts"
import { EventReplays } from "../../../src/destinations/event-replays/EventReplays.ts"
import { Cipher } from "../../../src/platform/kit/crypto/Cipher.ts"
import { installationKeyContext, KeyedHash } from "../../../src/platform/kit/crypto/KeyedHash.ts"
import { Idempotency } from "../../../src/platform/kit/Idempotency.ts"
import { EndpointId } from "../../../src/platform/kit/Ids.ts"
import { paymentIntent } from "../../events/ProviderEvents.ts"
import { createMigratedDatabase } from "../../harness/TestDatabase.ts"
import { masterKey, onService, TestService } from "../../harness/TestService.ts"
import { describe, expect, it } from "../../harness/Tests.ts"
import { accepted, makeTenant, notification, notify, subscribe } from "../../inbound/Notifications.ts"
import { connect, on } from "../storage/PartitionBed.ts"

const [former, next] = [masterKey("test", 7), masterKey("next", 8)]

const hashWith = (sql: SqlClient.SqlClient, ...keys: ServiceOptions["masterKeys"]) =>
  on(sql, Effect.map(Layer.build(Layer.provide(KeyedHash.layer, Cipher.layer(keys))), Context.get(KeyedHash)))

interface StoredKey {
  readonly masterKeyId: string
  readonly ciphertext: Buffer
}

const storedKeys = (sql: SqlClient.SqlClient) =>
  sql<StoredKey>`SELECT master_key_id AS "masterKeyId", ciphertext FROM payments.installation_keys`

describe("the keyed hash", () => {
  it.scopedLive("has one key for all processes that start at once, and for those after them", function* () {
    const sql = yield* connect(yield* createMigratedDatabase, "15 seconds", 8)
    const atOnce = yield* Effect.all(
      Array.from({ length: 8 }, () => hashWith(sql, former)),
      { concurrency: 8 }
    )
    const hashes = [...atOnce, yield* hashWith(sql, former)].map((keyedHash) => keyedHash("text").toString("hex"))
    expect(new Set(hashes).size).toBe(1)
    expect(yield* storedKeys(sql)).toHaveLength(1)
  })

  it.scopedLive("survives a rotation of the master key, and needs one of the master keys", function* () {
    const sql = yield* connect(yield* createMigratedDatabase)
    const original = yield* hashWith(sql, former)
    const report = yield* on(sql, rotateMasterKeys({ masterKeys: [next, former] }))
    expect(report).toMatchObject({ reencrypted: 1, left: [], unreadable: [], unused: ["test"] })
    expect((yield* hashWith(sql, next))("text")).toEqual(original("text"))
    const without = yield* Effect.exit(hashWith(sql, former))
    expect(JSON.stringify(without)).toContain('The master key \\"next\\" is not among MASTER_KEYS')

    // Other bytes under the same id
    const wrong = yield* on(sql, rotateMasterKeys({ masterKeys: [former, masterKey("next", 9)] }))
    expect(wrong.unreadable).toEqual([
      { kind: "installation keys", organizationId: null, environment: null, masterKeyId: "next" }
    ])
    expect((yield* hashWith(sql, next))("text")).toEqual(original("text"))
  })

  it.scopedLive("shows its key neither in the database nor in logs and spans", function* () {
    const sql = yield* connect(yield* createMigratedDatabase)
    const told: Array<string> = []
    const watched = Layer.merge(
      Logger.replace(
        Logger.defaultLogger,
        Logger.map(Logger.jsonLogger, (line) => void told.push(line))
      ),
      Logger.minimumLogLevel(LogLevel.All)
    )
    const spans: Array<Tracer.Span> = []
    const tracer = yield* Effect.tracer
    const recording: Tracer.Tracer = {
      ...tracer,
      span: (...args) => {
        const span = tracer.span(...args)
        spans.push(span)
        return span
      }
    }
    const keyedHash = yield* Effect.zipLeft(hashWith(sql, former), Effect.logTrace("built")).pipe(
      Effect.tap((keyedHash) => Effect.logInfo(keyedHash)),
      Effect.withSpan("start"),
      Effect.withTracer(recording),
      Effect.provide(watched)
    )
    const [stored] = yield* storedKeys(sql)
    const { decrypt } = yield* Effect.provide(Cipher, Cipher.layer([former]))
    const key = Redacted.value(
      yield* decrypt(stored ?? { masterKeyId: "", ciphertext: Buffer.of() }, installationKeyContext("hashes"))
    )
    // It is the key
    expect(keyedHash("text")).toEqual(createHmac("sha256", key).update("text").digest())
    expect(Buffer.from(key, "base64")).toHaveLength(32)
    expect([told.length, spans.length].every((count) => count > 1)).toBe(true)
    const seen = [...told, ...spans.map(({ attributes, name }) => JSON.stringify([name, [...attributes]]))].join("\n")
    const row = stored?.ciphertext ?? Buffer.of()
    for (const plain of [key, Buffer.from(key, "base64").toString("hex")]) expect(seen).not.toContain(plain)
    for (const plain of [key, Buffer.from(key, "base64")]) expect(row.includes(plain)).toBe(false)
  })
})

onService({ roles: { api: true, worker: false } })("what is stored under the keyed hash", (it) => {
  it.scoped("is matched by replays after a rotation of the master key, without the former key", function* () {
    const { options, sql } = yield* TestService
    const tenant = yield* makeTenant
    const pay = (id: string, shop: string) =>
      accepted(notify(notification(tenant.accountId, { object: { ...paymentIntent, id, metadata: { shop } } })))
    yield* pay("pi_north", "north")
    yield* pay("pi_south", "south")
    const filters = { metadata: { shop: "north" } }
    const { id } = yield* subscribe(tenant, ["payment.succeeded"], "http://127.0.0.1:9/hook", filters)
    yield* on(sql, rotateMasterKeys({ masterKeys: [next, former] }))
    const rotated: ServiceOptions = { ...options, masterKeys: [next] }
    const storage = yield* Layer.build(storageLayer(rotated))
    const services = yield* Layer.build(servicesLayer(rotated)).pipe(Effect.provide(storage))
    const principal = {
      organizationId: tenant.id,
      environment: "sandbox",
      permissions: new Set<never>(),
      author: { kind: "operator", id: "test" }
    } as const
    const replay = Context.get(services, EventReplays).queue(principal, EndpointId.make(id), {
      since: new Date(Date.now() - 60_000)
    })
    expect(yield* replay).toMatchObject({ state: "finished", queued: 1, skipped: 1 })
  })

  it.effect("are the parameters of requests under an idempotency key, too", function* () {
    const { services, sql, organization } = yield* TestService
    const parameters = { email: "ana@example.com" }
    yield* Context.get(services, Idempotency).run(
      {
        tenant: { organizationId: organization.id, environment: "sandbox" },
        key: "guess",
        operation: "customers.create",
        parameters,
        encode: () => ({})
      },
      () => Effect.succeed({})
    )
    const [row] = yield* sql<{ requestHash: Buffer }>`
        SELECT request_hash AS "requestHash" FROM payments.idempotency_keys WHERE key = 'guess'`
    const digest = hash("sha256", JSON.stringify(parameters))
    expect(row?.requestHash.toString("hex")).not.toBe(digest)
    expect(row?.requestHash).toEqual(Context.get(services, KeyedHash)(digest))
  })
})
