import { randomUUID } from "node:crypto"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { request } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { nginxRoutes, type RouteMap } from "../../src/cells/RouteExport.ts"
import { httpConsumer, httpsConsumer } from "../deliveries/TransportServers.ts"
import { eventually } from "../harness/Eventually.ts"
import { freePort } from "../harness/FreePort.ts"
import { installed, startInstalled } from "../harness/Installed.ts"

// The map that `cells routes --format nginx` writes, as nginx itself understands it

const nginx = installed(["/usr/sbin/nginx", "nginx"], ["-v"])
const note = nginx === undefined ? " (skipped: nginx is not installed)" : ""

/** What one certificate of the tests vouches for. */
const testAuthority = fileURLToPath(new URL("../deliveries/fixtures/localhost.cert.pem", import.meta.url))

/** The server that the map's own comments describe. */
const serverOf = (routes: string): string =>
  routes
    .split("\n")
    .filter((line) => line.startsWith("#   "))
    .map((line) => line.slice(1))
    .join("\n")
    .replace(/(proxy_ssl_trusted_certificate) .*;/, `$1 ${testAuthority};`)

interface Answer {
  readonly status: number | undefined
  readonly body: string
}

/** A request whose path goes out as it is written here: `fetch` would resolve its dots. */
const send = (port: number, path: string, headers: Readonly<Record<string, string>> = {}) =>
  Effect.async<Answer, Error>((resume) => {
    const sent = request({ host: "127.0.0.1", port, path, headers, agent: false }, (response) => {
      let body = ""
      response.setEncoding("utf8")
      response.on("data", (chunk: string) => {
        body += chunk
      })
      response.on("end", () => resume(Effect.succeed({ status: response.statusCode, body })))
    })
    sent.on("error", (error) => resume(Effect.fail(error)))
    sent.end()
  })

const startNginx = (map: RouteMap) =>
  Effect.gen(function* () {
    const directory = yield* Effect.acquireRelease(
      Effect.promise(() => mkdtemp(join(tmpdir(), "connected-payments-nginx-"))),
      (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
    )
    const port = yield* freePort
    const routes = nginxRoutes(map)
    const configuration = join(directory, "nginx.conf")
    const below = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
      (name) => `${name}_temp_path ${join(directory, name)};`
    )
    yield* Effect.promise(() => writeFile(join(directory, "payments.conf"), routes))
    yield* Effect.promise(() =>
      writeFile(
        configuration,
        [
          "daemon off;",
          "master_process off;",
          `pid ${join(directory, "nginx.pid")};`,
          "error_log stderr warn;",
          "events {}",
          "http {",
          "access_log off;",
          ...below,
          `include ${join(directory, "payments.conf")};`,
          "server {",
          `listen 127.0.0.1:${port};`,
          serverOf(routes),
          "} }"
        ].join("\n")
      )
    )
    const log = yield* startInstalled(nginx ?? "nginx", ["-c", configuration, "-e", "stderr"])
    yield* eventually("nginx answers", Effect.option(send(port, "/")), 10_000).pipe(
      Effect.tapErrorCause(() => Effect.sync(() => process.stderr.write(log())))
    )
    return { port, log }
  })

/** A cell, or the router, that says who it is and by which name it was asked. */
const named = (name: string) =>
  httpConsumer((incoming, response) => {
    response.setHeader("connection", "close")
    response.end(`${name} ${incoming.headers.host} ${incoming.headers["x-forwarded-for"]}`)
  })

const inNorth = "0b9f0f0e-0a0b-4c0d-8e0f-00000000000a"
const inSouth = "0b9f0f0e-0a0b-4c0d-8e0f-00000000000b"

