import { copyFile, readdir, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { Effect, Redacted } from "effect"
import { eventuallyTrue } from "../harness/Eventually.ts"
import { createMigratedDatabase } from "../harness/TestDatabase.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { dataDirectory, emptyDataDirectory, isAlive, spawnService, startService, stop } from "./ServiceProcess.ts"

const refused = (directory: string, settings: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    const service = yield* spawnService(directory, settings)
    const code = yield* Effect.promise(() => service.ended)
    expect(yield* isAlive(service.pid)).toBe(false)
    return { code, ...service.output }
  })

/** What a person is told: in plain words, without a stack. */
const expectPlainRefusal = (
  end: { code: unknown; stdout: string; stderr: string },
  ...words: ReadonlyArray<string>
) => {
  expect(end.code, end.stderr).toBe(1)
  expect(end.stdout).toBe("")
  for (const word of ["can't start", ...words]) expect(end.stderr).toContain(word)
  expect(end.stderr).not.toMatch(/^\s+at /m)
  expect(end.stderr).not.toContain("node_modules")
}

describe("a start", () => {
  it.scopedLive("writes the documented file, and takes neither a directory nor a port that is in use", function* () {
    const directory = yield* emptyDataDirectory
    const { local, output } = yield* startService(directory)
    expect(Object.keys(local)).toEqual([
      "baseUrl",
      "emulatorUrl",
      "organizationId",
      "apiKey",
      "ownerEmail",
      "databaseUrl"
    ])
    expect(local).toEqual({
      baseUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      emulatorUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      organizationId: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
      apiKey: expect.stringMatching(/^pk_test_[A-Za-z0-9_-]{43}$/),
      ownerEmail: expect.stringContaining("@"),
      databaseUrl: expect.stringMatching(/^postgresql:\/\/[^:]+:[^@]{20,}@127\.0\.0\.1:\d+\/payments$/)
    })
    for (const file of ["local.json", "secrets.json"]) {
      const { mode } = yield* Effect.promise(() => stat(join(directory, file)))
      expect([file, (mode & 0o777).toString(8)]).toEqual([file, "600"])
    }
    const steps = output.stderr.split("\n").flatMap((line) => /^ *\d+\.\d s {2}(\w+ [\w-]+)/.exec(line)?.[1] ?? [])
    expect(steps).toEqual([
      "Starting connected-payments",
      "Starting PostgreSQL",
      "Starting the",
      "Preparing the",
      "Starting the"
    ])
    for (const shown of [local.baseUrl, local.organizationId, local.apiKey]) expect(output.stdout).toContain(shown)

    const other = yield* dataDirectory
    const port = new URL(local.baseUrl).port
    const [second, third] = yield* Effect.all([refused(directory, {}), refused(other, { PORT: port })], {
      concurrency: 2
    })
    expectPlainRefusal(second, "in use", directory)
    expectPlainRefusal(third, port, "in use")
    // Its own database server ended with it
    const cluster = yield* Effect.promise(() => readdir(join(other, "postgres", "cluster")))
    expect(cluster).toContain("PG_VERSION")
    expect(cluster).not.toContain("postmaster.pid")
    expect((yield* Effect.promise(() => fetch(`${local.baseUrl}/health/ready`))).status).toBe(200)
  })

  it.scopedLive("on a known database finds its organization, and names a missing master key", function* () {
    const [firstHome, otherHome, newHome, thirdHome] = yield* Effect.all([
      emptyDataDirectory,
      emptyDataDirectory,
      emptyDataDirectory,
      emptyDataDirectory
    ])
    const database = { DATABASE_URL: Redacted.value((yield* createMigratedDatabase).url) }
    const first = yield* startService(firstHome, database)
    const headers = { "x-api-key": first.local.apiKey, "content-type": "application/json" }
    const endpoint = yield* Effect.promise(() =>
      fetch(`${first.local.baseUrl}/v2/organizations/${first.local.organizationId}/integrations/endpoints`, {
        method: "POST",
        headers: { ...headers, "idempotency-key": "first-endpoint" },
        body: JSON.stringify({ name: "A", url: "http://127.0.0.1:9000/webhooks", events: ["payment.succeeded"] })
      })
    )
    expect(endpoint.status, yield* Effect.promise(() => endpoint.text())).toBe(200)

    // The key of a new data directory has the id of the old one
    const otherMasterKey = `next:${Buffer.alloc(32, 1).toString("base64")}`
    const [otherKey, missingKey] = yield* Effect.all(
      [refused(newHome, database), refused(thirdHome, { ...database, MASTER_KEYS: otherMasterKey })],
      { concurrency: 2 }
    )
    const theirFile = join(newHome, "secrets.json")
    expectPlainRefusal(otherKey, "MASTER_KEYS", '"local" is not the one', theirFile, "copy the secrets.json")
    expectPlainRefusal(missingKey, "MASTER_KEYS", '"local" is missing', "signing secrets")

    yield* Effect.promise(() => copyFile(join(firstHome, "secrets.json"), join(otherHome, "secrets.json")))
    const other = yield* startService(otherHome, database)
    expect(other.local).toMatchObject({ organizationId: first.local.organizationId })
    expect(other.local.apiKey).not.toBe(first.local.apiKey)
    const provider = `${other.local.baseUrl}/v2/organizations/${other.local.organizationId}/provider`
    const products = yield* Effect.promise(() =>
      fetch(`${provider}/products`, { headers: { "x-api-key": other.local.apiKey } })
    )
    expect(products.status).toBe(200)

    // Not the emulator of the process beside it
    const beside = {
      ...database,
      PROVIDER_SANDBOX_SECRET_KEY: "sk_test_beside",
      PROVIDER_SANDBOX_WEBHOOK_SECRETS: "whsec_beside",
      PROVIDER_API_URL: other.local.emulatorUrl
    }
    const second = yield* startService(otherHome, beside)
    expect(second.local).toEqual(other.local)
    const notChanged = `${join(otherHome, "local.json")} is not changed`
    yield* eventuallyTrue("the second one's word on the file", () => second.output.stderr.includes(notChanged))
    const [, address = "an address in the log"] =
      /serves on (http:\/\/127\.0\.0\.1:\d+)/.exec(second.output.stderr) ?? []
    yield* eventuallyTrue("the second one's banner", () => second.output.stdout.includes(address))
    expect(second.output.stdout).not.toContain(other.local.baseUrl)

    yield* stop(other, "SIGKILL")
    const next = yield* startService(otherHome, beside)
    expect(next.local).toMatchObject({ organizationId: other.local.organizationId, apiKey: other.local.apiKey })
    expect(next.local.baseUrl).not.toBe(other.local.baseUrl)
    yield* eventuallyTrue("the next one's banner", () => next.output.stdout.includes(next.local.baseUrl))
  })
})

