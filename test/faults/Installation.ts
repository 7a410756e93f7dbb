import { randomBytes } from "node:crypto"
import { Effect, Option, Scope } from "effect"
import { makeEmulator } from "../../src/emulator/Emulator.ts"
import type { EmbeddedPostgresError } from "../../src/platform/storage/embedded/EmbeddedPostgres.ts"
import { ask } from "../harness/Connection.ts"
import { type CuttingProxy, cuttingProxy } from "../harness/CuttingProxy.ts"
import { eventually } from "../harness/Eventually.ts"
import { requestTo } from "../harness/TestService.ts"
import { integrator } from "../process/Integrator.ts"
import {
  dataDirectory,
  type LocalFile,
  type ServiceProcess,
  spawnService,
  startLimitMillis,
  stop
} from "../process/ServiceProcess.ts"
import { type DatabaseServer, startDatabaseServer } from "./DatabaseServer.ts"

export interface Running extends ServiceProcess {
  readonly role: "api" | "worker"
  readonly baseUrl: string
}

export interface Start {
  readonly role: Running["role"]
  readonly settings?: Readonly<Record<string, string>>
}

export interface Installation {
  readonly directory: string
  readonly local: LocalFile
  readonly accountId: string
  readonly webhookSecret: string
  readonly server: DatabaseServer
  readonly proxy: CuttingProxy
  readonly processes: Array<Running>
  readonly start: (start: Start) => Effect.Effect<Running>
  /** Ends a process as a crash does, and takes it off the list. */
  readonly kill: (process: Running) => Effect.Effect<void>
  /** Straight to the server: what a test asks the database. */
  readonly query: <Row extends object>(
    text: string,
    values?: ReadonlyArray<unknown>
  ) => Effect.Effect<ReadonlyArray<Row>>
  readonly subscribe: (url: string, events?: ReadonlyArray<string>) => Effect.Effect<string>
}

const settingsOf = (role: Running["role"], shared: Readonly<Record<string, string>>, own: Start["settings"]) => ({
  ROLES: role,
  LOG_LEVEL: "Error",
  DELIVERY_TIMEOUT: "1 second",
  DELIVERY_LEASE_MARGIN: "2 seconds",
  RATE_LIMIT_PER_MINUTE: "1000000",
  ENDPOINT_LIMIT: "100",
  ...shared,
  ...own
})

/** Where a process serves: its API, or as a worker its health alone. */
const saysWhere = /(?:Base URL +|Health +(?=\S+\/health\/ready\s))(http:\/\/[^\s/]+)/

/** A process, once it says that it serves and where. */
const startProcess = Effect.fnUntraced(function* (
  directory: string,
  role: Running["role"],
  settings: Readonly<Record<string, string>>
) {
  const service = yield* spawnService(directory, settings)
  const baseUrl = yield* eventually(
    "a process that serves",
    Effect.suspend(() =>
      service.child.exitCode === null
        ? Effect.succeed(Option.fromNullable(saysWhere.exec(service.output.stdout)?.[1]))
        : Effect.dieMessage(`It ended: ${service.output.stderr}`)
    ),
    startLimitMillis
  )
  const key = /API key +(\S+)/.exec(service.output.stdout)?.[1] ?? ""
  const organizationId = /Organization +(\S+)/.exec(service.output.stdout)?.[1] ?? ""
  return { process: { ...service, role, baseUrl }, key, organizationId }
})

type Database = Pick<Installation, "server" | "proxy" | "query"> & { readonly url: string }

const singleDatabase = Effect.fnUntraced(function* (directory: string) {
  const server = yield* startDatabaseServer(directory)
  const proxy = yield* cuttingProxy(server.port)
  const throughProxy = new URL(server.url)
  throughProxy.port = String(proxy.port)
  const database: Database = { server, proxy, url: throughProxy.href, query: (...asked) => ask(server.url, ...asked) }
  return database
})

/** Starts the first process, which makes the organization, and then the others at once. All ends with the scope. */
export const installation = Effect.fnUntraced(function* (
  [first, ...others]: readonly [Start & { readonly role: "api" }, ...ReadonlyArray<Start>],
  shared: Readonly<Record<string, string>> = {},
  startDatabase: (directory: string) => Effect.Effect<Database, EmbeddedPostgresError, Scope.Scope> = singleDatabase
) {
  const directory = yield* dataDirectory
  const { proxy, query, server, url } = yield* startDatabase(directory)
  const providerKey = "sk_test_underfaults"
  const webhookSecret = "whsec_underfaults"
  const emulator = yield* makeEmulator({ secretKey: providerKey, webhookSecret })
  const accountId = yield* emulator.ensureAccount()
  const environment = {
    DATABASE_URL: url,
    MASTER_KEYS: `test:${randomBytes(32).toString("base64")}`,
    PROVIDER_SANDBOX_SECRET_KEY: providerKey,
    PROVIDER_SANDBOX_WEBHOOK_SECRETS: webhookSecret,
    PROVIDER_API_URL: emulator.url,
    LOCAL_ACCOUNT_ID: accountId,
    ...shared
  }
  const scope = yield* Effect.scope
  const processes: Array<Running> = []
  const startWith = ({ role, settings }: Start) =>
    startProcess(directory, role, settingsOf(role, environment, settings)).pipe(
      Scope.extend(scope),
      Effect.tap(({ process }) => Effect.sync(() => void processes.push(process))),
      Effect.orDie
    )
  const { key, organizationId, process } = yield* startWith(first)
  yield* Effect.forEach(others, startWith, { concurrency: "unbounded", discard: true })
  // As an account that had payments before: the milestone of a first one is a matter of its own test
  yield* query("UPDATE payments.provider_accounts SET had_payments_before = true")
  const local: LocalFile = {
    baseUrl: process.baseUrl,
    emulatorUrl: emulator.url,
    organizationId,
    apiKey: key,
    ownerEmail: "owner@example.com",
    databaseUrl: server.url
  }
  const running: Installation = {
    directory,
    local,
    accountId,
    webhookSecret,
    server,
    proxy,
    processes,
    start: (start) => Effect.map(startWith(start), ({ process }) => process),
    kill: (process) =>
      Effect.sync(() => void processes.splice(processes.indexOf(process), 1)).pipe(
        Effect.zipRight(Effect.orDie(stop(process, "SIGKILL"))),
        Effect.asVoid
      ),
    query,
    subscribe: (url, events) => Effect.map(integrator(local).subscribe(url, events), ({ id }) => id)
  }
  return running
})

export const ofRole = ({ processes }: Installation, role: Running["role"]): ReadonlyArray<Running> =>
  processes.filter((process) => process.role === role)

export const requestToProcess = ({ baseUrl }: Running) => requestTo(baseUrl)
