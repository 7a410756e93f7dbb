import { randomUUID } from "node:crypto"
import type { SqlClient, SqlError } from "@effect/sql"
import type { PgClient } from "@effect/sql-pg"
import { Clock, Context, Data, Duration, Effect, Layer, Predicate, Redacted, type Scope } from "effect"
import type { Emulator, EmulatorError } from "../../emulator/Emulator.ts"
import { Keys } from "../../identity/keys/Keys.ts"
import { Organizations } from "../../identity/organizations/Organizations.ts"
import { Accounts } from "../../payments/Accounts.ts"
import type { Provider } from "../../payments/Provider.ts"
import type { OrganizationId } from "../../platform/kit/Ids.ts"
import type { EmbeddedPostgresError } from "../../platform/storage/embedded/EmbeddedPostgres.ts"
import { freePort } from "../../platform/storage/embedded/FreePort.ts"
import {
  defaultSettings,
  type EmbeddedServiceOptions,
  type EmbeddedServices,
  embeddedServiceLayer
} from "../Embedding.ts"
import { EmbeddedDatabase, embeddedClientLayer } from "./Database.ts"
import { LocalProvider } from "./LocalProvider.ts"

export class TestServiceFailed extends Data.TaggedError("TestServiceFailed")<{
  readonly message: string
  readonly cause: unknown
}> {}

/** Overrides of the default test service; see `EmbeddedServiceOptions`. */
export interface TestServiceOptions {
  readonly settings?: NonNullable<EmbeddedServiceOptions["settings"]>
  /** A provider that replaces the emulator, or wraps it. */
  readonly provider?: Layer.Layer<Provider, never, LocalProvider>
}

export interface RunningTestService {
  /** Such as `http://127.0.0.1:40123`. */
  readonly baseUrl: string
  readonly organizationId: OrganizationId
  readonly accountId: string
  /** A sandbox key with `*` and `webhook-endpoints:*`. */
  readonly apiKey: Redacted.Redacted
  /** The provider's emulator: its `trigger` simulates what happens there, and notifies the service. */
  readonly emulator: Emulator
  readonly services: Context.Context<EmbeddedServices>
}

/** The whole service, served over real HTTP and backed by the emulator, for the duration of a test suite. */
export class TestService extends Context.Tag("connected-payments/testing/TestService")<
  TestService,
  RunningTestService
>() {
  /** With an embedded PostgreSQL, so nothing has to be provided. */
  static readonly layer = (
    options: TestServiceOptions = {}
  ): Layer.Layer<
    TestService | LocalProvider | PgClient.PgClient | SqlClient.SqlClient,
    TestServiceFailed | EmulatorError | EmbeddedPostgresError | SqlError.SqlError
  > =>
    // Fresh as a whole, so that services built together don't share it; `provideMerge` builds a fresh part twice
    Layer.fresh(
      Layer.provideMerge(this.layerOnDatabase(options), Layer.provide(embeddedClientLayer, EmbeddedDatabase.layer))
    )

  /**
   * Uses the `PgClient` in its context. Its database may hold the organizations of earlier and concurrent suites: each
   * service creates its own.
   */
  static readonly layerOnDatabase = (
    options: TestServiceOptions = {}
  ): Layer.Layer<
    TestService | LocalProvider,
    TestServiceFailed | EmulatorError,
    PgClient.PgClient | SqlClient.SqlClient
  > =>
    // Fresh as well: an emulator notifies one service only
    Layer.fresh(Layer.provideMerge(Layer.scoped(TestService, make(options)), LocalProvider.layer))
}

/** Settings with fast polling, local destinations, and limits that no test reaches. */
const testSettings = Effect.map(defaultSettings, ({ delivery }): EmbeddedServiceOptions["settings"] => ({
  mode: "local",
  host: "127.0.0.1",
  port: 0,
  allowLocalDestinations: true,
  rateLimitPerMinute: 1_000_000,
  failedAuthenticationsPerMinute: 1_000_000,
  shutdownTimeout: Duration.seconds(2),
  delivery: { ...delivery, timeout: Duration.seconds(5), pollInterval: Duration.millis(100) }
}))

/** Not a secret: the data that a test encrypts is removed with its database. */
const masterKeys: EmbeddedServiceOptions["masterKeys"] = [
  { id: "testing", key: Redacted.make(new Uint8Array(32).fill(1)) }
]

/** Chooses the port beforehand, since the service's URLs contain it; if it is taken meanwhile, tries three more. */
const start = (options: Omit<EmbeddedServiceOptions, "publicUrl">) =>
  Effect.gen(function* () {
    const { host = "127.0.0.1", port: wanted = 0, roles } = options.settings ?? {}
    const port = wanted === 0 ? yield* freePort(host) : wanted
    const publicUrl = `http://127.0.0.1:${port}`
    const layer = embeddedServiceLayer({ ...options, publicUrl, settings: { ...options.settings, port } })
    return { services: yield* Layer.build(layer), baseUrl: roles?.api === false ? "" : publicUrl }
  }).pipe(Effect.retry({ times: 3, while: Predicate.isTagged("ServeError") }))

const createOrganization = Effect.fnUntraced(function* (
  services: Context.Context<EmbeddedServices>,
  accountId: string
) {
  const author = { kind: "operator", id: "testing" } as const
  const organization = yield* Context.get(services, Organizations).create({
    name: "Test organization",
    // A person has one organization, and another suite may have used the database
    ownerEmail: `owner-${randomUUID()}@example.com`,
    author
  })
  yield* Context.get(services, Accounts).link(
    { organizationId: organization.id, environment: "sandbox" },
    accountId,
    author
  )
  const { key } = yield* Context.get(services, Keys).create({
    organizationId: organization.id,
    name: "Test",
    permissions: ["*", "webhook-endpoints:*"],
    author
  })
  return { organizationId: organization.id, apiKey: key }
})

const make = (
  options: TestServiceOptions
): Effect.Effect<
  RunningTestService,
  TestServiceFailed,
  LocalProvider | PgClient.PgClient | SqlClient.SqlClient | Scope.Scope
> =>
  Effect.gen(function* () {
    const local = yield* LocalProvider
    const { emulator } = local
    const provider =
      options.provider === undefined
        ? local.options
        : Layer.provide(options.provider, Layer.succeed(LocalProvider, local))
    const settings = { ...(yield* testSettings), ...options.settings }
    const { baseUrl, services } = yield* start({ masterKeys, provider, settings })
    const accountId = yield* emulator.ensureAccount()
    const { apiKey, organizationId } = yield* createOrganization(services, accountId)
    if (baseUrl !== "") {
      yield* emulator.setWebhookUrl(`${baseUrl}/webhooks/provider`)
      yield* emulator.setThinWebhookUrl(`${baseUrl}/webhooks/provider/thin`)
    }
    return { baseUrl, organizationId, accountId, apiKey, emulator, services }
  }).pipe(
    // A suite's test clock does not advance, and nothing would be delivered
    Effect.withClock(Clock.make()),
    Effect.mapError(
      (cause) => new TestServiceFailed({ message: `The service under test can't start: ${cause.message}`, cause })
    )
  )
