import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { setTimeout as sleep } from "node:timers/promises"
import { SqlClient } from "@effect/sql"
import { expect } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Redacted } from "effect"
import { deliveryLayer, type ServiceOptions, servicesLayer, storageLayer } from "../../../src/app/Service.ts"
import { rotateMasterKeys } from "../../../src/destinations/endpoints/MasterKeys.ts"
import { encryptedTables } from "../../../src/destinations/endpoints/MasterKeysRepo.ts"
import { secretContext } from "../../../src/engine/attempts/Signing.ts"
import { Cipher } from "../../../src/platform/kit/crypto/Cipher.ts"
import type { OrganizationId } from "../../../src/platform/kit/Ids.ts"
import type { MasterKey } from "../../../src/platform/settings/Settings.ts"
import { makeDestination, received, verifies } from "../../destinations/endpoints/Delivering.ts"
import { eventuallyIs, eventuallyTrue } from "../../harness/Eventually.ts"
import { program } from "../../harness/Program.ts"
import { inDatabase, masterKeysSetting, onService, TestService, testMasterKeys } from "../../harness/TestService.ts"
import { temporaryDirectory } from "../../platform/storage/fixtures/temporaryDirectory.ts"
import { cliHere } from "./CliProcess.ts"

const masterKey = (id: string, byte: number): MasterKey => ({
  id,
  key: Redacted.make(new Uint8Array(32).fill(byte))
})

const [serviceKey] = testMasterKeys
const newKey = masterKey("next", 8)
const lostKey = masterKey("lost", 9)

const commandSettings = (...keys: ReadonlyArray<MasterKey>) =>
  Effect.gen(function* () {
    const { options } = yield* TestService
    return {
      DATABASE_URL: Redacted.value(options.databaseUrl),
      DATA_DIR: join(yield* temporaryDirectory, "data"),
      ...(keys.length === 0 ? {} : { MASTER_KEYS: masterKeysSetting(keys) })
    }
  })

const rotate = (...keys: ReadonlyArray<MasterKey>) =>
  Effect.flatMap(commandSettings(...keys), (environment) => cliHere(environment, "keys", "rotate-master", "--json"))

const underKeys = Effect.map(
  inDatabase<{ id: string; count: number }>`
    SELECT id, count(*)::int AS count FROM (
      SELECT master_key_id AS id FROM payments.endpoint_secrets
      UNION ALL SELECT master_key_id FROM payments.idempotency_keys WHERE answer IS NOT NULL
      UNION ALL SELECT master_key_id FROM payments.installation_keys) found
    GROUP BY id`,
  (rows) => Object.fromEntries(rows.map(({ count, id }) => [id, count]))
)

/** Further secrets of an endpoint, rotated long ago: rows for a rotation to work through. */
const addSecrets = (
  tenant: { readonly id: OrganizationId },
  endpointId: string,
  key: MasterKey,
  count: number,
  context?: string
) =>
  Effect.gen(function* () {
    const rows = yield* inDatabase<{ id: string }>`SELECT gen_random_uuid() AS id FROM generate_series(1, ${count})`
    const ids = rows.map(({ id }) => id)
    const ciphertexts = yield* Effect.flatMap(Cipher, ({ encrypt }) =>
      Effect.forEach(ids, (id) =>
        encrypt(
          Redacted.make(`whsec_${id}`),
          context ?? secretContext({ organizationId: tenant.id, environment: "sandbox" }, id)
        )
      )
    ).pipe(Effect.provide(Cipher.layer([key])))
    yield* inDatabase`
      INSERT INTO payments.endpoint_secrets
        (organization_id, environment, id, endpoint_id, master_key_id, ciphertext, retired_at)
      SELECT ${tenant.id}::uuid, 'sandbox', n.id, ${endpointId}::uuid, ${key.id}, decode(n.ciphertext, 'base64'),
        now() - interval '23 hours'
      FROM unnest(${ids}::uuid[],
        ${ciphertexts.map(({ ciphertext }) => Buffer.from(ciphertext).toString("base64"))}::text[]) n (id, ciphertext)`
    return ids
  })

const removeSecretsUnder = (key: MasterKey) =>
  inDatabase`DELETE FROM payments.endpoint_secrets WHERE master_key_id = ${key.id} AND retired_at IS NOT NULL`

/** A process with other master keys than the suite's: its services and a worker. */
const withProcess = <A, E>(masterKeys: ServiceOptions["masterKeys"], use: Effect.Effect<A, E, TestService>) =>
  Effect.flatMap(TestService, (service) => {
    const options = { ...service.options, masterKeys }
    return Effect.scoped(
      Effect.gen(function* () {
        const storage = yield* Layer.build(storageLayer(options))
        const services = yield* Layer.build(servicesLayer(options)).pipe(Effect.provide(storage))
        yield* Effect.provide(Layer.build(deliveryLayer(options)), services)
        return yield* use
      })
    )
  })

