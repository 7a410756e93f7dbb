import { BlockList } from "node:net"
import { HttpServer } from "@effect/platform"
import { SqlClient } from "@effect/sql"
import { layer } from "@effect/vitest"
import { Context, Effect, Layer, Logger, LogLevel, Option, Redacted, type Scope } from "effect"
import { Directory } from "../../src/cells/Directory.ts"
import { connectedDirectoryLayer } from "../../src/cells/DirectoryConnection.ts"
import { type Emulator, makeEmulator } from "../../src/emulator/Emulator.ts"
import { Keys } from "../../src/identity/keys/Keys.ts"
import { Organizations } from "../../src/identity/organizations/Organizations.ts"
import { Accounts } from "../../src/provider/Accounts.ts"
import { rolesLayer, type ServiceOptions, type Services, servicesLayer, storageLayer } from "../../src/Service.ts"
import { type CuttableLine, cuttableLine } from "../harness/CuttableLine.ts"
import { eventually } from "../harness/Eventually.ts"
import { type Mailbox, makeMailbox } from "../harness/Mailbox.ts"
import { createMigratedDatabase, createTestDatabase } from "../harness/TestDatabase.ts"
import {
  type Answer,
  type RequestOptions,
  requestTo,
  type TestOrganization,
  testPublicUrl,
  testReturnUrls,
  testSettings,
  testWebhookSecret
} from "../harness/TestService.ts"
import { dataDirectory, type ServiceProcess, spawnService } from "../process/ServiceProcess.ts"

/** Two cells, the directory between them, and a router's process in front: each on what is its own. */

const secretKey = "sk_test_emulatorplatformkey"
const author = { kind: "operator", id: "test" } as const

/** A cell: a service of its own on a database of its own. */
export interface TestCell {
  readonly name: string
  /** Its own address, as only routers know it. */
  readonly baseUrl: string
  /** The network between the router and the cell. */
  readonly line: CuttableLine
  readonly sql: SqlClient.SqlClient
  readonly services: Context.Context<Services>
  readonly databaseUrl: Redacted.Redacted
  /** An organization with a linked sandbox account and a key for everything. */
  readonly organization: TestOrganization
  readonly makeOrganization: (name: string) => Effect.Effect<TestOrganization>
}

export interface TestCells {
  readonly north: TestCell
  readonly south: TestCell
  readonly directory: Directory["Type"]
  readonly directorySql: SqlClient.SqlClient
  readonly directoryUrl: Redacted.Redacted
  /** The network between the directory and all others. */
  readonly directoryLine: CuttableLine
  readonly emulator: Emulator
  readonly mailbox: Mailbox
  readonly router: ServiceProcess & { readonly baseUrl: string }
  /** A request to the router. */
  readonly request: (method: string, path: string, options?: RequestOptions) => Effect.Effect<Answer>
}

const throughLine = (url: Redacted.Redacted, line: CuttableLine): Redacted.Redacted => {
  const changed = new URL(Redacted.value(url))
  changed.port = new URL(line.url).port
  return Redacted.make(changed.href)
}

const portOf = (context: Context.Context<HttpServer.HttpServer>): number => {
  const { address } = Context.get(context, HttpServer.HttpServer)
  return address._tag === "TcpAddress" ? address.port : 0
}

