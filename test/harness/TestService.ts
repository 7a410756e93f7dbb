import { randomUUID } from "node:crypto"
import { BlockList } from "node:net"
import { HttpServer } from "@effect/platform"
import { SqlClient } from "@effect/sql"
import { Context, Duration, Effect, Layer, Logger, LogLevel, Option, Redacted, Scope } from "effect"
import { request as undiciRequest } from "undici"
import { rolesLayer, type ServiceOptions, type Services, servicesLayer, storageLayer } from "../../src/app/Service.ts"
import { type Emulator, makeEmulator } from "../../src/emulator/Emulator.ts"
import { Keys } from "../../src/identity/keys/Keys.ts"
import type { Grant } from "../../src/identity/keys/Permissions.ts"
import { Organizations } from "../../src/identity/organizations/Organizations.ts"
import { Accounts } from "../../src/payments/Accounts.ts"
import type { OrganizationId } from "../../src/platform/kit/Ids.ts"
import type { MasterKey } from "../../src/platform/settings/Settings.ts"
import { type EmulatorJournal, makeEmulatorJournal } from "./EmulatorJournal.ts"
import { type MovableClock, makeMovableClock } from "./MovableClock.ts"
import { createMigratedDatabase } from "./TestDatabase.ts"
import { layer } from "./Tests.ts"

/** An organization of a test, with a linked sandbox account and a key per environment that may do everything. */
export interface TestOrganization {
  readonly id: OrganizationId
  readonly accountId: string
  readonly testKey: string
  readonly liveKey: string
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The body as JSON; fails the test where it is none. */
  readonly json: Record<string, unknown>
}

export interface RequestOptions {
  readonly key?: string
  readonly body?: unknown
  readonly raw?: string | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
}

/** The whole service on a database of its own, the emulator behind it, real HTTP in front of it. */
export class TestService extends Context.Tag("test/TestService")<
  TestService,
  {
    readonly baseUrl: string
    readonly emulator: Emulator
    readonly journal: EmulatorJournal
    readonly options: ServiceOptions
    readonly sql: SqlClient.SqlClient
    readonly services: Context.Context<Services | SqlClient.SqlClient>
    readonly organization: TestOrganization
    /** Another tenant, whose things are none of the first one's business. */
    readonly stranger: TestOrganization
    readonly makeKey: (
      organization: OrganizationId,
      permissions: ReadonlyArray<Grant>,
      options?: { readonly mode?: "test" | "live"; readonly expiresAt?: Date }
    ) => Effect.Effect<string>
    readonly request: (method: string, path: string, options?: RequestOptions) => Effect.Effect<Answer>
    readonly clock: MovableClock
    /** Lets so much time pass for every rate limit, in the database and in the service's process. */
    readonly passTime: (time: Duration.DurationInput) => Effect.Effect<void>
  }
>() {
  static readonly layer = (
    overrides: Partial<ServiceOptions["settings"]> = {},
    publicUrl = testPublicUrl
  ): Layer.Layer<TestService> =>
    Layer.unwrapEffect(
      Effect.sync(() => {
        const clock = makeMovableClock()
        const started = Effect.flatMap(startTestService(overrides, clock, publicUrl), withOrganizations)
        return Layer.provide(Layer.scoped(TestService, started), Layer.setClock(clock))
      })
    ).pipe(Layer.orDie, Layer.provide(Logger.minimumLogLevel(LogLevel.Error)))

  /** A service that the suites of a worker share (see {@link startForWorker}), with organizations of the suite's own. */
  static readonly sharing = (service: Effect.Effect<RunningService>): Layer.Layer<TestService> =>
    Layer.effect(TestService, Effect.flatMap(service, withOrganizations).pipe(Effect.orDie))
}

export const inDatabase = <Row extends object>(text: TemplateStringsArray, ...values: ReadonlyArray<unknown>) =>
  Effect.flatMap(TestService, ({ sql }) => sql<Row>(text, ...values))

export const sendRequest = (...request: Parameters<TestService["Type"]["request"]>) =>
  Effect.flatMap(TestService, (service) => service.request(...request))

/** A service of the process under test. */
export const serviceOf = <I extends Services | SqlClient.SqlClient, S>(tag: Context.Tag<I, S>) =>
  Effect.map(TestService, ({ services }) => Context.get(services, tag))

/** A service of another process: with nothing in common but the database, and what its layer asks for. */
export const inAnotherProcess = <I, S, E, R extends Services | SqlClient.SqlClient>(
  tag: Context.Tag<I, S>,
  layer: Layer.Layer<I, E, R>
) =>
  Effect.flatMap(TestService, ({ services }) =>
    Effect.map(Layer.build(Layer.fresh(layer)), Context.get(tag)).pipe(Effect.provide(services))
  )

