import { mkdtemp, readdir, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { ConfigProvider, Effect, Redacted } from "effect"
import { completeSettings } from "../src/local/Local.ts"
import { readSettings } from "../src/settings/Settings.ts"

const emptyDirectory = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "connected-payments-local-"))),
  (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
)

it.scopedLive("processes that start at once on one data directory have one master key", () =>
  Effect.gen(function* () {
    const directory = yield* emptyDirectory
    const settings = yield* readSettings.pipe(
      Effect.withConfigProvider(
        ConfigProvider.fromMap(
          new Map([
            ["DATABASE_URL", "postgresql://payments@127.0.0.1:9/payments"],
            ["DATA_DIR", directory],
            ["PROVIDER_SANDBOX_SECRET_KEY", "sk_test_platformsecret"],
            ["PROVIDER_SANDBOX_WEBHOOK_SECRETS", "whsec_testsecret"]
          ])
        )
      )
    )
    const keys = yield* Effect.forEach(
      Array.from({ length: 8 }),
      () =>
        Effect.map(completeSettings(settings), ({ service }) =>
          Buffer.from(Redacted.value(service.masterKeys[0].key)).toString("base64")
        ),
      { concurrency: "unbounded" }
    )
    const { service } = yield* completeSettings(settings)
    keys.push(Buffer.from(Redacted.value(service.masterKeys[0].key)).toString("base64"))
    expect(new Set(keys).size).toBe(1)
    expect(yield* Effect.promise(() => readdir(directory))).toEqual(["secrets.json"])
  })
)