const startCell = Effect.fnUntraced(function* (options: {
  readonly name: string
  readonly directory: Directory["Type"]
  readonly directoryUrl: Redacted.Redacted
  readonly emulator: Emulator
  readonly mailbox: Mailbox
}) {
  const { directory, directoryUrl, emulator, mailbox, name } = options
  // A cell starts only if the directory lists it; its address is known once it has
  yield* directory.putCell({ name, url: "http://127.0.0.1:1", home: name === "north" })
  const database = yield* createMigratedDatabase
  const trustedProxies = new BlockList()
  trustedProxies.addAddress("127.0.0.1")
  const service: ServiceOptions = {
    settings: {
      ...testSettings,
      roles: { api: true, worker: false },
      trustedProxies,
      smtpUrl: Option.some(mailbox.url)
    },
    databaseUrl: database.url,
    publicUrl: testPublicUrl,
    masterKeys: [{ id: "test", key: Redacted.make(new Uint8Array(32).fill(7)) }],
    provider: {
      sandbox: Option.some({ secretKey: Redacted.make(secretKey), webhookSecrets: [Redacted.make(testWebhookSecret)] }),
      production: Option.none(),
      apiUrl: Option.some(new URL(emulator.url)),
      ...testReturnUrls
    },
    cell: { name, directoryUrl }
  }
  const storage = yield* Layer.build(storageLayer(service))
  const services = yield* Layer.build(servicesLayer(service)).pipe(Effect.provide(storage))
  const roles = yield* Layer.build(rolesLayer(service)).pipe(Effect.provide(services), Effect.provide(storage))
  const server = Context.getOption(roles, HttpServer.HttpServer)
  const port = Option.match(server, {
    onNone: () => 0,
    onSome: (found) => portOf(Context.make(HttpServer.HttpServer, found))
  })
  const baseUrl = `http://127.0.0.1:${port}`
  const line = yield* cuttableLine(baseUrl)
  yield* directory.putCell({ name, url: line.url, home: name === "north" })
  const sql = Context.get(storage, SqlClient.SqlClient)

  const makeOrganization = (label: string) =>
    Effect.gen(function* () {
      const { id } = yield* Context.get(services, Organizations).create({
        name: label,
        ownerEmail: `owner-of-${label}@example.com`,
        author
      })
      const accountId = yield* emulator.ensureAccount()
      yield* Context.get(services, Accounts).link({ organizationId: id, environment: "sandbox" }, accountId, author)
      const keyOf = (mode: "test" | "live") =>
        Effect.map(
          Context.get(services, Keys).create({
            organizationId: id,
            name: "Test",
            permissions: ["*", "webhook-endpoints:*", "audit-log:read"],
            mode,
            author
          }),
          ({ key }) => Redacted.value(key)
        )
      return { id, accountId, testKey: yield* keyOf("test"), liveKey: yield* keyOf("live") }
    }).pipe(Effect.orDie)

  return {
    name,
    baseUrl,
    line,
    sql,
    services,
    databaseUrl: database.url,
    makeOrganization,
    organization: yield* makeOrganization(name)
  } satisfies TestCell
})

/** Starts a router's process; it listens on a port of its own. */
export const startRouter = Effect.fnUntraced(function* (
  directoryUrl: Redacted.Redacted,
  settings: Readonly<Record<string, string>> = {}
) {
  const process = yield* spawnService(yield* dataDirectory, {
    ROLES: "router",
    DIRECTORY_URL: Redacted.value(directoryUrl),
    ...settings
  })
  const port = yield* eventually(
    "the router's start",
    Effect.sync(() => {
      if (process.child.exitCode !== null) throw new Error(`It ended: ${process.output.stderr}`)
      return Option.fromNullable(/Routing on port (\d+)/.exec(process.output.stderr)?.[1])
    }),
    60_000
  )
  const baseUrl = `http://127.0.0.1:${port}`
  const request = requestTo(baseUrl)
  yield* eventually(
    "the router's readiness",
    Effect.map(request("GET", "/health/ready"), ({ status }) => (status === 200 ? Option.some(true) : Option.none())),
    30_000
  )
  return { ...process, baseUrl, request }
})

/** Two cells behind a router. */
export const startCells: Effect.Effect<TestCells, never, Scope.Scope> = Effect.gen(function* () {
  const database = yield* createTestDatabase()
  const directoryLine = yield* cuttableLine(Redacted.value(database.url).replace(/^postgres\w*:/, "http:"))
  const directoryUrl = throughLine(database.url, directoryLine)
  // Of the test's own: what is cut for others is not cut for it
  const context = yield* Layer.build(connectedDirectoryLayer({ url: database.url, cell: null }))
  const directory = Context.get(context, Directory)
  const mailbox = yield* makeMailbox()
  const emulator = yield* makeEmulator({ host: "127.0.0.1", port: 0, secretKey, webhookSecret: testWebhookSecret })
  const shared = { directory, directoryUrl, emulator, mailbox }
  const north = yield* startCell({ name: "north", ...shared })
  const south = yield* startCell({ name: "south", ...shared })
  const router = yield* startRouter(directoryUrl)
  yield* emulator.setWebhookUrl(`${router.baseUrl}/webhooks/provider`)
  yield* emulator.setThinWebhookUrl(`${router.baseUrl}/webhooks/provider/thin`)
  return {
    north,
    south,
    directory,
    directorySql: Context.get(context, SqlClient.SqlClient),
    directoryUrl,
    directoryLine,
    emulator,
    mailbox,
    router,
    request: router.request
  }
}).pipe(Effect.orDie)

/** The cells of a suite. */
export class Cells extends Context.Tag("test/Cells")<Cells, TestCells>() {
  static readonly layer = Layer.scoped(Cells, startCells).pipe(Layer.provide(Logger.minimumLogLevel(LogLevel.Error)))
}

/** Declares a suite on two cells behind a router. Real clocks: the processes live by them. */
export const onCells = layer(Cells.layer, { excludeTestServices: true, timeout: "300 seconds" })
