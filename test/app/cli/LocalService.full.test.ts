import { copyFile, mkdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { eventually } from "../../harness/Eventually.ts"
import { describe, expect, it } from "../../harness/Tests.ts"
import { png } from "../../payments/images/Pictures.ts"
import { dataDirectory } from "../../process/ServiceProcess.ts"
import { cli, cliHere, startCli } from "./CliProcess.ts"

const LocalFile = Schema.parseJson(
  Schema.Struct({
    baseUrl: Schema.String,
    organizationId: Schema.String,
    apiKey: Schema.String,
    emulatorUrl: Schema.String
  })
)

const Secrets = Schema.parseJson(Schema.Struct({ providerSecretKey: Schema.String }))

const makeAccount = (emulatorUrl: string, secretKey: string) =>
  Effect.promise(async () => {
    const response = await fetch(`${emulatorUrl}/_emulator/accounts`, {
      method: "POST",
      headers: { authorization: `Bearer ${secretKey}` }
    })
    return Schema.decodeUnknownSync(Schema.Struct({ id: Schema.String }))(await response.json()).id
  })

describe("a service on local defaults", () => {
  it.scopedLive(
    "is what commands without DATABASE_URL work on while it runs; afterwards they start its database for themselves",
    function* () {
      const directory = yield* dataDirectory
      const settings = { DATA_DIR: directory, PORT: "0" }
      const service = yield* startCli(settings, "serve")
      const local = yield* eventually(
        "the service's start",
        Effect.option(
          Effect.flatMap(
            Effect.tryPromise(() => readFile(join(directory, "local.json"), "utf8")),
            Schema.decode(LocalFile)
          )
        )
      )
      const id = local.organizationId
      const made = yield* cli(
        settings,
        ...["keys", "create", "--organization", id, "--name", "By hand", "--json"],
        ...["--permission", "webhook-endpoints:read"]
      )
      expect(made, made.stderr).toMatchObject({ code: 0, stderr: "" })
      const { key } = Schema.decodeUnknownSync(Schema.Struct({ key: Schema.String }))(made.json)
      const status = yield* Effect.promise(() =>
        fetch(`${local.baseUrl}/v2/organizations/${id}/integrations/endpoints`, { headers: { "x-api-key": key } })
      ).pipe(Effect.map((answer) => answer.status))
      expect(status).toBe(200)

      // A file that another process has left says nothing, though a service answers at the address in it
      const other = yield* dataDirectory
      yield* Effect.promise(() => mkdir(other, { recursive: true }))
      yield* Effect.promise(() => copyFile(join(directory, "local.json"), join(other, "local.json")))
      const elsewhere = yield* cliHere({ ...settings, DATA_DIR: other }, "organizations", "list", "--json")
      expect(elsewhere, elsewhere.stderr).toMatchObject({ code: 0, json: [] })

      // What an upload answers is an image of a product, though a local service is reached by http
      const provider = `${local.baseUrl}/v2/organizations/${id}/provider`
      const send = (path: string, type: string, body: Uint8Array | string) =>
        Effect.promise(async (): Promise<Readonly<Record<string, unknown>>> => {
          const headers = { "x-api-key": local.apiKey, "idempotency-key": "local-image", "content-type": type }
          return Object(await (await fetch(`${provider}${path}`, { method: "POST", headers, body })).json())
        })
      const { url } = yield* send("/product-images", "image/png", png())
      expect(url).toMatch(/^http:/)
      const withImage = JSON.stringify({ name: "Coffee", images: [url] })
      expect(yield* send("/products", "application/json", withImage)).toMatchObject({ images: [url] })

      const { providerSecretKey } = yield* Schema.decode(Secrets)(
        yield* Effect.promise(() => readFile(join(directory, "secrets.json"), "utf8"))
      )
      const tenant = ["--organization", id, "--environment", "sandbox"]
      const accountId = yield* makeAccount(local.emulatorUrl, providerSecretKey)
      expect(yield* cliHere(settings, "accounts", "unlink", ...tenant)).toMatchObject({ code: 0, stderr: "" })
      const linked = yield* cliHere(settings, "accounts", "link", ...tenant, "--account", accountId, "--json")
      expect(linked, linked.stderr).toMatchObject({ code: 0, json: { accountId, status: "connected" } })

      const triggered = yield* cliHere(
        settings,
        ...["emulator", "trigger", "payout.paid", "--account", accountId, "--json"]
      )
      expect(triggered, triggered.stderr).toMatchObject({ code: 0, stderr: "", json: { account: accountId } })

      expect(yield* service.stop).toMatchObject({ code: 0 })
      const shown = yield* cliHere(settings, "accounts", "link", ...tenant, "--account", accountId, "--json")
      expect(shown, shown.stderr).toMatchObject({ code: 0, stderr: "", json: { accountId, status: "connected" } })
      const organizations = yield* cliHere(settings, "organizations", "list", "--json")
      expect(organizations, organizations.stderr).toMatchObject({ code: 0, stderr: "" })
      expect(organizations.json).toEqual([{ id, name: "Local organization" }])
    }
  )
})
