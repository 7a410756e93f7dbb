import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { existsSync, readFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { parse } from "yaml"
import { metricTable } from "../src/platform/telemetry/Metrics.ts"
import { documentedSettings } from "../src/surface/docs/GuideTables.ts"

// What is checked in for running the service in containers, held against the service that it runs

const root = fileURLToPath(new URL("../", import.meta.url))
const text = (file: string) => readFileSync(join(root, file), "utf8")

const ComposeFile = Schema.Struct({
  services: Schema.Record({
    key: Schema.String,
    value: Schema.Struct({
      image: Schema.optional(Schema.String),
      environment: Schema.optionalWith(Schema.Record({ key: Schema.String, value: Schema.Unknown }), {
        default: () => ({})
      }),
      ports: Schema.optionalWith(Schema.Array(Schema.String), { default: () => [] }),
      volumes: Schema.optionalWith(Schema.Array(Schema.String), { default: () => [] })
    })
  })
})

const { services } = Schema.decodeUnknownSync(ComposeFile)(parse(text("docker-compose.yml")))

const composeCommands = [["docker", "compose"], ["docker-compose"]] as const

const compose = composeCommands.find(
  ([file, ...args]) => spawnSync(file, [...args, "version"], { stdio: "ignore" }).status === 0
)

describe("docker-compose.yml", () => {
  it.skipIf(compose === undefined)("is valid to Compose (skipped where Compose is not installed)", () => {
    const [file = "", ...args] = compose ?? []
    const ended = spawnSync(file, [...args, "-f", "docker-compose.yml", "config"], { cwd: root, encoding: "utf8" })
    expect(ended.status, ended.stderr).toBe(0)
    expect(ended.stdout).toContain("service_healthy")
  })

  it("sets settings that there are, with images of one version and ports for this machine alone", () => {
    const set = Object.keys(services["service"]?.environment ?? {})
    expect(set.filter((name) => !documentedSettings.includes(name) && !name.startsWith("OTEL_"))).toEqual([])
    for (const [name, { image, ports }] of Object.entries(services)) {
      if (image !== undefined) expect(image, name).toMatch(/:v?\d[\w.-]*$/)
      for (const port of ports) expect(port, name).toMatch(/^127\.0\.0\.1:/)
    }
  })

  it("mounts files that are checked in", () => {
    const mounted = Object.values(services)
      .flatMap(({ volumes }) => volumes)
      .filter((volume) => volume.startsWith("./"))
      .map((volume) => volume.split(":")[0] ?? "")
    expect(mounted.length).toBeGreaterThanOrEqual(3)
    for (const file of mounted) expect(existsSync(join(root, file)), file).toBe(true)
  })
})

/** What Prometheus adds to a metric's name. */
const endFor = (unit: string, kind: string): string =>
  unit === "s" ? "_seconds" : unit === "1" && kind === "gauge" ? "_ratio" : ""

/** The names that Prometheus gives the service's metrics, and the labels of each. */
const series = new Map(
  Object.entries(metricTable).flatMap(([name, { attributes, kind, unit }]) => {
    const base = `${name.replaceAll(".", "_")}${endFor(unit, kind)}`
    const labels = new Set([
      ...attributes.map((attribute) => attribute.replaceAll(".", "_")),
      // Of every metric, and what every exporter for Prometheus tells processes apart by
      ...["installation", "role", "instance"],
      "le"
    ])
    const names =
      kind === "histogram"
        ? ["_bucket", "_count", "_sum"].map((end) => base + end)
        : [kind === "counter" ? `${base}_total` : base]
    return names.map((one) => [one, labels] as const)
  })
)

/** Every part of a query that names a metric, with the labels that are asked of it. */
const expectKnown = (query: string) => {
  const names = query.match(/\b(connected_payments|http_server|db_client|nodejs)_[a-z0-9_]+/g) ?? []
  const metrics = names.filter((name) => series.has(name))
  const labels = new Set(metrics.flatMap((name) => [...(series.get(name) ?? [])]))
  expect(metrics.length, query).toBeGreaterThan(0)
  expect(
    names.filter((name) => !series.has(name) && !labels.has(name)),
    query
  ).toEqual([])
  const asked = [...query.matchAll(/(?:by \(|\{)([^)}]*)[)}]/g)].flatMap(([, list = ""]) =>
    [...list.matchAll(/([a-z_]+)(?=\s*(?:=|!=|,|$))/g)].map(([name]) => name)
  )
  expect(
    asked.filter((label) => !labels.has(label)),
    query
  ).toEqual([])
}

const queriesIn = (value: unknown): ReadonlyArray<string> =>
  typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([key, part]) =>
        key === "expr" && typeof part === "string" ? [part] : queriesIn(part)
      )
    : []

describe("what operators look at", () => {
  const dashboard: unknown = JSON.parse(text("src/operating/monitoring/dashboard.json"))
  const alerts: unknown = parse(text("src/operating/monitoring/prometheus-alerts.yaml"))

  it("asks for metrics and labels that the service has", () => {
    const onMetrics = queriesIn(dashboard).filter((query) => !query.includes("count_over_time"))
    expect(onMetrics.length).toBeGreaterThan(15)
    for (const query of [...onMetrics, ...queriesIn(alerts)]) expectKnown(query)
  })

  it("shows every metric", () => {
    const shown = queriesIn(dashboard).join("\n")
    const bases = Object.keys(metricTable).filter((name) => name !== "nodejs.eventloop.delay.mean")
    expect(bases.filter((name) => !shown.includes(name.replaceAll(".", "_")))).toEqual([])
  })
})

