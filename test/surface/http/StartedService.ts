import { HttpServer } from "@effect/platform"
import { SqlClient } from "@effect/sql"
import { Cause, Context, Effect, HashMap, Layer, Logger, LogLevel, Option, Redacted, type Scope } from "effect"
import {
  rolesLayer,
  type ServiceOptions,
  type Services,
  servicesLayer,
  storageLayer
} from "../../../src/app/Service.ts"
import { Keys } from "../../../src/identity/keys/Keys.ts"
import type { Grant } from "../../../src/identity/keys/Permissions.ts"
import { Organizations } from "../../../src/identity/organizations/Organizations.ts"
import type { OrganizationId } from "../../../src/platform/kit/Ids.ts"
import {
  requestTo,
  type TestService,
  testPublicUrl,
  testReturnUrls,
  testSettings,
  testWebhookSecret
} from "../../harness/TestService.ts"

/** A line of the service's log, with everything that would be written of it. */
export interface LogLine {
  readonly level: string
  readonly text: string
  readonly requestId: unknown
}

/** The service on a database and a provider of the test's choice, its log kept. */
export interface StartedService {
  readonly baseUrl: string
  readonly request: TestService["Type"]["request"]
  readonly services: Context.Context<Services>
  readonly sql: SqlClient.SqlClient
  readonly log: ReadonlyArray<LogLine>
}

/** Everything is kept, down to the finest level: what must not be logged must not be there at any. */
const keepLog = (lines: Array<LogLine>) =>
  Layer.merge(
    Logger.replace(
      Logger.defaultLogger,
      Logger.make(({ annotations, cause, logLevel, message }) => {
        lines.push({
          level: logLevel.label,
          text: `${JSON.stringify(message)} ${Cause.isEmpty(cause) ? "" : Cause.pretty(cause, { renderErrorCause: true })}`,
          requestId: Option.getOrUndefined(HashMap.get(annotations, "requestId"))
        })
      })
    ),
    Logger.minimumLogLevel(LogLevel.All)
  )

/** The sandbox of a provider at this address. */
export const providerAt = (url: string | URL, secretKey = "sk_test_scripted") => ({
  sandbox: Option.some({
    secretKey: Redacted.make(secretKey),
    webhookSecrets: [Redacted.make(testWebhookSecret)] as const
  }),
  production: Option.none(),
  apiUrl: Option.some(new URL(url)),
  ...testReturnUrls
})

export const startService = (
  options: Pick<ServiceOptions, "databaseUrl" | "databaseReadUrl" | "provider"> & {
    readonly settings?: Partial<ServiceOptions["settings"]>
  }
): Effect.Effect<StartedService, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const log: Array<LogLine> = []
    const complete: ServiceOptions = {
      ...options,
      publicUrl: testPublicUrl,
      settings: { ...testSettings, roles: { api: true, worker: false }, ...options.settings },
      masterKeys: [{ id: "test", key: Redacted.make(new Uint8Array(32).fill(7)) }]
    }
    return yield* Effect.gen(function* () {
      const storage = yield* Layer.build(storageLayer(complete))
      const services = yield* Layer.build(servicesLayer(complete)).pipe(Effect.provide(storage))
      const roles = yield* Layer.build(rolesLayer(complete)).pipe(Effect.provide(services), Effect.provide(storage))
      const address = Option.map(Context.getOption(roles, HttpServer.HttpServer), (server) => server.address)
      const port = Option.isSome(address) && address.value._tag === "TcpAddress" ? address.value.port : 0
      const baseUrl = `http://127.0.0.1:${port}`
      return { baseUrl, request: requestTo(baseUrl), services, sql: Context.get(storage, SqlClient.SqlClient), log }
    }).pipe(Effect.provide(keepLog(log)))
  })

export const makeOrganization = (
  services: Context.Context<Services>,
  options: { readonly name: string; readonly permissions?: ReadonlyArray<Grant> }
): Effect.Effect<{ readonly id: OrganizationId; readonly key: string }> =>
  Effect.gen(function* () {
    const { id } = yield* Context.get(services, Organizations).create({
      name: options.name,
      ownerEmail: `${options.name}@example.com`
    })
    const { key } = yield* Context.get(services, Keys).create({
      organizationId: id,
      name: "Test",
      permissions: options.permissions ?? ["*", "webhook-endpoints:*"],
      author: { kind: "operator", id: "test" }
    })
    return { id, key: Redacted.value(key) }
  }).pipe(Effect.orDie)

/** A live key of an organization that may do everything. */
export const makeLiveKey = (
  services: Context.Context<Services>,
  organizationId: OrganizationId
): Effect.Effect<string> =>
  Context.get(services, Keys)
    .create({
      organizationId,
      name: "Live",
      permissions: ["*", "webhook-endpoints:*"],
      mode: "live",
      author: { kind: "operator", id: "test" }
    })
    .pipe(
      Effect.map(({ key }) => Redacted.value(key)),
      Effect.orDie
    )
