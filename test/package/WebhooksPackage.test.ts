import { execFile, spawn } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect } from "@effect/vitest"
import { Effect, Option } from "effect"
import { eventually, eventuallyTrue } from "../harness/Eventually.ts"
import { freePort } from "../harness/FreePort.ts"
import { outputOf } from "../harness/Output.ts"
import { onService, TestService } from "../harness/TestService.ts"
import { makePrice, pay } from "../surface/http/Payments.ts"
import { link, npmEnvironment, packWorkspace } from "./PackWorkspace.ts"

// The consumer's kit as a package of its own: packed by the command that the guide names, installed into an empty
// project without a registry, and taking the service's own deliveries there

const run = promisify(execFile)
const root = fileURLToPath(new URL("../..", import.meta.url))
const examples = join(root, "test/examples/webhooks/node")
const receiver = readFileSync(join(examples, "receiver.mjs"), "utf8")

const directory = mkdtempSync(join(tmpdir(), "connected-payments-webhooks-package-"))
const project = join(directory, "project")

/** As a team writes it: CommonJS, with Jest's own globals and another realm's buffers. */
const jestTest = `const { createHmac } = require("node:crypto")
const { fetchWebhookHandler, verifyWebhook, WebhookVerificationError } = require("connected-payments-webhooks")

test("an event is verified and received", async () => {
  const secret = "whsec_0123456789"
  const body = JSON.stringify({ id: "svc_evt_1", type: "payment.succeeded", version: 1, created_at: new Date().toISOString(),
    livemode: false, organization_id: "o", source: { provider: "stripe", event_id: "evt_1" }, data: {} })
  const at = Math.floor(Date.now() / 1000)
  const header = "t=" + at + ",v1=" + createHmac("sha256", secret).update(at + "." + body).digest("hex")
  expect(verifyWebhook({ secret, header, body: new TextEncoder().encode(body).buffer }).id).toBe("svc_evt_1")
  expect(() => verifyWebhook({ secret, header: "t=1", body })).toThrow(WebhookVerificationError)
  const onEvent = jest.fn()
  const request = new Request("http://shop.example/", { method: "POST", body, headers: { "service-signature": header } })
  expect((await fetchWebhookHandler({ secret, onEvent })(request)).status).toBe(204)
  expect(onEvent).toHaveBeenCalledTimes(1)
})
`

const listens = (port: number) =>
  Effect.async<Option.Option<true>>((resume) => {
    const socket = connect(port, "127.0.0.1")
    socket.on("connect", () => resume(Effect.succeed(Option.some(true)))).on("error", () => resume(Effect.succeedNone))
    return Effect.sync(() => socket.destroy())
  })

/** Runs the guide's receiver in the project, with this change of its text; it ends with the scope. */
const startReceiver = Effect.fnUntraced(function* (
  port: number,
  env: Readonly<Record<string, string>>,
  change: (text: string) => string = (text) => text
) {
  const file = join(project, `receiver-${port}.mjs`)
  writeFileSync(file, change(receiver).replace("9000", String(port)))
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, [file], { cwd: project, env: { PATH: process.env["PATH"] ?? "", ...env } })
    ),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )
  const output = outputOf(child)
  yield* eventually("the receiver listens", listens(port))
  return output
})

beforeAll(async () => {
  mkdirSync(project)
  const archive = await packWorkspace("connected-payments-webhooks", directory)
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "shop", private: true, type: "module" }))
  await run("npm", ["install", "--offline", archive], { cwd: project, env: npmEnvironment })
})

afterAll(() => rmSync(directory, { recursive: true, force: true }))

