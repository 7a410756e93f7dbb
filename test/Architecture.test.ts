import { existsSync, readFileSync } from "node:fs"
import { dirname, join, relative, resolve } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import { filesOf } from "./harness/Sources.ts"

const root = fileURLToPath(new URL("../src", import.meta.url))

interface Module {
  readonly path: string
  readonly lines: number
  readonly packages: ReadonlyArray<string>
  /** Imported modules of the service, as paths from `src`. */
  readonly imports: ReadonlyArray<{ readonly path: string; readonly typeOnly: boolean }>
}

/** `import … from "x"`, `export … from "x"`, `import "x"` and `import("x")`, each at the start of a statement. */
const statement =
  /^(?:import|export)\s+(?<type>type\s)?(?:[^"';]*?\sfrom\s+)?"(?<source>[^"]+)"|\bimport\(\s*"(?<dynamic>[^"]+)"\s*\)/gm

const readModule = (path: string): Module => {
  const text = readFileSync(join(root, path), "utf8")
  const found = [...text.matchAll(statement)].map(({ groups = {} }) => ({
    source: groups["source"] ?? groups["dynamic"] ?? "",
    typeOnly: groups["type"] !== undefined
  }))
  return {
    path,
    lines: text.split("\n").length - 1,
    packages: found.map(({ source }) => source).filter((source) => !source.startsWith(".")),
    imports: found
      .filter(({ source }) => source.startsWith("."))
      .map(({ source, typeOnly }) => ({
        path: relative(root, resolve(dirname(join(root, path)), source)).replaceAll("\\", "/"),
        typeOnly
      }))
  }
}

const modules: ReadonlyArray<Module> = filesOf("src")
  .filter((path) => /\.tsx?$/.test(path))
  .toSorted()
  .map(readModule)

const byPath = new Map(modules.map((module) => [module.path, module]))

/** The rooms of the service, from the top: a module uses its own room and those below it, never one above. */
const rooms = [
  "app",
  "client",
  "surface",
  "inbound",
  "destinations",
  "payments",
  "engine",
  "identity",
  "server",
  "events",
  "platform"
]

const roomOf = (path: string): string => path.slice(0, path.indexOf("/"))

/** Packages of their own, which no room depends on. */
const standsApart = (path: string) => /^(emulator|webhooks|console)\//.test(path)

/** Every module that is reached from one, itself included. */
const reachedFrom = (start: string, follow: (edge: Module["imports"][number]) => boolean): ReadonlySet<string> => {
  const reached = new Set([start])
  for (const path of reached) {
    for (const edge of byPath.get(path)?.imports ?? []) {
      if (follow(edge)) reached.add(edge.path)
    }
  }
  return reached
}

describe("the service's modules", () => {
  it("are all found, and import modules that exist", () => {
    expect(modules.length).toBeGreaterThan(50)
    expect(byPath.get("app/Service.ts")?.imports.length).toBeGreaterThan(10)
    const missing = modules.flatMap(({ imports, path }) =>
      imports.filter((edge) => !byPath.has(edge.path)).map((edge) => `${path} → ${edge.path}`)
    )
    expect(missing.filter((edge) => !edge.endsWith(".json"))).toEqual([])
  })

  it("are in one of the rooms, and use their own and those below alone", () => {
    const inHouse = modules.filter(({ path }) => !standsApart(path))
    expect([...new Set(inHouse.map(({ path }) => roomOf(path)))].toSorted()).toEqual(rooms.toSorted())
    const upward = inHouse.flatMap(({ imports, path }) =>
      imports
        .filter((edge) => byPath.has(edge.path) && !standsApart(edge.path))
        .filter((edge) => rooms.indexOf(roomOf(edge.path)) < rooms.indexOf(roomOf(path)))
        .map((edge) => `${path} → ${edge.path}`)
    )
    expect(upward).toEqual([])
  })

  it("have no import circles, types included", () => {
    const circles = modules.flatMap(({ imports, path }) =>
      imports.filter((edge) => reachedFrom(edge.path, () => true).has(path)).map((edge) => `${path} → ${edge.path}`)
    )
    expect(circles).toEqual([])
  })

  it("use Stripe's package in its adapter and the emulator only", () => {
    const users = modules.filter(({ packages }) => packages.some((name) => /^stripe(\/|$)/.test(name)))
    expect(
      users.map(({ path }) => path).filter((path) => !/^payments\/[\w-]+\/Stripe\w*\.ts$|^emulator\//.test(path))
    ).toEqual([])
    expect(users.some(({ path }) => path.startsWith("payments/"))).toBe(true)
  })

  it("reach the emulator from the local start, its own command and what is for tests alone, and it reaches nothing of theirs", () => {
    const fromOutside = modules
      .filter(({ path }) => !path.startsWith("emulator/"))
      .filter(({ imports }) => imports.some((edge) => edge.path.startsWith("emulator/")))
    const allowed = /^app\/(local\/\w+\.ts$|cli\/commands\/Emulator\.ts$|testing\/)/
    expect(fromOutside.map(({ path }) => path).filter((path) => !allowed.test(path))).toEqual([])
    const leaks = modules
      .filter(({ path }) => path.startsWith("emulator/"))
      .flatMap(({ imports, path }) =>
        imports.filter((e) => !e.path.startsWith("emulator/")).map((e) => `${path} → ${e.path}`)
      )
    expect(leaks).toEqual([])
  })

  it("of consumers' webhooks use Node's own modules and each other alone", () => {
    const own = modules.filter(({ path }) => path.startsWith("webhooks/"))
    expect(own.length).toBeGreaterThan(0)
    expect([...new Set(own.flatMap(({ packages }) => packages))].toSorted()).toEqual(["node:crypto", "node:http"])
    expect(own.flatMap(({ imports }) => imports).filter((edge) => !edge.path.startsWith("webhooks/"))).toEqual([])
    const users = modules.filter(
      ({ path }) => !path.startsWith("webhooks/") && path !== "app/index.ts" && !path.startsWith("app/cli/")
    )
    expect(
      users.filter(({ imports }) => imports.some((edge) => edge.path.startsWith("webhooks/"))).map(({ path }) => path)
    ).toEqual([])
  })

  it("of the console are for browsers: packages of its own, and of the service the types of the contract and the client alone", () => {
    const own = modules
      .filter(({ path }) => path.startsWith("console/"))
      // Its imports are in the texts that it shows
      .filter(({ path }) => path !== "console/pages/destinations/snippets.ts")
    expect(own.length).toBeGreaterThan(0)
    const values = own.flatMap(({ imports, path }) =>
      imports
        .filter((edge) => !edge.path.startsWith("console/"))
        .filter((edge) => !edge.typeOnly || !/^(surface\/contract|client|events|identity)\//.test(edge.path))
        .map((edge) => `${path} → ${edge.path}`)
    )
    expect(values).toEqual([])
    const packages = own.flatMap(({ packages, path }) =>
      packages
        .filter(
          (name) =>
            !/^(preact(\/hooks)?|@preact\/signals|wouter-preact(\/use-browser-location)?|d3-scale|d3-shape)$/.test(name)
        )
        .filter((name) => !(path === "console/api/Types.ts" && /^(effect|@effect\/platform)$/.test(name)))
        .map((name) => `${path} → ${name}`)
    )
    expect(packages).toEqual([])
    const users = modules.filter(({ path }) => !path.startsWith("console/"))
    expect(
      users.filter(({ imports }) => imports.some((edge) => edge.path.startsWith("console/"))).map(({ path }) => path)
    ).toEqual([])
  })

  it("of the contract reach no server code", () => {
    const contracts = modules
      .map(({ path }) => path)
      .filter((path) => /(^|\/)\w*Api\.ts$|^surface\/contract\/|^client\//.test(path) && !standsApart(path))
    expect(contracts.length).toBeGreaterThan(4)
    const server = contracts.flatMap((start) =>
      [...reachedFrom(start, ({ typeOnly }) => !typeOnly)].flatMap((path) =>
        (byPath.get(path)?.packages ?? [])
          .filter((name) => /^(@effect\/(platform-node|sql)|pg$|node:|undici|stripe)/.test(name))
          .map((name) => `${start} → ${path} → ${name}`)
      )
    )
    expect(server).toEqual([])
  })

  const textOf = (path: string) => readFileSync(join(root, path), "utf8")
  const modulesWith = (pattern: RegExp) =>
    modules.map(({ path }) => path).filter((path) => !path.includes("/migrations/") && pattern.test(textOf(path)))

  it("store events, deliveries and places in the queue through one door", () => {
    expect(modulesWith(/INSERT INTO payments\.(events|deliveries|skipped_events)\b/)).toEqual([
      "destinations/publishing/PublicationStatement.ts"
    ])
    expect(modulesWith(/INSERT INTO payments\.delivery_queue\b/)).toEqual(["engine/queue/Enqueue.ts"])
  })

  it("hold SQL in repos and statements only, and in the rooms of the database and the queue", () => {
    // In the kit, a statement is beside its use
    const allowed = /(Repo|Statements?)\.ts$|^(platform\/(storage|kit)|engine\/queue)\//
    const holding = modulesWith(/(?<![`\w.])sql(?:<[^`;]*>)?`/)
    expect(holding.length).toBeGreaterThan(20)
    expect(holding.filter((path) => !allowed.test(path))).toEqual([])
  })

  it("say in one place how long a replaced secret signs", () => {
    expect(modulesWith(/retired_at\s*(?:[<>+]|- interval)/)).toEqual(["engine/attempts/Signing.ts"])
  })

  it("name a service by a folder that it is in: so says the error of whoever lacks it", () => {
    const strayed = modules.flatMap(({ path }) =>
      [...textOf(path).matchAll(/"connected-payments\/([a-z-]+)\/[A-Z]\w+"/g)]
        .filter(([, folder = ""]) => !dirname(path).split("/").includes(folder))
        .map(([key]) => `${path}: ${key}`)
    )
    expect(strayed).toEqual([])
  })

  it("are at most 20 in a folder", () => {
    const folders = modules.map(({ path }) => dirname(path))
    const crowded = new Set(folders.filter((one) => folders.filter((folder) => folder === one).length > 20))
    expect([...crowded]).toEqual([])
    expect(new Set(folders).size).toBeGreaterThan(40)
  })

  it("are at most 600 lines long", () => {
    expect(modules.filter(({ lines }) => lines > 600).map(({ lines, path }) => `${path}: ${lines}`)).toEqual([])
  })
})

/** The longest declaration of a function at the top of a module, from its name to the brace that ends it. */
const longFunctions = (path: string): ReadonlyArray<string> =>
  [
    ...readFileSync(join(root, path), "utf8").matchAll(
      /^(?:export )?const (\w+)[^\n]*(?:=>|function\*? ?\([^\n]*\)?|Effect\.fn\w*\([^\n]*)\s[({[]?\n(?:(?! {0}\S)[^\n]*\n)*[)}\]]+/gm
    )
  ]
    .map(([text, name]) => ({ name, lines: text.split("\n").length }))
    .filter(({ lines }) => lines > 60)
    .map(({ name }) => `${path}: ${name}`)

describe("functions", () => {
  it("have at most 60 lines: a maker wires, and its methods have names", () => {
    // The claim is one statement; the schema is a list of statements
    const exempt = /^(engine\/queue\/Claim\.ts|platform\/storage\/schema\/\w+\.ts)$/
    const checked = modules.filter(({ path }) => !exempt.test(path))
    expect(checked.flatMap(({ path }) => longFunctions(path))).toEqual([])
    // The search finds such a function
    expect(longFunctions("platform/storage/schema/Accounts.ts").join()).toContain("accounts")
  })
})

describe("files that modules, tests and benches name by a relative address", () => {
  it("exist", () => {
    const missing = (["src", "test"] as const).flatMap((folder) =>
      filesOf(folder)
        .filter((path) => /\.[cm]?tsx?$/.test(path))
        .map((path) => join(root, "..", folder, path))
        .flatMap((path) =>
          [...readFileSync(path, "utf8").matchAll(/new URL\("(\.[^"]*)", import\.meta\.url\)/g)]
            .map(([, address = ""]) => new URL(address, pathToFileURL(path)))
            // Built when they are needed
            .filter((url) => !/\/(?:dist|console-pictures|node_modules)\//.test(url.pathname) && !existsSync(url))
            .map((url) => `${path}: ${url.pathname}`)
        )
    )
    expect(missing).toEqual([])
  })
})