onService({ roles: { api: true, worker: false } })("the rotation of the master key", (it) => {
  it.scoped("moves every ciphertext while a worker delivers, and says which key may go", function* () {
    const { consumer, id, secret, send, tenant, test } = yield* makeDestination()
    const answered = yield* send("POST", "/rotate-secret", { headers: { "idempotency-key": "rotation-1" } })
    const current = String(answered.json["signingSecret"])
    yield* addSecrets(tenant, id, serviceKey, 300)
    const before = yield* underKeys
    expect(Object.keys(before)).toEqual(["test"])

    yield* withProcess(
      [newKey, serviceKey],
      Effect.gen(function* () {
        const { sql } = yield* TestService
        yield* test("payment.succeeded")
        const rotation = yield* Effect.fork(
          rotateMasterKeys({
            masterKeys: [newKey, serviceKey],
            batchSize: 7,
            onProgress: () => Effect.sleep("1 millis")
          }).pipe(Effect.provideService(SqlClient.SqlClient, sql))
        )
        yield* received(consumer, 1)
        expect(yield* Fiber.join(rotation)).toEqual({
          current: "next",
          // The synthetic test has left an answer
          reencrypted: (before["test"] ?? 0) + 1,
          left: [],
          unreadable: [],
          unused: ["test"]
        })
        yield* test("payment.succeeded")
        const request = yield* received(consumer, 2)
        expect(verifies(request, current) && verifies(request, secret)).toBe(true)
      })
    )
    expect(yield* underKeys).toEqual({ next: (before["test"] ?? 0) + 1, test: 1 })

    // Back again by the command: the service under test, which knows its own key alone, reads everything
    const back = yield* rotate(serviceKey, newKey)
    expect(back, back.stderr).toMatchObject({ code: 0 })
    expect(back.json).toEqual({
      current: "test",
      reencrypted: (before["test"] ?? 0) + 1,
      left: [],
      unreadable: [],
      unused: ["next"]
    })
    expect(back.stderr).toMatch(/signing secrets: (\d+) of \1 re-encrypted\n/)
    const replayed = yield* send("POST", "/rotate-secret", { headers: { "idempotency-key": "rotation-1" } })
    expect(replayed.headers.get("idempotent-replayed")).toBe("true")
    expect(replayed.text).toBe(answered.text)
    yield* removeSecretsUnder(serviceKey)
  })

  it.scoped("that is killed in the middle is finished by the next, each secret as it was", function* () {
    const { sql } = yield* TestService
    const { id, tenant } = yield* makeDestination()
    const ids = yield* addSecrets(tenant, id, serviceKey, 5000)
    const environment = yield* commandSettings(newKey, serviceKey)
    const child = spawn(process.execPath, [...program("src/app/cli/main.ts"), "keys", "rotate-master"], {
      env: { PATH: process.env["PATH"] ?? "", ...environment },
      stdio: "ignore"
    })
    yield* Effect.addFinalizer(() => Effect.sync(() => child.kill("SIGKILL")))
    yield* sql.withTransaction(
      Effect.gen(function* () {
        // It comes to this one last, and waits for it: it can't be done before it is killed
        yield* sql`SELECT 1 FROM payments.endpoint_secrets WHERE id = ${ids.toSorted().at(-1) ?? ""} FOR UPDATE`
        yield* eventuallyIs("some secrets are moved", underKeys, ({ next = 0 }) => next > 0)
        const exited = once(child, "exit")
        child.kill("SIGKILL")
        yield* Effect.promise(() => exited)
      })
    )
    const halfway = yield* underKeys
    expect(halfway["test"]).toBeGreaterThan(0)
    expect(halfway["next"]).toBeGreaterThan(0)

    const report = yield* rotateMasterKeys({ masterKeys: [newKey, serviceKey], batchSize: 500 }).pipe(
      Effect.provideService(SqlClient.SqlClient, sql)
    )
    expect(report).toMatchObject({ reencrypted: halfway["test"], left: [], unused: ["test"] })
    expect((yield* underKeys)["test"]).toBeUndefined()
    const rows = yield* sql<{ id: string; ciphertext: Buffer }>`
          SELECT id, ciphertext FROM payments.endpoint_secrets WHERE endpoint_id = ${id} AND retired_at IS NOT NULL`
    expect(rows).toHaveLength(ids.length)
    const cipher = yield* Effect.provide(Cipher, Cipher.layer([newKey]))
    for (const row of rows) {
      const context = secretContext({ organizationId: tenant.id, environment: "sandbox" }, row.id)
      const opened = yield* cipher.decrypt({ masterKeyId: "next", ciphertext: row.ciphertext }, context)
      expect(Redacted.value(opened)).toBe(`whsec_${row.id}`)
    }
    yield* removeSecretsUnder(newKey)
    expect((yield* rotate(serviceKey, newKey)).code).toBe(0)
  })

  it.scoped("leaves what it can't read as it is, moves the rest, and fails by saying so", function* () {
    const { id, tenant } = yield* makeDestination()
    yield* addSecrets(tenant, id, lostKey, 2)
    // Bound to another row: what was moved here by hand does not open
    yield* addSecrets(tenant, id, newKey, 1, "elsewhere")
    yield* addSecrets(tenant, id, newKey, 3)
    const ended = yield* rotate(serviceKey, newKey)
    expect(ended.code).toBe(1)
    expect(ended.json).toEqual({
      current: "test",
      reencrypted: 3,
      left: expect.arrayContaining([
        { masterKeyId: "lost", kind: "signing secrets", count: 2, known: false },
        { masterKeyId: "next", kind: "signing secrets", count: 1, known: true }
      ]),
      unreadable: [{ kind: "signing secrets", organizationId: tenant.id, environment: "sandbox", masterKeyId: "next" }],
      unused: []
    })
    expect(ended.stderr).toContain("Not everything is encrypted under the current master key")
    const told = yield* cliHere(yield* commandSettings(serviceKey, newKey), "keys", "rotate-master")
    expect(told.stdout).toContain('signing secrets: 2 under "lost", which is not among MASTER_KEYS')
    for (const secret of [serviceKey, newKey].map(({ key }) => Buffer.from(Redacted.value(key)).toString("base64"))) {
      expect(told.stdout + told.stderr + ended.stdout + ended.stderr).not.toContain(secret)
    }
    yield* removeSecretsUnder(lostKey)
    yield* removeSecretsUnder(newKey)
  })

  it.scoped("reports all that it can't read, also to who reads slowly", function* () {
    const { id, tenant } = yield* makeDestination()
    // More than what holds it between two processes
    const unreadable = 4000
    yield* addSecrets(tenant, id, newKey, unreadable, "elsewhere")
    const environment = yield* commandSettings(serviceKey, newKey)
    const child = spawn(process.execPath, [...program("src/app/cli/main.ts"), "keys", "rotate-master", "--json"], {
      env: { PATH: process.env["PATH"] ?? "", ...environment },
      stdio: ["ignore", "pipe", "pipe"]
    })
    yield* Effect.addFinalizer(() => Effect.sync(() => child.kill("SIGKILL")))
    const exited = once(child, "exit")
    let told = ""
    child.stderr.on("data", (chunk: Buffer) => {
      told += chunk.toString()
    })
    yield* eventuallyTrue("its last word", () => told.includes("Not everything"))
    // Until it ends, or waits for its reader
    yield* Effect.promise(() => Promise.race([exited, sleep(1000)]))
    const report: unknown = JSON.parse(yield* Effect.promise(() => text(child.stdout)))
    expect(report).toMatchObject({ unreadable: expect.toSatisfy((all) => all.length === unreadable) })
    expect(yield* Effect.promise(() => exited)).toEqual([1, null])
    yield* removeSecretsUnder(newKey)
  })

  it.scoped("overwrites nothing that changed meanwhile", function* () {
    const { sql } = yield* TestService
    const { id, tenant } = yield* makeDestination()
    const [changed = ""] = yield* addSecrets(tenant, id, newKey, 1)
    // Another process holds the row when the rotation, which has read it, comes to write it
    const held = yield* Deferred.make<void>()
    const rotation = yield* Effect.forkScoped(Effect.zipRight(Deferred.await(held), rotate(serviceKey, newKey)))
    yield* sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`
            UPDATE payments.endpoint_secrets SET ciphertext = 'replaced', master_key_id = 'test' WHERE id = ${changed}`
        yield* Deferred.succeed(held, undefined)
        const waiting = sql`SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'`
        yield* eventuallyIs("the rotation waits for the row", waiting, (rows) => rows.length > 0)
      })
    )
    const ended = yield* Fiber.join(rotation)
    const [row] = yield* sql<{ ciphertext: Buffer }>`
        SELECT ciphertext FROM payments.endpoint_secrets WHERE id = ${changed}`
    expect(row?.ciphertext.toString()).toBe("replaced")
    expect(ended.json).toMatchObject({ reencrypted: 0, left: [] })
  })

  it.scoped("needs MASTER_KEYS, and with one key has nothing to do", function* () {
    const without = yield* rotate()
    expect(without).toMatchObject({ code: 1, stdout: "" })
    expect(without.stderr).toContain("MASTER_KEYS")
    expect((yield* rotate(serviceKey)).json).toMatchObject({ reencrypted: 0, unused: [] })
    const wrong = yield* cliHere({ ...(yield* commandSettings()), MASTER_KEYS: "x:y" }, "keys", "rotate-master")
    expect(wrong.code).toBe(1)
    expect(wrong.stderr).toMatch(/^MASTER_KEYS: /)
  })

  it.scoped("knows every column that holds a ciphertext", function* () {
    const found = yield* inDatabase<{ table: string }>`
      SELECT DISTINCT table_schema || '.' || table_name AS table FROM information_schema.columns
      WHERE table_schema = 'payments' AND column_name LIKE '%master_key%'`
    expect(found.map(({ table }) => table).toSorted()).toEqual(encryptedTables.map(({ table }) => table).toSorted())
  })
})