onService()("the package of the consumer's kit", (it) => {
  it.effect("is all that is installed, under the project's version", () =>
    Effect.sync(() => {
      const modules = join(project, "node_modules")
      expect(readdirSync(modules).filter((name) => !name.startsWith("."))).toEqual(["connected-payments-webhooks"])
      const installed = JSON.parse(readFileSync(join(modules, "connected-payments-webhooks/package.json"), "utf8"))
      const own = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
      expect([installed.version, installed.license, installed.engines]).toEqual([own.version, own.license, own.engines])
      for (const kind of ["dependencies", "peerDependencies", "optionalDependencies", "bin"]) {
        expect(installed[kind], kind).toBeUndefined()
      }
      const text = readFileSync(join(modules, "connected-payments-webhooks/README.md"), "utf8")
      for (const shown of [text, readFileSync(join(root, "src/docs/guides/getting-started.md"), "utf8")]) {
        expect(shown).toContain(`\`\`\`js\n${receiver}\`\`\``)
      }
    })
  )

  it.effect("can be required: by each Node as by 20.12, which requires no modules, and in a test of Jest 30", () =>
    Effect.promise(async () => {
      const old = process.allowedNodeEnvironmentFlags.has("--experimental-require-module")
        ? ["--no-experimental-require-module"]
        : []
      const cjs = `console.log(typeof require("connected-payments-webhooks").verifyWebhook)`
      const required = await run(process.execPath, [...old, "--input-type=commonjs", "-e", cjs], { cwd: project })
      expect(required.stdout.trim()).toBe("function")
      const tests = join(project, "tests")
      mkdirSync(tests)
      writeFileSync(join(tests, "package.json"), "{}")
      writeFileSync(join(tests, "receiver.test.js"), jestTest)
      const jest = join(root, "node_modules/jest/bin/jest.js")
      const { stderr } = await run(process.execPath, [jest, "--rootDir", tests, "--ci", "--runInBand"], { cwd: tests })
      expect(stderr).toMatch(/Tests: +1 passed, 1 total/)
    })
  )

  it.scoped("takes the service's deliveries; a receiver for the other environment refuses them", function* () {
    const service = yield* TestService
    const { organization, request } = service
    const tenant = { organizationId: organization.id, key: organization.testKey }
    const path = `/v2/organizations/${organization.id}/integrations/endpoints`
    const subscribe = Effect.fnUntraced(function* (name: string, change?: (text: string) => string) {
      const port = yield* freePort
      const { json, status, text } = yield* request("POST", path, {
        key: tenant.key,
        headers: { "idempotency-key": `kit-package-${name}` },
        body: { name, url: `http://127.0.0.1:${port}/webhooks`, events: ["payment.succeeded"] }
      })
      expect(status, text).toBe(200)
      const env = { WEBHOOK_SECRET: String(json["signingSecret"]), ORGANIZATION: organization.id }
      const output = yield* startReceiver(port, env, change)
      return { id: String(json["id"]), output }
    })
    const delivery = (endpointId: string) =>
      eventually(
        "the delivery ends",
        Effect.map(request("GET", `${path}/${endpointId}/deliveries`, { key: tenant.key }), ({ json }) => {
          const [only] = Array.isArray(json["data"]) ? json["data"] : []
          return only === undefined || only.state === "queued" ? Option.none() : Option.some(only)
        })
      )
    const sandbox = yield* subscribe("sandbox")
    const production = yield* subscribe("production", (text) => text.replace("livemode: false", "livemode: true"))
    const session = yield* pay(service, { ...tenant, priceId: yield* makePrice(service, tenant) })
    expect(yield* delivery(sandbox.id)).toMatchObject({ state: "delivered", lastErrorCode: null })
    yield* eventuallyTrue("the receiver's line", () => sandbox.output.stdout.includes("\n"))
    expect(sandbox.output).toEqual({ stdout: `paid ${session.json["payment_intent"]} 1500 brl\n`, stderr: "" })
    expect(yield* delivery(production.id)).toMatchObject({
      state: "failed",
      attemptCount: 1,
      lastHttpStatus: 400,
      lastErrorCode: "consumer_refused_environment"
    })
    yield* eventuallyTrue("the receiver's report", () => production.output.stderr.includes("\n"))
    expect(production.output.stdout).toBe("")
    expect(production.output.stderr).toMatch(/refused, wrong_environment: .*Check `livemode`/)
  })

  it.effect("type-checks in a strict project, with the guides' receiver and recipe", () =>
    Effect.promise(async () => {
      for (const name of ["@types/node", "@types/pg", "pg-types", "pg-protocol"])
        link(name, join(project, "node_modules"))
      const strict = { strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true }
      for (const [module, moduleResolution] of [
        // Where modules can't be required: its types for CommonJS
        ["Node16", "Node16"],
        ["ESNext", "Bundler"]
      ]) {
        const compilerOptions = { ...strict, module, moduleResolution, noEmit: true, allowJs: true, checkJs: true }
        const config = { target: "ES2022", lib: ["ES2022"], types: ["node"], skipLibCheck: false, ...compilerOptions }
        writeFileSync(
          join(project, "tsconfig.json"),
          JSON.stringify({ compilerOptions: config, include: ["receiver.mjs", "orders.ts", "common.cts"] })
        )
        const used = "isKnownWebhookEvent(verifyWebhook({ secret: '', header: '', body: '' }))"
        writeFileSync(
          join(project, "common.cts"),
          `import { isKnownWebhookEvent, verifyWebhook } from "connected-payments-webhooks"\nexport const known: boolean = ${used}\n`
        )
        cpSync(join(examples, "orders.ts"), join(project, "orders.ts"))
        writeFileSync(join(project, "receiver.mjs"), receiver)
        const compiler = join(root, "node_modules/typescript/bin/tsc")
        const checked = await run(process.execPath, [compiler, "--singleThreaded"], { cwd: project }).catch((error) =>
          Object(error)
        )
        expect(String(checked.stdout)).toBe("")
      }
    })
  )
})