export const masterKey = (id: string, byte: number): MasterKey => ({
  id,
  key: Redacted.make(new Uint8Array(32).fill(byte))
})

export const testMasterKeys = [masterKey("test", 7)] as const

export const masterKeysSetting = (keys: ReadonlyArray<MasterKey>): string =>
  keys.map(({ id, key }) => `${id}:${Buffer.from(Redacted.value(key)).toString("base64")}`).join(",")

/** The settings of a service under test: quick to retry a poll, small bounds, local destinations. */
export const testSettings: ServiceOptions["settings"] = {
  host: "127.0.0.1",
  port: 0,
  roles: { api: true, worker: true },
  databasePoolSize: 5,
  databaseSchema: "payments",
  allowLocalDestinations: true,
  destinationNetworks: new BlockList(),
  endpointLimit: 16,
  eventStreamLimit: 100,
  imageMegabytesPerHour: 1_000_000,
  http: {
    connectionLimit: 2000,
    requestTimeout: Duration.minutes(1),
    answerTimeout: Duration.minutes(2),
    // Longer than a run: on a slow machine a request could meet the end of an idle connection
    keepAliveTimeout: Duration.minutes(30),
    shutdownDelay: Duration.zero,
    imageConcurrency: 64
  },
  shutdownTimeout: Duration.seconds(2),
  // A suite sends more from one address, with one key, than people do
  rateLimitPerMinute: 10_000_000,
  failedAuthenticationsPerMinute: 1_000_000,
  trustedProxies: new BlockList(),
  trustedTraceParents: new BlockList(),
  trustedOrigins: [],
  mode: "local",
  console: true,
  smtpUrl: Option.none(),
  mailFrom: "connected-payments <no-reply@payments.example>",
  // Tests lose notifications on purpose
  reconciliation: false,
  receiptRetention: Duration.days(400),
  auditRetention: Duration.days(730),
  delivery: {
    // An attempt that is late on a slow machine would be repeated half a minute later
    timeout: Duration.seconds(30),
    leaseMargin: Duration.seconds(1),
    concurrency: 64,
    concurrencyPerEndpoint: 16,
    pollInterval: Duration.millis(100),
    retention: Duration.days(30)
  }
}

/** Where the service under test is said to be: its origin is a trusted one. */
export const testPublicUrl = "https://payments.example"

export const testReturnUrls = {
  checkoutSuccessUrl: "https://shop.example/thanks?session_id={CHECKOUT_SESSION_ID}",
  checkoutCancelUrl: "https://shop.example/cart"
}

const secretKey = "sk_test_emulatorplatformkey"
export const testWebhookSecret = "whsec_emulatornotifications"

/** A request over real HTTP, at a fraction of what `fetch` costs. */
export const requestTo =
  (baseUrl: string) =>
  (method: string, path: string, options: RequestOptions = {}): Effect.Effect<Answer> =>
    Effect.promise(async () => {
      const body = options.raw ?? (options.body === undefined ? undefined : JSON.stringify(options.body))
      const type = contentTypeOf(options)
      const response = await undiciRequest(`${baseUrl}${path}`, {
        method,
        headers: {
          accept: "*/*",
          ...(options.key === undefined ? {} : { "x-api-key": options.key }),
          ...(type === undefined ? {} : { "content-type": type }),
          ...options.headers
        },
        ...(body === undefined ? {} : { body })
      })
      const text = await response.body.text()
      const headers = new Headers()
      for (const [name, value] of Object.entries(response.headers)) {
        for (const one of [value ?? []].flat()) headers.append(name, one)
      }
      return {
        status: response.statusCode,
        headers,
        text,
        get json() {
          return JSON.parse(text) as Record<string, unknown>
        }
      }
    })

/** What a body is sent as unless the test says otherwise: text without a word about it is text, as with `fetch`. */
const contentTypeOf = ({ body, raw }: RequestOptions): string | undefined => {
  if (body !== undefined) return "application/json"
  return typeof raw === "string" ? "text/plain;charset=UTF-8" : undefined
}

