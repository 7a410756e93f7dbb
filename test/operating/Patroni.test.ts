import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"

// What is checked in for Patroni, judged by Patroni

const file = fileURLToPath(new URL("../../src/operating/patroni/patroni.yml", import.meta.url))
const example = readFileSync(file, "utf8")

const installed = spawnSync("patroni", ["--version"]).status === 0

/** What Patroni finds wrong, but for where PostgreSQL's programs are; before version 4 it asked for a further list. */
const problemsOf = (text: string): ReadonlyArray<string> => {
  const directory = mkdtempSync(join(tmpdir(), "connected-payments-patroni-"))
  try {
    const copy = join(directory, "patroni.yml")
    writeFileSync(copy, text.replace("/var/lib/postgresql/18/payments", join(directory, "data")))
    const { stderr, stdout } = spawnSync("patroni", ["--validate-config", copy], { encoding: "utf8" })
    return `${stdout}\n${stderr}`
      .split("\n")
      .filter((line) => line.trim() !== "" && !/^(?:postgresql\.bin_dir|bootstrap\.pg_hba) /.test(line))
  } finally {
    rmSync(directory, { recursive: true })
  }
}

describe("Patroni's file", () => {
  it.skipIf(!installed)("is valid (skipped if Patroni is not installed)", () => {
    expect(problemsOf(example)).toEqual([])

    // It would find a wrong value, and a section that is missing
    expect(problemsOf(example.replace("ttl: 30", "ttl: soon"))).not.toEqual([])
    expect(problemsOf(example.replace("etcd3:", "etcd4:"))).not.toEqual([])
  })
})
