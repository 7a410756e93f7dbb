import { chmod, readdir, readFile, stat } from "node:fs/promises"
import { join } from "node:path"
import { ConfigProvider, Effect, Option, Redacted } from "effect"
import { completeSettings } from "../src/app/local/Local.ts"
import { readSettings } from "../src/platform/settings/Settings.ts"
import { expect, it } from "./harness/Tests.ts"
import { temporaryDirectory } from "./platform/storage/fixtures/temporaryDirectory.ts"

const settingsOf = (settings: Readonly<Record<string, string>>) =>
  Effect.withConfigProvider(readSettings, ConfigProvider.fromMap(new Map(Object.entries(settings))))

const settingsOn = (directory: string) =>
  settingsOf({
    DATABASE_URL: "postgresql://payments@127.0.0.1:9/payments",
    DATA_DIR: directory,
    PROVIDER_SANDBOX_SECRET_KEY: "sk_test_platformsecret",
    PROVIDER_SANDBOX_WEBHOOK_SECRETS: "whsec_testsecret"
  })

it.scopedLive("a data directory that is there keeps its mode, and a new one can be passed through", function* () {
  const directory = yield* temporaryDirectory
  const modeOf = (path: string) => Effect.promise(async () => ((await stat(path)).mode & 0o7777).toString(8))
  for (const mode of ["700", "1777"]) {
    yield* Effect.promise(() => chmod(directory, Number.parseInt(mode, 8)))
    yield* completeSettings(yield* settingsOn(directory))
    expect(yield* modeOf(directory)).toBe(mode)
  }
  yield* completeSettings(yield* settingsOn(join(directory, "new")))
  expect(yield* modeOf(join(directory, "new"))).toBe("755")
})

it.scopedLive("processes that start at once on one data directory have one master key", function* () {
  const directory = yield* temporaryDirectory
  const settings = yield* settingsOn(directory)
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

it.scopedLive("a second process on a data directory leaves the first one's emulator state and port", function* () {
  const directory = yield* temporaryDirectory
  const shared = { DATABASE_URL: "postgresql://payments@127.0.0.1:9/payments", DATA_DIR: directory }
  const started = (settings: Readonly<Record<string, string>>) =>
    settingsOf(settings).pipe(
      Effect.flatMap(completeSettings),
      Effect.flatMap(({ emulator }) => Effect.fromNullable(Option.getOrNull(emulator)))
    )
  const journal = Effect.promise(() => readFile(join(directory, "emulator.jsonl"), "utf8"))
  const port = Effect.promise(() => readFile(join(directory, "emulator.port"), "utf8"))

  const [before, after, portOfFirst] = yield* Effect.scoped(
    Effect.gen(function* () {
      const first = yield* started(shared)
      const before = yield* first.ensureAccount()
      const portOfFirst = yield* port
      const second = yield* started(shared)
      expect(second.url).not.toBe(first.url)
      // It knows what the first one knew, and keeps what it is told for itself
      expect(yield* second.ensureAccount(before)).toBe(before)
      const itsOwn = yield* second.ensureAccount()
      // One that can't start does no harm either
      const taken = new URL(first.url).port
      const refused = yield* Effect.flip(Effect.scoped(started({ ...shared, EMULATOR_PORT: taken })))
      expect(String(refused)).toContain(taken)
      const after = yield* first.ensureAccount()
      expect((yield* journal).includes(itsOwn)).toBe(false)
      return [before, after, portOfFirst] as const
    })
  )
  const isKept = Effect.map(journal, (text) => [before, after].map((account) => text.includes(account)))
  expect(yield* isKept).toEqual([true, true])
  expect(yield* port).toBe(portOfFirst)

  expect(new URL((yield* started(shared)).url).port).toBe(portOfFirst)
  expect(yield* isKept).toEqual([true, true])
})
