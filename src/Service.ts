import type { SqlClient, SqlError } from "@effect/sql"
import type { PgClient } from "@effect/sql-pg"
import { Duration, Effect, Layer, type Redacted } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { Deliveries } from "./deliveries/Deliveries.ts"
import { Queue } from "./deliveries/Queue.ts"
import { observeQueue } from "./deliveries/QueueMetrics.ts"
import { Recoveries, recoveriesLayer } from "./deliveries/Recoveries.ts"
import { Retention } from "./deliveries/Retention.ts"
import { Transport } from "./deliveries/Transport.ts"
import { WakeUp } from "./deliveries/WakeUp.ts"
import { Warnings, warningsLayer } from "./deliveries/Warnings.ts"
import { workerLayer } from "./deliveries/Worker.ts"
import { DnsResolver } from "./endpoints/DestinationUrl.ts"
import { Endpoints } from "./endpoints/Endpoints.ts"
import { SyntheticTests } from "./endpoints/SyntheticTests.ts"
import { housekeepingLayer } from "./Housekeeping.ts"
import { Invitations } from "./identity/Invitations.ts"
import { Keys } from "./identity/Keys.ts"
import { Members } from "./identity/Members.ts"
import { Organizations } from "./identity/Organizations.ts"
import { Sessions } from "./identity/Sessions.ts"
import { SignIn } from "./identity/SignIn.ts"
import { imageStoreLayer } from "./images/ImageStoreLayer.ts"
import { Images } from "./images/Images.ts"
import type { S3ImageStoreOptions } from "./images/S3ImageStore.ts"
import { Inbound } from "./inbound/Inbound.ts"
import { Receipts } from "./inbound/Receipts.ts"
import { AuditRetention } from "./kit/AuditRetention.ts"
import { Cipher } from "./kit/Cipher.ts"
import { Idempotency } from "./kit/Idempotency.ts"
import { Mailer } from "./kit/Mailer.ts"
import { RateLimits } from "./kit/RateLimit.ts"
import { version } from "./kit/Version.ts"
import { Accounts } from "./provider/Accounts.ts"
import { CheckoutSessions } from "./provider/CheckoutSessions.ts"
import { PaymentLinks } from "./provider/PaymentLinks.ts"
import { Prices } from "./provider/Prices.ts"
import { Products } from "./provider/Products.ts"
import { PromotionCodes } from "./provider/PromotionCodes.ts"
import type { Provider } from "./provider/Provider.ts"
import { type StripeProviderOptions, stripeProviderLayer } from "./provider/StripeProvider.ts"
import type { MasterKey, SettingsShape } from "./Settings.ts"
import { databaseLayer } from "./storage/Database.ts"
import { type MigrationFailed, migrationsLayer } from "./storage/Migrations.ts"

/** Everything that the service needs to run: the settings, with what they left open filled in. */
export interface ServiceOptions {
  readonly settings: Pick<
    SettingsShape,
    | "host"
    | "port"
    | "roles"
    | "http"
    | "databasePoolSize"
    | "allowLocalDestinations"
    | "destinationNetworks"
    | "endpointLimit"
    | "imageMegabytesPerHour"
    | "delivery"
    | "shutdownTimeout"
    | "rateLimitPerMinute"
    | "failedAuthenticationsPerMinute"
    | "trustedProxies"
    | "trustedTraceParents"
    | "trustedOrigins"
    | "mode"
    | "smtpUrl"
    | "mailFrom"
    | "receiptRetention"
    | "auditRetention"
  >
  /** Where integrators reach the service, without a trailing slash; its origin is trusted. */
  readonly publicUrl: string
  readonly databaseUrl: Redacted.Redacted
  readonly masterKeys: NonEmptyReadonlyArray<MasterKey>
  readonly provider: StripeProviderOptions
  /** Where product images are kept. Default: in the database. */
  readonly imageStore?: S3ImageStoreOptions
}

/** The options of a service whose database and provider are layers of an embedding team's own. */
export type EmbeddedOptions = Omit<ServiceOptions, "databaseUrl" | "provider">

/** The services behind the HTTP surface and the worker. */
export type Services =
  | Keys
  | Sessions
  | SignIn
  | Members
  | Invitations
  | Mailer
  | RateLimits
  | Idempotency
  | Organizations
  | Provider
  | Accounts
  | Products
  | Prices
  | PromotionCodes
  | PaymentLinks
  | CheckoutSessions
  | Images
  | Endpoints
  | SyntheticTests
  | Deliveries
  | Recoveries
  | Warnings
  | Retention
  | Inbound
  | Receipts
  | AuditRetention
  | Queue
  | WakeUp
  | Cipher
  | DnsResolver

/** The database with its schema up to date. */
export const storageLayer = (
  options: ServiceOptions
): Layer.Layer<PgClient.PgClient | SqlClient.SqlClient, SqlError.SqlError | MigrationFailed> =>
  Layer.provideMerge(
    migrationsLayer,
    databaseLayer({ url: options.databaseUrl, poolSize: options.settings.databasePoolSize })
  )

