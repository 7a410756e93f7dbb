import { spawnSync } from "node:child_process"
import { chmodSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, Redacted } from "effect"
import { program } from "../harness/Program.ts"
import { createTestDatabase } from "../harness/TestDatabase.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { temporaryDirectory } from "../platform/storage/fixtures/temporaryDirectory.ts"

// The commands of the operating guide, run as they are written

const root = fileURLToPath(new URL("../../", import.meta.url))
const guide = readFileSync(join(root, "src/docs/guides/operating.md"), "utf8")

/** The blocks of a kind: `upgrade`, `sql`…; empty for those without one. */
const blocks = (kind: string) =>
  [...guide.matchAll(/^ *```sh ?(\w*)\n([\s\S]*?)^ *```$/gm)]
    .filter(([, of]) => of === kind)
    .map(([, , code = ""]) => code)

const majorOf = (file: string): number => {
  const { error, stdout } = spawnSync(file, ["--version"], { encoding: "utf8" })
  return error === undefined ? Number(/(\d+)\./.exec(stdout)?.[1] ?? 0) : 0
}

/** The embedded server's: its tools do not come with it. */
const serverMajor = 18

const setUp = Effect.gen(function* () {
  const database = yield* createTestDatabase()
  const directory = yield* temporaryDirectory
  const command = join(directory, "connected-payments")
  const words = [process.execPath, ...program("src/app/cli/main.ts")].map((word) => `"${word}"`).join(" ")
  writeFileSync(command, `#!/bin/sh\nexec ${words} "$@"\n`)
  chmodSync(command, 0o755)
  const endOf = (script: string, settings: Readonly<Record<string, string>>) =>
    spawnSync("bash", ["-euo", "pipefail", "-c", script], {
      cwd: root,
      encoding: "utf8",
      env: {
        PATH: `${directory}:${process.env["PATH"] ?? ""}`,
        DATABASE_URL: Redacted.value(database.url),
        DATA_DIR: join(directory, "data"),
        ...settings
      }
    })
  const run = (script: string, settings: Readonly<Record<string, string>> = {}) => {
    const { status, stderr, stdout } = endOf(script, settings)
    expect(status, `${script}\n${stdout}${stderr}`).toBe(0)
    return stdout
  }
  const fail = (script: string, settings: Readonly<Record<string, string>>) => {
    const { status, stderr, stdout } = endOf(script, settings)
    expect(status, `${script}\n${stdout}`).toBe(1)
    return stderr
  }
  return { database, directory, run, fail }
})

describe("the guide's commands", () => {
  it.scopedLive("bring a database up to date, make and rotate a master key, and look at what there is", function* () {
    const { fail, run } = yield* setUp
    const upgrades = blocks("upgrade")
    expect(upgrades).toHaveLength(1)
    for (const script of upgrades) expect(run(script)).toContain("0001_initial")
    const [newKey = "", ...others] = blocks("")
    const made = run(newKey).trim()
    expect(made).toMatch(/^[\w-]+:[A-Za-z0-9+/]{43}=$/)
    for (const script of blocks("rotate")) {
      expect(run(script, { MASTER_KEYS: made })).toContain(`Re-encrypted under "${made.split(":")[0]}": 0`)
    }
    expect(others).toHaveLength(1)
    for (const script of others) expect(run(script)).toContain("no such receipts")
    const removals = blocks("image")
    expect(removals).toHaveLength(1)
    const IMAGE_URL = `https://payments.example/product-images/${"0".repeat(64)}.png`
    for (const script of removals) expect(fail(script, { IMAGE_URL })).toContain("There is no image 0000")
    const replays = blocks("replay")
    expect(replays).toHaveLength(1)
    for (const script of replays) run(script)
    const missing = blocks("missing")
    expect(missing).toHaveLength(1)
    for (const script of missing) run(script)
    const looks = blocks("sql")
    expect(looks.length).toBeGreaterThanOrEqual(3)
    // Where psql is not installed they can't be run
    for (const script of majorOf("psql") === 0 ? [] : looks) run(script)
  })

  it.scopedLive.skipIf(majorOf("pg_dump") < serverMajor)(
    `back up and restore (skipped without PostgreSQL ${serverMajor}'s own pg_dump)`,
    function* () {
      const { directory, run } = yield* setUp
      const restored = yield* createTestDatabase()
      const settings = {
        BACKUP_FILE: join(directory, "backup"),
        RESTORED_DATABASE_URL: Redacted.value(restored.url)
      }
      run("connected-payments migrate")
      for (const script of [...blocks("backup"), ...blocks("restore")]) run(script, settings)
      expect(run("connected-payments migrate", { DATABASE_URL: Redacted.value(restored.url) })).toContain("up to date")
    }
  )
})

/** What a process of the version before can't work with; what a function does, it does later. */
const refusals = (migration: string): ReadonlyArray<string> => {
  const statements = migration.replace(/CREATE (OR REPLACE )?FUNCTION[^$]*\$\$[^$]*\$\$/g, "")
  const changed =
    /DROP (TABLE|COLUMN|SCHEMA|SEQUENCE)|RENAME|ALTER COLUMN \w+ (TYPE|SET NOT NULL|SET DATA)|DELETE FROM|TRUNCATE/i.exec(
      statements
    )
  const required = [...statements.matchAll(/ADD COLUMN[^,`]*/gi)]
    .map(([added]) => added)
    .filter((added) => /NOT NULL/i.test(added) && !/DEFAULT/i.test(added))
  return [...(changed === null ? [] : [changed[0]]), ...required]
}

describe("migrations", () => {
  it("after the first only add, as the guide promises for old and new versions side by side", () => {
    const folder = join(root, "src/platform/storage/migrations")
    const later = readdirSync(folder).filter((file) => file.endsWith(".ts") && file > "0002")
    for (const file of later) expect([file, refusals(readFileSync(join(folder, file), "utf8"))]).toEqual([file, []])
  })

  it.each([
    ["ALTER TABLE payments.endpoints ADD COLUMN note text", []],
    ["ALTER TABLE payments.endpoints ADD COLUMN size int NOT NULL DEFAULT 1", []],
    ["CREATE FUNCTION payments.end() RETURNS void LANGUAGE sql AS $$ DELETE FROM payments.days $$", []],
    ["ALTER TABLE payments.endpoints ADD COLUMN size int NOT NULL", ["ADD COLUMN size int NOT NULL"]],
    ["ALTER TABLE payments.endpoints RENAME COLUMN url TO address", ["RENAME"]],
    ["ALTER TABLE payments.endpoints ALTER COLUMN url SET NOT NULL", ["ALTER COLUMN url SET NOT NULL"]],
    ["DROP TABLE payments.days", ["DROP TABLE"]]
  ])("%s: refused for %j", (statement, expected) => {
    expect(refusals(statement)).toEqual(expected)
  })
})