const startTestService = Effect.fnUntraced(function* (
  overrides: Partial<ServiceOptions["settings"]>,
  clock: MovableClock,
  publicUrl = testPublicUrl
) {
  const database = yield* createMigratedDatabase
  const journal = yield* makeEmulatorJournal
  const emulator = yield* makeEmulator({
    host: "127.0.0.1",
    port: 0,
    journalFile: journal.file,
    secretKey,
    webhookSecret: testWebhookSecret
  })
  journal.changes()
  const options: ServiceOptions = {
    settings: { ...testSettings, ...overrides },
    databaseUrl: database.url,
    publicUrl,
    masterKeys: testMasterKeys,
    provider: {
      sandbox: Option.some({
        secretKey: Redacted.make(secretKey),
        webhookSecrets: [Redacted.make(testWebhookSecret)]
      }),
      production: Option.none(),
      oauthClientIds: { sandbox: emulator.oauthClientId },
      apiUrl: Option.some(new URL(emulator.url)),
      ...testReturnUrls
    }
  }
  const storage = yield* Layer.build(storageLayer(options))
  const services = yield* Layer.build(servicesLayer(options)).pipe(Effect.provide(storage))
  const roles = yield* Layer.build(rolesLayer(options)).pipe(Effect.provide(services), Effect.provide(storage))
  const sql = Context.get(storage, SqlClient.SqlClient)
  const keys = Context.get(services, Keys)

  const makeKey: TestService["Type"]["makeKey"] = (organizationId, permissions, keyOptions = {}) =>
    keys
      .create({ organizationId, name: "Test", permissions, author: { kind: "operator", id: "test" }, ...keyOptions })
      .pipe(
        Effect.map(({ key }) => Redacted.value(key)),
        Effect.orDie
      )

  const address = Option.map(Context.getOption(roles, HttpServer.HttpServer), (server) => server.address)
  const baseUrl = Option.match(address, {
    onNone: () => "",
    onSome: (address) => (address._tag === "TcpAddress" ? `http://127.0.0.1:${address.port}` : "")
  })
  yield* emulator.setWebhookUrl(`${baseUrl}/webhooks/provider`)
  yield* emulator.setThinWebhookUrl(`${baseUrl}/webhooks/provider/thin`)
  return {
    baseUrl,
    emulator,
    journal,
    options,
    sql,
    services: Context.add(services, SqlClient.SqlClient, sql),
    makeKey,
    request: requestTo(baseUrl),
    clock,
    passTime: (time: Duration.DurationInput) =>
      Effect.sync(() => clock.forward(time)).pipe(
        Effect.zipRight(sql`
          UPDATE payments.rate_limits
          SET refilled_at = refilled_at - ${Duration.toMillis(time)} * interval '1 millisecond'`),
        Effect.orDie,
        Effect.asVoid
      )
  } satisfies RunningService
})

/** A service that was started, before anybody has an account with it. */
export type RunningService = Omit<TestService["Type"], "organization" | "stranger">

const withOrganizations = Effect.fnUntraced(function* (service: RunningService) {
  const { emulator, makeKey, services, sql } = service
  const organizations = Context.get(services, Organizations)
  const accounts = Context.get(services, Accounts)
  const makeOrganization = Effect.fnUntraced(function* (name: string) {
    const { id } = yield* organizations.create({ name, ownerEmail: `${name}-${randomUUID()}@example.com` })
    const accountId = yield* emulator.ensureAccount()
    yield* accounts.link({ organizationId: id, environment: "sandbox" }, accountId)
    // As an account that had payments before: the milestone of a first one is a matter of its own test
    yield* sql`UPDATE payments.provider_accounts SET had_payments_before = true WHERE account_id = ${accountId}`
    const everything = ["*", "webhook-endpoints:*", "audit-log:read"] as const
    const testKey = yield* makeKey(id, everything)
    return { id, accountId, testKey, liveKey: yield* makeKey(id, everything, { mode: "live" }) }
  })
  return {
    ...service,
    organization: yield* makeOrganization("first"),
    stranger: yield* makeOrganization("second")
  }
})

/** Starts a service that ends with the test worker, and its database with the run's. */
export const startForWorker = (
  overrides: Partial<ServiceOptions["settings"]>,
  publicUrl = testPublicUrl
): Promise<RunningService> => {
  const clock = makeMovableClock()
  return startTestService(overrides, clock, publicUrl).pipe(
    Scope.extend(Effect.runSync(Scope.make())),
    Effect.withClock(clock),
    Effect.provide(Logger.minimumLogLevel(LogLevel.Error)),
    Effect.runPromise
  )
}

/**
 * Declares a suite on a running service. Real clocks: its workers and the emulator live by them, so tests wait for
 * conditions with `eventually`.
 */
export const onService = (overrides?: Partial<ServiceOptions["settings"]>) => layer(TestService.layer(overrides))

/**
 * Declares suites on one service, which the first of them in a test worker starts: starting one takes as long as a dozen
 * tests. For suites that look at organizations of their own alone, and leave the schema as it is.
 */
export const onOneService = (overrides: Partial<ServiceOptions["settings"]>) => {
  let running: Promise<RunningService> | undefined
  const service = Effect.promise(() => {
    running ??= startForWorker(overrides)
    return running
  })
  return layer(TestService.sharing(service))
}

/** Declares a suite on the service without a worker that all files of a test worker share. It leaves the clock as it is, too. */
export const onSharedService = onOneService({ roles: { api: true, worker: false } })

/** The same of a service with a worker. */
export const onSharedServiceWithWorker = onOneService({})