/** All services, on a database and nothing else. */
export const servicesLayer = (
  options: ServiceOptions
): Layer.Layer<Services, never, PgClient.PgClient | SqlClient.SqlClient> =>
  servicesWithProviderLayer(options, stripeProviderLayer(options.provider))

/** All services, on a database and with a provider of one's own. */
export const servicesWithProviderLayer = <E, R>(
  options: EmbeddedOptions,
  provider: Layer.Layer<Provider, E, R>
): Layer.Layer<Services, E, PgClient.PgClient | SqlClient.SqlClient | R> => {
  const { allowLocalDestinations, destinationNetworks, endpointLimit, imageMegabytesPerHour, mailFrom, mode, smtpUrl } =
    options.settings
  const foundations = Layer.mergeAll(
    Cipher.layer(options.masterKeys),
    DnsResolver.layer,
    WakeUp.layer,
    Queue.layer,
    provider
  )
  const accounts = Layer.provideMerge(Accounts.layer, foundations)
  const catalog = Layer.mergeAll(Products.layer, PromotionCodes.layer, PaymentLinks.layer, CheckoutSessions.layer).pipe(
    Layer.provideMerge(Prices.layer)
  )
  // Links in mails sign people in: only a developer's own log may show them
  const mailer = Mailer.layer({ smtpUrl, from: mailFrom, toLog: mode === "local", requireTls: mode === "production" })
  const identity = Layer.mergeAll(SignIn.layer(options), Invitations.layer(options)).pipe(
    Layer.provideMerge(Layer.mergeAll(mailer, Sessions.layer, RateLimits.layer))
  )
  return Layer.mergeAll(
    Keys.layer,
    identity,
    Members.layer,
    Idempotency.layer,
    Organizations.layer,
    catalog,
    Layer.provide(Images.layer({ publicUrl: options.publicUrl, plainHttp: mode === "local", imageMegabytesPerHour }), [
      imageStoreLayer(options.imageStore),
      RateLimits.layer
    ]),
    Endpoints.layer({ limit: endpointLimit, allowLocalDestinations, destinationNetworks }),
    SyntheticTests.layer,
    Deliveries.layer,
    Recoveries.layer,
    Layer.provide(Warnings.layer(options), [mailer, Members.layer]),
    Retention.layer({ keepFor: options.settings.delivery.retention }),
    AuditRetention.layer(options.settings),
    Layer.provide(Layer.mergeAll(Inbound.layer, Receipts.layer(options.settings)), catalog)
  ).pipe(Layer.provideMerge(accounts))
}

/** The HTTP surface, listening. Its modules are loaded when the layer is built: a worker alone never needs them. */
export const apiLayer = (options: EmbeddedOptions) =>
  Layer.unwrapEffect(
    Effect.map(
      Effect.promise(() => Promise.all([import("./Http.ts"), import("./Server.ts")])),
      ([{ httpLayer }, { serverLayer }]) =>
        Layer.provideMerge(
          httpLayer({
            ...options.settings,
            trustedOrigins: new Set([new URL(options.publicUrl).origin, ...options.settings.trustedOrigins])
          }),
          serverLayer({ ...options.settings, ...options.settings.http })
        )
    )
  )

/** What the worker asks of the settings. */
export type DeliverySettings = Pick<
  ServiceOptions["settings"],
  "allowLocalDestinations" | "destinationNetworks" | "delivery" | "shutdownTimeout"
>

/** The worker that delivers. */
export const deliveryLayer = (options: { readonly settings: DeliverySettings }) => {
  const { allowLocalDestinations, delivery, destinationNetworks, shutdownTimeout } = options.settings
  return workerLayer({
    lease: Duration.sum(delivery.timeout, delivery.leaseMargin),
    startWithin: delivery.leaseMargin,
    concurrency: delivery.concurrency,
    concurrencyPerEndpoint: delivery.concurrencyPerEndpoint,
    pollInterval: delivery.pollInterval,
    drainTimeout: shutdownTimeout,
    allowLocalDestinations,
    destinationNetworks,
    userAgent: `connected-payments/${version}`
  }).pipe(
    Layer.provide(
      Transport.layer({
        timeout: delivery.timeout,
        // As many as can be in flight: several customers may share one receiving service
        idleConnectionsPerOrigin: delivery.concurrency,
        idleConnections: 4 * delivery.concurrency
      })
    )
  )
}

/** What a process of these roles runs, on the services. */
export const rolesLayer = (options: EmbeddedOptions) =>
  Layer.mergeAll(
    housekeepingLayer,
    recoveriesLayer,
    warningsLayer,
    options.settings.roles.api ? apiLayer(options) : Layer.empty,
    options.settings.roles.worker ? deliveryLayer(options) : Layer.empty,
    // Every process: that deliveries are late is to be seen where no worker runs at all
    Layer.scopedDiscard(observeQueue)
  )
