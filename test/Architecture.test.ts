import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"

const root = fileURLToPath(new URL("../src", import.meta.url))

/** A module of the service: what it imports, with types and without. */
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

const modules: ReadonlyArray<Module> = readdirSync(root, { recursive: true, encoding: "utf8" })
  .map((path) => path.replaceAll("\\", "/"))
  // Without what the workspaces' own builds left
  .filter((path) => /\.tsx?$/.test(path) && !/^\w+\/dist\//.test(path))
  .toSorted()
  .map(readModule)

const byPath = new Map(modules.map((module) => [module.path, module]))

/** What serves a slice: its handlers stand on a floor of their own, above every slice. */
const serving = /^(?:identity|images|provider|endpoints|deliveries|inbound)\/(?:[\w-]+\/)?\w*Http\.ts$/

const slice = (folder: string) => ({
  name: folder,
  holds: { test: (path: string) => path.startsWith(`${folder}/`) && !serving.test(path) }
})

/** The floors, the lowest first: a module may use its own floor and those below. A file that is on none fails. */
const floors: ReadonlyArray<{ readonly name: string; readonly holds: { readonly test: (path: string) => boolean } }> = [
  { name: "ground", holds: /^(bounds|errors|settings|events|fibers)\// },
  slice("telemetry"),
  slice("storage"),
  slice("kit"),
  slice("identity"),
  slice("images"),
  slice("provider"),
  slice("endpoints"),
  slice("publishing"),
  slice("deliveries"),
  slice("inbound"),
  { name: "contract", holds: /^(contract|client)\// },
  { name: "handlers", holds: serving },
  slice("docs"),
  slice("mcp"),
  slice("http"),
  { name: "service", holds: /^(Service|Embedding)\.ts$/ },
  { name: "process", holds: /^(main|Run|index|unstable)\.ts$|^(cli|local|testing)\// }
]

const standsApart = (path: string) => /^(emulator|webhooks|console)\//.test(path)

const floorOf = (path: string): number => floors.findIndex(({ holds }) => holds.test(path))

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
    expect(byPath.get("Service.ts")?.imports.length).toBeGreaterThan(10)
    const missing = modules.flatMap(({ imports, path }) =>
      imports.filter((edge) => !byPath.has(edge.path)).map((edge) => `${path} → ${edge.path}`)
    )
    expect(missing.filter((edge) => !edge.endsWith(".json"))).toEqual([])
  })

  it("each stand on a floor, and use their own and those below alone", () => {
    const inHouse = modules.filter(({ path }) => !standsApart(path))
    expect(inHouse.filter(({ path }) => floorOf(path) === -1).map(({ path }) => path)).toEqual([])
    const upward = inHouse.flatMap(({ imports, path }) =>
      imports
        .filter((edge) => byPath.has(edge.path) && !standsApart(edge.path))
        .filter((edge) => floorOf(edge.path) > floorOf(path))
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
      users.map(({ path }) => path).filter((path) => !/^provider\/[\w-]+\/Stripe\w*\.ts$|^emulator\//.test(path))
    ).toEqual([])
    expect(users.some(({ path }) => path.startsWith("provider/"))).toBe(true)
  })

  it("reach the emulator from the local start, its own command and what is for tests alone, and it reaches nothing of theirs", () => {
    const fromOutside = modules
      .filter(({ path }) => !path.startsWith("emulator/"))
      .filter(({ imports }) => imports.some((edge) => edge.path.startsWith("emulator/")))
    const allowed = /^local\/\w+\.ts$|^cli\/Emulator\w*\.ts$|^testing\//
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
      ({ path }) => !path.startsWith("webhooks/") && path !== "index.ts" && !path.startsWith("cli/")
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
        .filter((edge) => !edge.typeOnly || !/^(contract|client|events|identity)\//.test(edge.path))
        .map((edge) => `${path} → ${edge.path}`)
    )
    expect(values).toEqual([])
    const packages = own.flatMap(({ packages, path }) =>
      packages
        .filter((name) => !/^(preact(\/hooks)?|@preact\/signals|wouter-preact|d3-scale|d3-shape)$/.test(name))
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
      .filter((path) => /(^|\/)\w*Api\.ts$|^contract\/|^client\//.test(path) && !standsApart(path))
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
      "destinations/publishing/Publication.ts"
    ])
    expect(modulesWith(/INSERT INTO payments\.delivery_queue\b/)).toEqual(["engine/queue/Enqueue.ts"])
  })

  it("say in one place how long a replaced secret signs", () => {
    expect(modulesWith(/retired_at\s*(?:[<>+]|- interval)/)).toEqual(["engine/attempts/SecretLifetime.ts"])
  })

  it("are at most 600 lines long", () => {
    const long = modules.filter(({ lines }) => lines > 600)
    expect(long.map(({ lines, path }) => `${path}: ${lines}`)).toEqual([])
  })
})
