import { execFile } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { expect } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { describe, it as plainIt } from "vitest"
import { archivePath, packageSummaries } from "../../../src/surface/packages/Paths.ts"
import { onSharedService, sendRequest, TestService } from "../../harness/TestService.ts"

// What developers install from a running service. The worst caller asks for files that are not there, with every method:
// an archive is packed once, whoever asks, and sent from memory

const run = promisify(execFile)
const root = fileURLToPath(new URL("../../..", import.meta.url))

const integrityOf = (body: Uint8Array): string => `sha512-${createHash("sha512").update(body).digest("base64")}`

/** The archives that the service lists, as a developer would find them. */
const listed = Effect.gen(function* () {
  const { json, status } = yield* sendRequest("GET", "/packages", {})
  expect(status).toBe(200)
  const packages: unknown = json["packages"]
  expect(packages).toEqual(
    ["connected-payments-client", "connected-payments-webhooks", "connected-payments-cli"].map((name) => ({
      name,
      version: JSON.parse(readFileSync(join(root, "package.json"), "utf8")).version,
      summary: expect.stringMatching(/\.$/),
      url: expect.stringMatching(new RegExp(`^https?://.*/packages/${name}-\\d+\\.\\d+\\.\\d+\\.tgz$`)),
      integrity: expect.stringMatching(/^sha512-[A-Za-z0-9+/]{86}==$/),
      size: expect.any(Number)
    }))
  )
  return packages as ReadonlyArray<Record<"name" | "url" | "integrity", string> & { readonly size: number }>
})

onSharedService("the packages of a service", (it) => {
  it.effect("are what its list says, and are not sent to whoever has them", function* () {
    const { baseUrl } = yield* TestService
    for (const { integrity, size, url } of yield* listed) {
      const get = (headers: Record<string, string> = {}) =>
        Effect.promise(() => fetch(new URL(new URL(url).pathname, baseUrl), { headers }))
      const answer = yield* get({ "accept-encoding": "gzip, br" })
      const body = new Uint8Array(yield* Effect.promise(() => answer.arrayBuffer()))
      expect([answer.status, answer.headers.get("content-type"), body.byteLength]).toEqual([
        200,
        "application/gzip",
        size
      ])
      expect(answer.headers.get("content-encoding")).toBeNull()
      expect(integrityOf(body)).toBe(integrity)
      expect(answer.headers.get("repr-digest")).toBe(`sha-512=:${integrity.slice("sha512-".length)}:`)
      expect(size).toBeLessThan(1_000_000)
      expect((yield* get({ "if-none-match": answer.headers.get("etag") ?? "" })).status).toBe(304)
    }
  })

  it.scoped("are installed by the line that is shown, with nothing else, and run", function* () {
    const { baseUrl, organization } = yield* TestService
    const project = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "connected-payments-install-"))),
      (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
    )
    const urls = (yield* listed).map(({ url }) => new URL(new URL(url).pathname, baseUrl).href)
    writeFileSync(join(project, "package.json"), JSON.stringify({ name: "shop", private: true, type: "module" }))
    // A registry that answers nothing: none is asked, except for the versions of the client's optional peers, which
    // test/package looks at
    const nowhere = { npm_config_registry: "http://127.0.0.1:9", npm_config_legacy_peer_deps: "true" }
    const env = { ...process.env, ...nowhere, npm_config_audit: "false" }
    yield* Effect.promise(() => run("npm", ["install", ...urls], { cwd: project, env }))
    const names = readdirSync(join(project, "node_modules")).filter((name) => !name.startsWith("."))
    expect(names).toEqual(["connected-payments-cli", "connected-payments-client", "connected-payments-webhooks"])
    const imports = `import { verifyWebhook } from "connected-payments-webhooks"
        import { makeFetchClient } from "connected-payments-client/openapi"
        const { baseUrl, organization: { id, testKey } } = ${JSON.stringify({ baseUrl, organization })}
        const { data } = await makeFetchClient({ baseUrl, organizationId: id, apiKey: testKey }).get("/provider/products")
        console.log(typeof verifyWebhook, Array.isArray(data))`
    const imported = yield* Effect.promise(() =>
      run(process.execPath, ["--input-type=module", "-e", imports], { cwd: project })
    )
    expect(imported.stdout.trim()).toBe("function true")
    const triggered = yield* Effect.promise(() =>
      run("npx", ["--no", "connected-payments", "--", "trigger", "payment.succeeded", "--url", baseUrl], {
        cwd: project,
        env: { ...env, CONNECTED_PAYMENTS_API_KEY: organization.testKey }
      })
    )
    expect(triggered.stdout).toContain("payment.succeeded")
  })

  it.effect("that are not there are a 404 that names those that are, and other methods a 405", function* () {
    for (const file of ["connected-payments-webhooks-9.9.9.tgz", "..%2f..%2fpackage.json", "x".repeat(3_000)]) {
      const { json, status } = yield* sendRequest("GET", `/packages/${file}`, {})
      expect([status, json["code"]], file).toEqual([404, "resource_not_found"])
      expect(json["error"]).toContain("connected-payments-webhooks-")
    }
    for (const path of ["/packages", archivePath("connected-payments-cli")]) {
      const { headers, status } = yield* sendRequest("DELETE", path, {})
      expect([status, headers.get("allow")], path).toEqual([405, "GET, HEAD"])
    }
  })
})

