import { readdir, stat } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { dataDirectory, isAlive, spawnService, startService } from "./ServiceProcess.ts"

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
  it.scopedLive(
    "writes the documented file, and takes neither a directory nor a port that is in use",
    () =>
      Effect.gen(function* () {
        const directory = yield* dataDirectory
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
        for (const shown of [local.baseUrl, local.organizationId, local.apiKey]) expect(output.stdout).toContain(shown)

        const second = yield* refused(directory, {})
        expectPlainRefusal(second, "in use", directory)

        const other = yield* dataDirectory
        const port = new URL(local.baseUrl).port
        const third = yield* refused(other, { PORT: port })
        expectPlainRefusal(third, port, "in use")
        // Its own database server ended with it
        const home = yield* Effect.promise(() => readdir(join(other, "postgres")))
        if (home.includes("cluster")) {
          const cluster = yield* Effect.promise(() => readdir(join(other, "postgres", "cluster")))
          expect(cluster).not.toContain("postmaster.pid")
        }
        const answer = yield* Effect.promise(() => fetch(`${local.baseUrl}/health/ready`))
        expect(answer.status).toBe(200)
      }),
    90_000
  )

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
    it.scopedLive(`with ${Object.keys(settings).join(", ")} wrong ends with 1 and a message that names it`, () =>
      Effect.gen(function* () {
        const directory = yield* dataDirectory
        const end = yield* refused(directory, settings)
        expectPlainRefusal(end, ...names)
        expect(end.stderr).not.toContain("secret-of-the-operator")
        expect(end.stderr).not.toContain("c2VjcmV0")
        expect(yield* Effect.promise(() => readdir(directory))).not.toContain("postgres")
      })
    )
  }
})