describe.skipIf(nginx === undefined)(`nginx with the exported map${note}`, () => {
  it.scopedLive("finds an organization's cell by path, key and cookie, and sends everything else to a router", () =>
    Effect.gen(function* () {
      const [router, north, south] = yield* Effect.all([named("router"), named("north"), named("south")])
      const urlOf = ({ port }: { readonly port: number }) => `http://127.0.0.1:${port}`
      const { log, port } = yield* startNginx({
        cells: [
          { name: "north", url: urlOf(north), home: true },
          { name: "south-2", url: urlOf(south), home: false }
        ],
        organizations: [
          { id: inNorth, cell: "north" },
          { id: inSouth, cell: "south-2" }
        ],
        router: urlOf(router)
      })
      const ofNorth = `127.0.0.1:${north.port}`
      const cases: ReadonlyArray<readonly [string, Readonly<Record<string, string>>, string]> = [
        [`/v2/organizations/${inNorth}/products?limit=1`, {}, "north"],
        [`/v2/organizations/${inSouth.toUpperCase()}`, {}, "south"],
        [`/v2/organizations/${randomUUID()}/products`, {}, "router"],
        [`/v2/organizations/${inNorth}x/products`, {}, "router"],
        [`/elsewhere/v2/organizations/${inNorth}/products`, {}, "router"],
        ["/mcp", { "x-api-key": `svc_sandbox_${inSouth}.secret` }, "south"],
        ["/mcp", { "x-api-key": `svc_sandbox_${randomUUID()}.secret` }, "router"],
        ["/mcp", { "x-api-key": inSouth }, "router"],
        ["/mcp", { cookie: `svc_session=${inSouth}.secret` }, "router"],
        ["/identity/me", { cookie: `other=1; svc_session=${inSouth}.secret` }, "south"],
        ["/identity/me", { "x-api-key": `svc_sandbox_${inSouth}.secret` }, "router"],
        // What is in the body, or belongs to nobody yet, only a router can place
        ["/identity/session", { cookie: `svc_session=${inSouth}.secret` }, "router"],
        ["/webhooks/stripe", { "x-api-key": `svc_sandbox_${inSouth}.secret` }, "router"],
        // A path that names two: the one that is left once it is resolved, which is the one that the cell reads
        [`/v2/organizations/${inSouth}/../${inNorth}/products`, {}, "north"],
        [`/v2/organizations/${inSouth}/%2e%2e/${inNorth}/products`, {}, "north"]
      ]
      for (const [path, headers, expected] of cases) {
        const { body, status } = yield* send(port, path, headers)
        expect([path, headers, status, body.split(" ")[0]]).toEqual([path, headers, 200, expected])
      }
      expect((yield* send(port, `/v2/organizations/${inNorth}/x`, { "x-forwarded-for": "192.0.2.1" })).body).toBe(
        `north ${ofNorth} 127.0.0.1`
      )
      expect(log()).toBe("")
    })
  )

  it.scopedLive("reaches a cell by TLS under its own name, and no cell whose certificate is another's", () =>
    Effect.gen(function* () {
      const names: Array<string> = []
      const cell = yield* httpsConsumer(
        (incoming, response) => {
          response.setHeader("connection", "close")
          response.end(`cell ${incoming.headers.host}`)
        },
        {
          SNICallback: (name, done) => {
            names.push(name)
            done(null)
          }
        }
      )
      const router = yield* named("router")
      const { log, port } = yield* startNginx({
        cells: [
          { name: "north", url: `https://localhost:${cell.port}`, home: true },
          { name: "south", url: `https://127.0.0.1:${cell.port}`, home: false }
        ],
        organizations: [
          { id: inNorth, cell: "north" },
          { id: inSouth, cell: "south" }
        ],
        router: `http://127.0.0.1:${router.port}`
      })
      expect(yield* send(port, `/v2/organizations/${inNorth}/x`)).toEqual({
        status: 200,
        body: `cell localhost:${cell.port}`
      })
      expect(names).toEqual(["localhost"])
      expect(yield* send(port, "/")).toMatchObject({ status: 200, body: expect.stringContaining("router ") })
      expect((yield* send(port, `/v2/organizations/${inSouth}/x`)).status).toBe(502)
      expect(log()).toContain("certificate does not match")
      expect(cell.requests.length).toBe(1)
    })
  )

  it.scopedLive("has room for many organizations", () =>
    Effect.gen(function* () {
      const [router, north] = yield* Effect.all([named("router"), named("north")])
      const ids = Array.from({ length: 20_000 }, () => randomUUID())
      const { log, port } = yield* startNginx({
        cells: [{ name: "north", url: `http://127.0.0.1:${north.port}`, home: true }],
        organizations: ids.map((id) => ({ id, cell: "north" })),
        router: `http://127.0.0.1:${router.port}`
      })
      expect((yield* send(port, `/v2/organizations/${ids.at(-1)}/x`)).body).toMatch(/^north /)
      expect(log()).toBe("")
    })
  )
})
