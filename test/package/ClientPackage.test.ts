import { execFile } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect } from "@effect/vitest"
import { Effect } from "effect"
import { onService, TestService } from "../harness/TestService.ts"
import { link, packWorkspace } from "./PackWorkspace.ts"

// The clients as a package of their own: packed by the command that the guide names, in a project with what it
// declares and nothing else, and calling the service from there

const run = promisify(execFile)
const root = fileURLToPath(new URL("../..", import.meta.url))
const directory = mkdtempSync(join(tmpdir(), "connected-payments-client-package-"))
const project = join(directory, "project")
const modules = join(project, "node_modules")
const installed = join(modules, "connected-payments-client")

interface Manifest {
  readonly dependencies?: unknown
  readonly peerDependencies: Readonly<Record<string, string>>
}

const program = `import { FetchHttpClient } from "@effect/platform"
import { makeClient } from "connected-payments-client"
import { Effect, Redacted } from "effect"

const { API_KEY = "", BASE_URL = "", ORGANIZATION = "" } = process.env
const created = Effect.gen(function* () {
  const client = yield* makeClient({ baseUrl: BASE_URL, organizationId: ORGANIZATION, apiKey: Redacted.make(API_KEY) })
  const product = yield* client.products.create({ payload: { name: "Coffee" } })
  const refused = yield* client.products.create({ payload: { name: "" } }).pipe(Effect.flip)
  const name: string | null | undefined = product.name
  return [name, refused._tag]
})
console.log(JSON.stringify(await Effect.runPromise(created.pipe(Effect.provide(FetchHttpClient.layer)))))
`

const plainProgram = `import { ApiError, type components, makeFetchClient } from "connected-payments-client/openapi"

const { API_KEY = "", BASE_URL = "", ORGANIZATION = "" } = process.env
const client = makeFetchClient({ baseUrl: BASE_URL, organizationId: ORGANIZATION, apiKey: API_KEY })
const body: components["schemas"]["CreatePrice"] = { currency: "brl", unit_amount: 1500, product_data: { name: "Coffee" } }
const price = await client.post("/provider/prices", { body })
const created = await client.post("/provider/checkout/sessions", {
  body: { mode: "payment", line_items: [{ price: price.id, quantity: 2 }] }
})
const session: components["schemas"]["CheckoutSession"] = created
await fetch(session.url ?? "", { method: "POST", body: new URLSearchParams({ action: "pay" }), redirect: "manual" })
const paid = await client.get("/provider/checkout/sessions/{id}", { path: { id: session.id } })
const total: number | null | undefined = paid.amount_total
// @ts-expect-error: a field that the operation does not take
const refused = await client.post("/provider/prices", { body: { currency: "brl", unitAmount: 1500 } }).catch((error: unknown) => error)
// @ts-expect-error: a stream is no answer
void (() => client.get("/integrations/event-stream"))
console.log(JSON.stringify([paid.payment_status, total, refused instanceof ApiError && refused.code]))
`

beforeAll(async () => {
  const archive = await packWorkspace("connected-payments-client", directory)
  mkdirSync(installed, { recursive: true })
  await run("tar", ["-xzf", archive, "-C", installed, "--strip-components=1"])
  const manifest: Manifest = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"))
  expect(manifest.dependencies).toBeUndefined()
  for (const name of [...Object.keys(manifest.peerDependencies), "@types/node"]) link(name, modules)
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "shop", private: true, type: "module" }))
  writeFileSync(join(project, "order.ts"), program)
  writeFileSync(join(project, "plain.ts"), plainProgram)
})

afterAll(() => rmSync(directory, { recursive: true, force: true }))

onService()("the package of the clients", (it) => {
  it.effect("has a module for each of the two, with types, a license and a page that says what it is", () =>
    Effect.sync(() => {
      const files = readdirSync(installed, { recursive: true, encoding: "utf8" })
      expect(files.filter((file) => file.endsWith(".js"))).toEqual(["dist/index.js", "dist/openapi.js"])
      expect(files).toEqual(
        expect.arrayContaining(["LICENSE", "README.md", "dist/client/index.d.ts", "dist/openapi.d.ts"])
      )
      expect(files.filter((file) => !file.startsWith("dist")).toSorted()).toEqual([
        "LICENSE",
        "README.md",
        "package.json"
      ])
    })
  )

  it.effect("compiles with what it declares, and calls the service; by fetch alone with no package", function* () {
    const { baseUrl, organization } = yield* TestService
    const compiler = join(root, "node_modules/typescript/bin/tsc")
    const options = ["--module", "NodeNext", "--target", "ES2023", "--strict", "--skipLibCheck", "--types", "node"]
    const ran = yield* Effect.promise(async () => {
      await run(process.execPath, [compiler, "order.ts", "plain.ts", ...options], { cwd: project })
      const env = { BASE_URL: baseUrl, ORGANIZATION: organization.id, API_KEY: organization.testKey }
      const start = (program: string) =>
        run(process.execPath, [program], { cwd: project, env: { PATH: process.env["PATH"] ?? "", ...env } })
      const order = await start("order.js")
      for (const name of readdirSync(modules)) {
        if (name !== "connected-payments-client") rmSync(join(modules, name), { recursive: true })
      }
      return [order, await start("plain.js")].map(({ stdout }) => JSON.parse(stdout))
    })
    expect(ran).toEqual([
      ["Coffee", "ParseError"],
      ["paid", 3000, "validation_failed"]
    ])
  })
})
