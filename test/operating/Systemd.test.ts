import { spawnSync } from "node:child_process"
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import { Duration } from "effect"
import { serviceCommands } from "../../src/app/cli/commands/Service.ts"
import { documentedInProduction, documentedSettings } from "../../src/surface/docs/GuideTables.ts"
import { variables } from "./Kustomize.ts"

// What is checked in for systemd and PgBouncer, held against systemd itself if it is there, and against the service

const root = fileURLToPath(new URL("../../", import.meta.url))
const folder = join(root, "src/operating/systemd")
const text = (file: string) => readFileSync(join(root, file), "utf8")

/** A unit's directives, in their order: several may have one name. */
const directivesOf = (file: string): ReadonlyArray<readonly [string, string]> =>
  readFileSync(join(folder, file), "utf8")
    .split("\n")
    .filter((line) => line !== "" && !/^[#;[]/.test(line))
    .map((line) => {
      const at = line.indexOf("=")
      expect(at, line).toBeGreaterThan(0)
      return [line.slice(0, at), line.slice(at + 1)]
    })

const units = readdirSync(folder).filter((file) => file.endsWith(".service"))
const services = units.filter((file) => !file.includes("migrate"))

const valuesOf = (file: string, name: string) =>
  directivesOf(file).flatMap(([directive, value]) => (directive === name ? [value] : []))

const settings = Object.fromEntries(
  Object.entries(variables(readFileSync(join(folder, "settings.env"), "utf8").split("\n"))).map(([name, value]) => [
    name,
    value.replace(/^"(.*)"$/, "$1")
  ])
)

const analyze = (...args: ReadonlyArray<string>) => spawnSync("systemd-analyze", args, { encoding: "utf8" })

/** `security --offline` came with version 250. */
const version = Number(/systemd (\d+)/.exec(analyze("--version").stdout ?? "")?.[1] ?? 0)

/** Copies of the units in a folder of their own, with a Node that there is. */
const withUnits = <A>(use: (files: ReadonlyArray<string>) => A): A => {
  const directory = mkdtempSync(join(tmpdir(), "connected-payments-units-"))
  try {
    return use(
      units.map((unit) => {
        const file = join(directory, unit.replace("@", "@1"))
        copyFileSync(join(folder, unit), file)
        writeFileSync(file, readFileSync(file, "utf8").replaceAll("/usr/bin/node", process.execPath))
        return file
      })
    )
  } finally {
    rmSync(directory, { recursive: true })
  }
}

describe("the units for systemd", () => {
  it("are one for each role, and one for migrations", () => {
    expect(units.toSorted()).toEqual([
      "connected-payments-api.service",
      "connected-payments-migrate.service",
      "connected-payments-worker@.service"
    ])
  })

  it.skipIf(version < 250)("are what systemd understands, and little exposed (skipped if not installed)", () => {
    withUnits((files) => {
      const { status, stderr, stdout } = analyze("verify", "--man=no", "--recursive-errors=no", ...files)
      expect([status, stderr, stdout]).toEqual([0, "", ""])
      for (const file of files) {
        // Out of 100; an ordinary service has 96
        const judged = analyze("security", "--offline=true", "--no-pager", "--threshold=20", file)
        expect(judged.status, `${file}\n${judged.stdout}${judged.stderr}`).toBe(0)
      }
    })
  })

  it("start what the build makes, as the image does", () => {
    const image = text("Dockerfile")
    const [, every = "", worker = ""] =
      /exec node (\S+) \$\(\[ \\"\$ROLES\\" = worker \] && echo (\S+)\) dist\/app\/main\.js/.exec(image) ?? []
    expect([every, worker]).toEqual([expect.stringContaining("--max"), expect.stringContaining("--max")])
    expect(valuesOf("connected-payments-api.service", "ExecStart")).toEqual([`/usr/bin/node ${every} dist/app/main.js`])
    expect(valuesOf("connected-payments-worker@.service", "ExecStart")).toEqual([
      `/usr/bin/node ${every} ${worker} dist/app/main.js`
    ])
    const [migrate = ""] = valuesOf("connected-payments-migrate.service", "ExecStart")
    const [, file = "", command = ""] = /^\/usr\/bin\/node (\S+) (\w+)$/.exec(migrate) ?? []
    const { bin } = JSON.parse(text("package.json")) as { readonly bin: Record<string, string> }
    expect(Object.values(bin)).toEqual([file])
    expect(serviceCommands.map(({ name }) => name)).toContain(command)
  })

  it("set settings that there are, and leave to the file of settings what production requires", () => {
    const given = new Set<string>()
    for (const unit of units) {
      expect(valuesOf(unit, "EnvironmentFile"), unit).toEqual(["/etc/connected-payments/settings.env"])
      const environment = variables(valuesOf(unit, "Environment"))
      expect(environment).toMatchObject({ MODE: "production", NODE_ENV: "production" })
      for (const name of Object.keys(environment)) given.add(name)
    }
    // The file would have the last word. The mode is in both, as commands read the file
    expect(settings).toMatchObject({ MODE: "production" })
    expect(Object.keys(settings).filter((name) => given.has(name))).toEqual(["MODE"])
    const all = [...given, ...Object.keys(settings)].filter((name) => name !== "NODE_ENV")
    expect(all.filter((name) => !documentedSettings.includes(name))).toEqual([])
    expect(documentedInProduction("required").filter((name) => !all.includes(name))).toEqual([])
    expect(valuesOf("connected-payments-worker@.service", "Environment")).toContain("PORT=808%i")
  })

  it("give a process the time that its shutdown takes, and the files that waiting attempts need", () => {
    const seconds = ["SHUTDOWN_DELAY", "SHUTDOWN_TIMEOUT"].map((name) =>
      Duration.toSeconds(Duration.decode((settings[name] ?? "") as Duration.DurationInput))
    )
    for (const unit of services) {
      const [stop] = valuesOf(unit, "TimeoutStopSec")
      expect(Number(stop), unit).toBeGreaterThanOrEqual((seconds[0] ?? 0) + (seconds[1] ?? 0) + 5)
      expect(Number(valuesOf(unit, "LimitNOFILE")[0])).toBeGreaterThanOrEqual(4096)
      expect(valuesOf(unit, "Requires")).toEqual(["connected-payments-migrate.service"])
      expect(valuesOf(unit, "After").join(" ")).toContain("connected-payments-migrate.service")
    }
  })

  it("are all restricted in the same way, but for memory that is written and run: V8 needs that", () => {
    const restrictions = units.map((unit) => {
      const all = directivesOf(unit)
      return all.slice(all.findIndex(([name]) => name === "DynamicUser"))
    })
    for (const own of restrictions) {
      expect(own).toEqual(restrictions[0])
      const names = own.map(([name]) => name)
      expect(names).toEqual(expect.arrayContaining(["NoNewPrivileges", "ProtectSystem", "CapabilityBoundingSet"]))
      expect(names).not.toContain("MemoryDenyWriteExecute")
    }
  })
})