const LockFile = Schema.Struct({
  packages: Schema.Record({
    key: Schema.String,
    value: Schema.Struct({
      integrity: Schema.optional(Schema.String),
      resolved: Schema.optional(Schema.String),
      link: Schema.optionalWith(Schema.Boolean, { default: () => false }),
      // Inside the archive of the package that brings it
      inBundle: Schema.optionalWith(Schema.Boolean, { default: () => false }),
      dependencies: Schema.optionalWith(Schema.Record({ key: Schema.String, value: Schema.String }), {
        default: () => ({})
      }),
      optionalDependencies: Schema.optionalWith(Schema.Record({ key: Schema.String, value: Schema.String }), {
        default: () => ({})
      })
    })
  })
})

const lock = Schema.decodeUnknownSync(Schema.parseJson(LockFile))(text("package-lock.json"))

describe("the lock file", () => {
  // Without the project itself and its workspaces
  const packages = Object.entries(lock.packages).filter(([path, { link }]) => /^node_modules\//.test(path) && !link)

  it("holds the hash of every package, and names no registry but the public one", () => {
    expect(packages.length).toBeGreaterThan(300)
    expect(
      packages
        .filter(([, { inBundle, integrity }]) => !inBundle && !/^sha512-[\w+/]{86}==$/.test(integrity ?? ""))
        .map(([path]) => path)
    ).toEqual([])
    const elsewhere = packages.filter(
      ([, { resolved }]) => resolved?.startsWith("https://registry.npmjs.org/") === false
    )
    expect(elsewhere.map(([path]) => path)).toEqual([])
  })

  // Where the registry has not got them yet, npm leaves them out, and other platforms then lack them: take an older
  // version of the package that asks for them
  it("has the packages of every platform", () => {
    const missing = packages.flatMap(([path, { optionalDependencies }]) =>
      Object.keys(optionalDependencies).filter(
        (name) =>
          lock.packages[`node_modules/${name}`] === undefined &&
          lock.packages[`${path}/node_modules/${name}`] === undefined
      )
    )
    expect(missing).toEqual([])
  })
})

const dockerfile = text("Dockerfile").replaceAll("\\\n", " ")
const stages = dockerfile.split(/^FROM /m).slice(1)
const lastStage = stages.at(-1) ?? ""

const healthCheck = (port: number) => {
  const [, command = "[]"] = /HEALTHCHECK[^[]*CMD (\[.*\])/.exec(lastStage) ?? []
  const [file = "", ...args] = Schema.decodeUnknownSync(Schema.parseJson(Schema.Array(Schema.String)))(command)
  return spawn(file, args, { env: { PATH: process.env["PATH"], PORT: String(port) }, stdio: "ignore" })
}

describe("the Dockerfile", () => {
  it("ends with an ordinary user, without what only building needs", () => {
    expect(stages.length).toBeGreaterThan(1)
    expect(lastStage).toMatch(/^USER [1-9]\d*:[1-9]\d*$/m)
    expect(lastStage.indexOf("USER ")).toBeLessThan(lastStage.indexOf("CMD"))
    expect(lastStage).not.toMatch(/npm (ci|install|run)/)
    expect(lastStage).toMatch(/MODE=production/)
    expect(stages[1]).toMatch(/npm ci .*--omit=dev --omit=optional/)
  })

  it("keeps of the packages those that the bundles leave outside, which need no others", () => {
    const copied = [...lastStage.matchAll(/^COPY --from=dependencies (\S+)/gm)].map(([, path]) => path)
    expect(copied).toEqual(["/app/node_modules/@opentelemetry"])
    const kept = Object.entries(lock.packages).filter(([path]) => path.startsWith("node_modules/@opentelemetry/"))
    expect(kept.length).toBeGreaterThan(10)
    const needed = kept.flatMap(([, { dependencies }]) => Object.keys(dependencies))
    expect(needed.filter((name) => !name.startsWith("@opentelemetry/"))).toEqual([])
  })

  it("is built on one image, of the newest Node that is tested, by an argument that can be a digest", () => {
    const [, image = ""] = /^ARG NODE_IMAGE=(\S+)$/m.exec(dockerfile) ?? []
    const major = /^node:(\d+)-/.exec(image)?.[1]
    expect(stages.filter((stage) => !/^\$\{NODE_IMAGE\}/.test(stage))).toEqual([])
    expect(services["data-owner"]?.image).toBe(image)
    expect(text(".ci/run")).toContain(`--package=node@${major} `)
  })

  it("copies what is there and what is not kept from it", () => {
    const ignored = text(".dockerignore").trim().split("\n")
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(([, list = ""]) => list.split(" "))
    expect(copied).toContain("src")
    for (const file of copied) {
      expect(existsSync(join(root, file)), file).toBe(true)
      expect(ignored, file).not.toContain(file)
    }
    for (const secret of [".git", ".data", "node_modules"]) expect(ignored).toContain(secret)
  })

  it("has the guides where the compiled service looks for them", () => {
    expect(lastStage).toContain("COPY --from=build /app/src/docs ./src/docs\n")
  })

  it("has a health check that tells a service that is ready from one that is not, and from none", async () => {
    let status = 200
    const server = createServer((request, response) => {
      response.writeHead(request.url === "/health/ready" ? status : 404).end()
    }).listen(0, "127.0.0.1")
    await once(server, "listening")
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    const exitCode = async () => (await once(healthCheck(port), "exit"))[0]
    expect(await exitCode()).toBe(0)
    status = 503
    expect(await exitCode()).toBe(1)
    server.close()
    expect(await exitCode()).toBe(1)
  })
})
