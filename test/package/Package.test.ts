import { execFile, spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { once } from "node:events"
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Effect, Schema } from "effect"
import { build } from "esbuild"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { freePort } from "../harness/FreePort.ts"
import { packumentsOf, startRegistry } from "./LocalRegistry.ts"
import { link, npmEnvironment } from "./PackWorkspace.ts"

const run = promisify(execFile)
const root = fileURLToPath(new URL("../..", import.meta.url))
const compiler = join(root, "node_modules/typescript/bin/tsc")
// Several threads check the same declarations several times: twice the processor time
const singleThreaded = "--singleThreaded"
const examples = ["whole-service", "own-events", "own-provider", "pixbank", "layers-alone", "mounted"]

interface Manifest {
  readonly name: string
  readonly version: string
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly peerDependencies: Readonly<Record<string, string>>
  readonly optionalDependencies: Readonly<Record<string, string>>
  readonly scripts: Readonly<Record<string, string>>
}

// The project's own file
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Manifest

/** Compiles and packs a copy, so that nobody who uses the checkout meanwhile is disturbed. */
const pack = async (directory: string) => {
  const copy = join(directory, "copy")
  for (const file of [
    "package.json",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "tsconfig.json",
    "src",
    "test/examples"
  ]) {
    cpSync(join(root, file), join(copy, file), { recursive: true })
  }
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"))
  const options = ["--project", "src/tsconfig.json", "--noCheck", singleThreaded]
  await run(process.execPath, [compiler, ...options], { cwd: copy })
  const parts = [
    "src/surface/docs/buildDocument.ts",
    "src/surface/http/console/build.ts",
    "src/app/cli/buildPrograms.ts"
  ]
  for (const part of parts) {
    await run(process.execPath, ["--import", "tsx", part], { cwd: copy })
  }
  const { stdout } = await run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", directory], {
    cwd: copy,
    maxBuffer: 2 ** 26
  })
  // What npm 10 and 11 print
  return JSON.parse(stdout) as ReadonlyArray<{
    readonly filename: string
    readonly files: ReadonlyArray<{ readonly path: string }>
  }>
}

const unpack = async (archive: string, modules: string) => {
  const target = join(modules, manifest.name)
  mkdirSync(target, { recursive: true })
  await run("tar", ["-xzf", archive, "-C", target, "--strip-components=1"])
}

/**
 * Prints a module that exports every value of the entries that are promises again, with the services and their layers:
 * its declarations can be written only if every type in these has a name that the package exports.
 */
const declarations = `
  import { Context, Layer } from "effect"
  const lines = ['import { Effect } from "effect"']
  for (const entry of ["", "/testing", "/client"]) {
    const module = await import("connected-payments" + entry)
    const name = "entry" + entry.slice(1)
    lines.push("import * as " + name + " from " + JSON.stringify("connected-payments" + entry))
    for (const [key, value] of Object.entries(module)) {
      const id = name + "_" + key
      lines.push("export const " + id + " = " + name + "." + key)
      if (!Context.isTag(value)) continue
      lines.push("export const " + id + "_service = Effect.map(" + name + "." + key + ", (service) => service)")
      if (Layer.isLayer(value.layer)) lines.push("export const " + id + "_layer = " + name + "." + key + ".layer")
    }
  }
  console.log(lines.join("\\n"))`

/** The names, types included, that a module's declarations export. */
const namesIn = (declarations: string): ReadonlyArray<string> => {
  const text = readFileSync(declarations, "utf8")
  const all = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, found = ""]) => found)
  const listed = all(/^export (?:type )?\{([^}]*)\}/gm).flatMap((names) => names.match(/\w+(?=\s*(?:,|$))/g) ?? [])
  const declared = all(/^export (?:declare )?(?:class|const|function|interface|type) (\w+)/gm)
  const passedOn = all(/^export (?:type )?\* from "(.+)\.[jt]s"/gm)
  return [...listed, ...declared, ...passedOn.flatMap((path) => namesIn(join(declarations, "..", `${path}.d.ts`)))]
}