/** Everything that users read: guides, READMEs, the console's sources, and what the code prints. */
const shownTexts = (): ReadonlyArray<readonly [string, string]> => {
  const within = (folder: string): ReadonlyArray<string> =>
    readdirSync(join(root, folder)).flatMap((name) => {
      const path = join(folder, name)
      if (name === "node_modules" || name === "dist" || path === "src/docs/maintaining") return []
      return statSync(join(root, path)).isDirectory() ? within(path) : [path]
    })
  const files = ["README.md", ...within("src")].filter((path) => /\.(?:md|tsx?|json|html|ya?ml|service)$/.test(path))
  return files.map((path) => [path, readFileSync(join(root, path), "utf8")])
}

describe("a text that users read", () => {
  plainIt("names the archives of the service's version, in the console as well", () => {
    const versions = ["package.json", "src/console/package.json"].map(
      (path) => JSON.parse(readFileSync(join(root, path), "utf8")).version
    )
    expect(new Set(versions).size).toBe(1)
    const guides = ["getting-started", "client"].map((name) =>
      readFileSync(join(root, `src/docs/guides/${name}.md`), "utf8")
    )
    for (const name of Struct.keys(packageSummaries)) expect(guides.join()).toContain(archivePath(name))
  })

  /** Packages of others, by the names of their well-known owners. */
  const known = /^(?:effect|@effect\/[a-z-]+|tsx|--include=optional)(?:@[\d.]+)?$/

  plainIt("installs nothing by a name that somebody else could register", () => {
    const lines = shownTexts().flatMap(([path, text]) =>
      [
        ...text.matchAll(
          /(?:npm (?:install|i|exec|add)|npx|pnpm (?:add|dlx)|yarn add|pip install|go get)\s+((?:\\\n|[^`\n])*)/g
        )
      ].map(([line, rest = ""]) => ({ at: `${path}: ${line}`, words: rest.replace(/["'\\]/g, "").split(/\s+/) }))
    )
    expect(lines.length).toBeGreaterThan(4)
    for (const { at, words } of lines) {
      const [first = ""] = words
      const fromHere = /^(?:\.\/|\$URL\/|\$\{|https:\/\/payments\.example\/|\{PUBLIC_URL\})/
      const ours = first === "--no" || words.every((word) => fromHere.test(word) || known.test(word)) || first === "tsx"
      expect(ours, at).toBe(true)
    }
  })
})