/** A module for `--import` that makes a package fail to load. */
const missingPackage = (name: string) => {
  const hooks = `export const resolve = (specifier, context, next) => {
    if (specifier === "${name}") throw new Error("${name} is not installed")
    return next(specifier, context)
  }`
  return `import { register } from "node:module"\nregister("data:text/javascript,${encodeURIComponent(hooks)}")\n`
}

describe.concurrent("a start", () => {
  const wrong: ReadonlyArray<readonly [Record<string, string>, ReadonlyArray<string>]> = [
    [{ LOG_LEVEL: "loud" }, ["LOG_LEVEL"]],
    [{ MASTER_KEYS: "c2VjcmV0LW9mLXRoZS1vcGVyYXRvcg==" }, ["MASTER_KEYS"]],
    [{ PORT: "http", DELIVERY_TIMEOUT: "never", ROLES: "both" }, ["PORT", "DELIVERY_TIMEOUT", "ROLES"]],
    [{ MODE: "production" }, ["DATABASE_URL", "MASTER_KEYS", "PUBLIC_URL", "PROVIDER_PRODUCTION_SECRET_KEY"]],
    [
      { DATABASE_URL: "postgresql://payments:secret-of-the-operator@127.0.0.1:1/payments" },
      ["DATABASE_URL", "127.0.0.1:1", "ECONNREFUSED"]
    ]
  ]
  for (const [settings, names] of wrong) {
    it.scopedLive(`with ${Object.keys(settings).join(", ")} wrong ends with 1 and a message of it`, function* () {
      const directory = yield* emptyDataDirectory
      const end = yield* refused(directory, settings)
      expectPlainRefusal(end, ...names)
      expect(end.stderr).not.toContain("secret-of-the-operator")
      expect(end.stderr).not.toContain("c2VjcmV0")
      expect(yield* Effect.promise(() => readdir(directory))).not.toContain("postgres")
    })
  }

  it.scopedLive("without a package that it needs ends with 1 and says which", function* () {
    const directory = yield* emptyDataDirectory
    const missing = join(directory, "missing.mjs")
    yield* Effect.promise(() => writeFile(missing, missingPackage("@opentelemetry/sdk-logs")))
    const end = yield* refused(directory, {
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1",
      NODE_OPTIONS: `--import ${pathToFileURL(missing)}`
    })
    expect(end.code).toBe(1)
    expect(end.stderr).toContain("connected-payments has failed")
    expect(end.stderr).toContain("@opentelemetry/sdk-logs is not installed")
  })
})