describe("the package", () => {
  let directory = ""
  let project = ""
  let archive = ""
  let files: ReadonlyArray<string> = []

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "connected-payments-package-"))
    const [packed] = await pack(directory)
    files = (packed?.files ?? []).map(({ path }) => path)
    archive = join(directory, packed?.filename ?? "")
    project = join(directory, "project")
    const modules = join(project, "node_modules")
    await unpack(archive, modules)
    // What it declares, and nothing else: a package that it forgets to name is missed here
    const declared = { ...manifest.dependencies, ...manifest.peerDependencies, ...manifest.optionalDependencies }
    for (const name of [...Object.keys(declared), "@types/node", "@types/pg"]) link(name, modules)
  })

  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  it("holds the compiled service, its types and its papers alone", () => {
    const others = files.filter(
      (path) =>
        !/^dist\/.+\.(js|d\.ts)$|^dist\/console\/(console\.json$|assets\/[\w-]+\.(js|css)(\.br|\.gz)?$)|^dist\/(third-party-licences\.txt|docs\/openapi\.json)$|^src\/(docs\/(?:(?:guides|maintaining)\/[\w-]+\.md|examples\/\w+\.json)$|operating\/)|^test\/examples\/|^(package\.json|README\.md|LICENSE|CHANGELOG\.md)$/.test(
          path
        )
    )
    expect(others).toEqual([])
    expect(files).toContain("src/docs/examples/errors.json")
    // What the guide on embedding shows
    for (const name of examples) {
      expect(files).toContain(`test/examples/embedding/${name}.ts`)
    }
    const exported = Object.values(manifest.exports).flatMap((entry) =>
      typeof entry === "string" ? [entry] : [entry.types, entry.default]
    )
    expect(exported.filter((path) => !files.includes(path.replace("./", "")))).toEqual([])
  })

  it("holds the console built and compressed, and none of its sources", () => {
    const list = JSON.parse(
      readFileSync(join(project, "node_modules", manifest.name, "dist/console/console.json"), "utf8")
    )
    const names: ReadonlyArray<string> = list.files.map(({ name }: { readonly name: string }) => name)
    expect(names).toContain(list.script)
    expect(names).toContain(list.style)
    const expected = names.flatMap((name) => ["", ".br", ".gz"].map((ending) => `dist/console/assets/${name}${ending}`))
    expect(files.filter((path) => path.startsWith("dist/console/")).toSorted()).toEqual(
      [...expected, "dist/console/console.json"].toSorted()
    )
  })

  it("is built afresh whenever it is packed", () => {
    expect(manifest.scripts["prepack"]).toBe("npm run build")
  })

  it("starts as the image's last stage starts it, and in production asks for its settings", async () => {
    const dockerfile = readFileSync(join(root, "Dockerfile"), "utf8").replaceAll("\\\n", " ")
    const [, command = "[]"] = /^CMD (\[.*\])$/m.exec(dockerfile.split(/^FROM /m).at(-1) ?? "") ?? []
    const [file = "", ...args] = Schema.decodeUnknownSync(Schema.parseJson(Schema.Array(Schema.String)))(command)
    // Where the package is, as in the image, its sources are not
    const cwd = join(project, "node_modules", manifest.name)
    const env = { PATH: process.env["PATH"], MODE: "production" }
    const refused = await run(file, args, { cwd, env }).catch((error: unknown) => Object(error))
    expect(refused.code, refused.stderr).toBe(1)
    expect(refused.stderr).toContain("DATABASE_URL: is required with MODE=production")
    const { stdout } = await run(process.execPath, ["dist/app/cli/main.js", "--version"], { cwd })
    expect(stdout).toContain(manifest.version)
  })

  it("has the programs with the packages they use, and the licences of those", async () => {
    const installed = join(project, "node_modules", manifest.name)
    const bundled = join(directory, "bundled")
    // Where nothing else can be found
    for (const path of ["package.json", "dist/app/cli/main.js", "dist/app/main.js", "dist/chunks"]) {
      cpSync(join(installed, path), join(bundled, path), { recursive: true })
    }
    const { stdout } = await run(process.execPath, ["dist/app/cli/main.js", "--version"], { cwd: bundled })
    expect(stdout).toContain(manifest.version)
    // A command as on a plain machine, by the example of the units' settings
    const settings = join(directory, "settings.env")
    const example = readFileSync(join(installed, "src/operating/systemd/settings.env"), "utf8")
    writeFileSync(
      settings,
      example
        .replace("example-of-32-bytes-in-base64", Buffer.alloc(32).toString("base64"))
        .replace("@db.example:5432", "@127.0.0.1:1")
    )
    const command = ["dist/app/cli/main.js", "--env-file", settings, "keys", "list", "--organization", randomUUID()]
    const refused = await run(process.execPath, command, { cwd: bundled, env: { PATH: process.env["PATH"] } }).catch(
      (error: unknown) => Object(error)
    )
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("DATABASE_URL points to 127.0.0.1:1")])
    const licences = readFileSync(join(installed, "dist/third-party-licences.txt"), "utf8")
    for (const name of ["effect", "@effect/platform-node", "pg", "stripe", "undici"]) {
      expect(licences).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+ \\(MIT\\)$`, "m"))
    }
    expect(licences).not.toContain("no licence named")
  })

  it("serves the console and the guides from its bundles", async () => {
    const port = await Effect.runPromise(freePort)
    const url = `http://127.0.0.1:${port}`
    const service = spawn(process.execPath, [join("node_modules", manifest.name, "dist/app/main.js")], {
      cwd: project,
      env: { PATH: process.env["PATH"], DATA_DIR: join(directory, "data"), HOST: "127.0.0.1", PORT: String(port) },
      stdio: "ignore"
    })
    const ended = once(service, "exit")
    try {
      const statusOf = (path: string) =>
        fetch(`${url}${path}`).then(
          ({ status }) => status,
          () => null
        )
      await expect.poll(() => statusOf("/health/ready"), { timeout: 60_000, interval: 200 }).toBe(200)
      for (const path of ["/console", "/docs", "/docs/search?q=webhook", "/openapi.json"]) {
        expect([path, await statusOf(path)]).toEqual([path, 200])
      }
    } finally {
      service.kill()
      await ended
    }
  })

  it("gives a consumer of webhooks what it needs without any dependency", async () => {
    const alone = join(directory, "alone")
    await unpack(archive, join(alone, "node_modules"))
    const script = `import("connected-payments/webhooks").then((kit) => console.log(typeof kit.verifyWebhook))`
    const { stdout } = await run(process.execPath, ["-e", script], { cwd: alone })
    expect(stdout.trim()).toBe("function")
  })

  it("has the guides that it serves", async () => {
    const guides = new URL(`file://${project}/node_modules/${manifest.name}/dist/surface/docs/Guides.js`)
    const script = `
      const { Effect } = await import("effect")
      const { guideNames, readGuides } = await import(${JSON.stringify(guides.href)})
      console.log((await Effect.runPromise(readGuides)).length === guideNames.length)`
    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", script], { cwd: project })
    expect(stdout.trim()).toBe("true")
  })

  it("gives a client the whole contract without server code", async () => {
    const script = `
      const { Api, RateLimitExceeded } = await import("connected-payments/api")
      const { makeClient } = await import("connected-payments/client")
      console.log("products" in Api.groups, typeof RateLimitExceeded, typeof makeClient)`
    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", script], { cwd: project })
    expect(stdout.trim()).toBe("true function function")
  })

  it("has two entries for embedding teams, which share no name: the one that stays, and the unstable one", async () => {
    const dist = join(project, "node_modules", manifest.name, "dist/app")
    const [stable, unstable] = [namesIn(join(dist, "index.d.ts")), namesIn(join(dist, "unstable.d.ts"))]
    expect(stable).toEqual(expect.arrayContaining(["Accounts", "LinkedBy", "embeddedServiceLayer"]))
    expect(unstable.filter((name) => stable.includes(name))).toEqual([])
    const script = `console.log(Object.keys(await import("connected-payments/unstable")).join())`
    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", script], { cwd: project })
    const values = stdout.trim().split(",")
    expect(values).toEqual(expect.arrayContaining(["Retention", "servicesLayer"]))
    expect(values.filter((name) => !unstable.includes(name))).toEqual([])
  })

  it("can be bundled: what clients and consumers import whole, the service with its packages left out", async () => {
    const script = `
      import { Api } from "connected-payments/api"
      import { makeClient } from "connected-payments/client"
      import { verifyWebhook } from "connected-payments/webhooks"
      console.log("products" in Api.groups, typeof makeClient, typeof verifyWebhook)`
    const common = { bundle: true, platform: "node", format: "esm" } as const
    const alone = join(directory, "bundles", "alone.mjs")
    await build({
      ...common,
      stdin: { contents: script, resolveDir: project },
      outfile: alone,
      // What esbuild's own manual gives modules whose dependencies call require
      banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url)' }
    })
    expect((await run(process.execPath, [alone])).stdout.trim()).toBe("true function function")
    const service = join(project, "bundled.mjs")
    // From within the team's project: the checkout's own settings would lead to its sources
    const contents = readFileSync(join(root, "test/examples/embedding/own-events.ts"), "utf8")
    const stdin = { contents, resolveDir: project, loader: "ts" } as const
    await build({ ...common, stdin, outfile: service, packages: "external" })
    expect((await run(process.execPath, [service], { cwd: project })).stdout).toContain(
      "own events: order.shipped, 1 delivery"
    )
  })

  it("is installed by the guide's line beside the peers that it takes, not those of their next major", async () => {
    const guide = readFileSync(join(root, "src/docs/guides/embedding.md"), "utf8")
    const [line = ""] = /^npm install \.\/connected-payments-\d.*$/m.exec(guide) ?? []
    const client = readFileSync(join(root, "src/docs/guides/client.md"), "utf8")
    const [clientLine = ""] = /^npm install "\$URL\/packages\/connected-payments-client.*$/m.exec(client) ?? []
    const fresh = join(directory, "fresh")
    mkdirSync(fresh)
    cpSync(archive, join(fresh, basename(archive)))
    // An archive of what it declares, which is what counts here
    cpSync(join(root, "src/client/package.json"), join(fresh, "client/package.json"))
    await run("npm", ["pack", "./client", "--ignore-scripts"], { cwd: fresh, env: npmEnvironment })
    const { server, url } = await startRegistry(packumentsOf(join(root, "package-lock.json")))
    // Versions are chosen and written down; nothing is fetched
    const env = {
      ...npmEnvironment,
      npm_config_registry: url,
      npm_config_cache: join(directory, "cache"),
      npm_config_package_lock_only: "true"
    }
    const install = async (command: string) => {
      rmSync(join(fresh, "package-lock.json"), { force: true })
      writeFileSync(join(fresh, "package.json"), JSON.stringify({ name: "fresh", private: true }))
      return run("bash", ["-c", command], { cwd: fresh, env }).then(
        () => "installed",
        (error: unknown) => String(Object(error).stderr)
      )
    }
    try {
      const unpinned = line.replaceAll(/(?<=[a-z])@[\d.]+/g, "")
      expect(unpinned).not.toBe(line)
      expect(await install(unpinned)).toContain("ERESOLVE")
      expect(await install(line)).toBe("installed")
      const { packages } = JSON.parse(readFileSync(join(fresh, "package-lock.json"), "utf8"))
      for (const name of Object.keys(manifest.peerDependencies)) {
        const own = JSON.parse(readFileSync(join(root, "node_modules", name, "package.json"), "utf8"))
        expect([name, packages[`node_modules/${name}`]?.version]).toEqual([name, own.version])
      }
      // The clients: with the peers, without any, and beside the next major, whose teams take the one by fetch
      const ofClient = clientLine.replace(/"\$URL\/packages\/(\S+)"/, "./$1")
      expect(await install(ofClient)).toBe("installed")
      expect(await install(ofClient.replaceAll(/ @?effect\S*/g, ""))).toBe("installed")
      expect(await install(ofClient.replace(/effect@3 .*/, "effect@4"))).toBe("installed")
    } finally {
      server.close()
    }
  })

  /** Compiles an embedding team's project with the examples and `declarations`, and runs the examples there. */
  const embed = async (project: string, tsc: ReadonlyArray<string>) => {
    writeFileSync(
      join(project, "tsconfig.json"),
      JSON.stringify({
        compilerOptions: {
          target: "ES2023",
          lib: ["ES2023", "DOM", "DOM.Iterable"],
          types: ["node"],
          module: "NodeNext",
          strict: true,
          exactOptionalPropertyTypes: true,
          noUncheckedIndexedAccess: true,
          skipLibCheck: false,
          // A library's own exports have to be nameable: whatever it makes of ours is written into its declarations
          declaration: true,
          outDir: "out"
        },
        include: ["*.ts"]
      })
    )
    for (const name of examples) {
      cpSync(join(root, "test/examples/embedding", `${name}.ts`), join(project, `${name}.ts`))
    }
    const { stdout: declared } = await run(process.execPath, ["--input-type=module", "-e", declarations], {
      cwd: project
    })
    expect(declared.split("\n").length).toBeGreaterThan(150)
    writeFileSync(join(project, "declared.ts"), declared)
    const checked = await run(process.execPath, [...tsc], { cwd: project }).catch((error: unknown) => Object(error))
    expect(String(checked.stdout)).toBe("")
    // One after the other in one process, which loads the package once
    const script = `for (const name of ${JSON.stringify(examples)}) await import(\`./out/\${name}.js\`)`
    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", script], {
      cwd: project,
      env: { ...process.env, PORT: String(await Effect.runPromise(freePort)) },
      timeout: 120_000
    })
    expect(stdout.split("\n").filter((line) => /^[a-z]+ [a-z]+: /.test(line))).toEqual([
      "whole service: ProviderAccountNotConnected",
      "own events: order.shipped, 1 delivery",
      'own provider: [{"amount":4200,"currency":"brl"}], prod_',
      'layers alone: pk_test_, Shop, 0, [{"amount":0,"currency":"usd","source_types":{"card":0}}]',
      'mounted service: The shop, {"status":"ready"}'
    ])
  }

  it("type-checks in an embedding team's project, and runs the examples there", async () => {
    writeFileSync(join(project, "package.json"), JSON.stringify({ name: "fresh", private: true, type: "module" }))
    await embed(project, [compiler, singleThreaded])
  })

  it("does so with the oldest Effect 3 that its peers' ranges have, and with TypeScript 5.9", async () => {
    const oldest = join(directory, "oldest")
    cpSync(join(root, "test/package/oldest"), oldest, { recursive: true })
    const { dependencies }: Pick<Manifest, "dependencies"> = JSON.parse(
      readFileSync(join(oldest, "package.json"), "utf8")
    )
    for (const [name, range] of Object.entries(manifest.peerDependencies)) {
      expect([name, range]).toEqual([name, expect.stringMatching(`^(\\^|>=)${dependencies[name]}( |$)`)])
    }
    await run("npm", ["ci", "--ignore-scripts", "--prefer-offline"], { cwd: oldest, env: npmEnvironment })
    const modules = join(oldest, "node_modules")
    await unpack(archive, modules)
    const others = Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })
    for (const name of [...others, "@types/node", "@types/pg"]) {
      // As npm nests what is there for others, in a version of theirs
      link(name, existsSync(join(modules, name)) ? join(modules, manifest.name, "node_modules") : modules)
    }
    // Declarations name a helper type of a newer Effect
    await embed(oldest, [join(modules, "typescript/bin/tsc"), "--skipLibCheck"])
  })
})
