import type { SqlClient, SqlError } from "@effect/sql"
import type { PgClient } from "@effect/sql-pg"
import { Effect, Layer, type Redacted } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { Deliveries } from "../destinations/deliveries/Deliveries.ts"
import { Retention } from "../destinations/deliveries/Retention.ts"
import { deletedEndpointsLayer, Endpoints } from "../destinations/endpoints/Endpoints.ts"
import { EventReplays, eventReplaysLayer } from "../destinations/event-replays/EventReplays.ts"
import { EventStreams } from "../destinations/event-streams/EventStreams.ts"
import { EventTriggers } from "../destinations/event-triggers/EventTriggers.ts"
import { Events } from "../destinations/events/Events.ts"
import { SyntheticTests } from "../destinations/publishing/SyntheticTests.ts"
import { Recoveries, recoveriesLayer } from "../destinations/recoveries/Recoveries.ts"
import { Statistics, statisticsLayer } from "../destinations/statistics/Statistics.ts"
import { Warnings, warningsLayer } from "../destinations/warnings/Warnings.ts"
import { LocalHandOff } from "../engine/queue/Enqueue.ts"
import { observeQueue, Queue } from "../engine/queue/Queue.ts"
import { WakeUp } from "../engine/queue/WakeUp.ts"
import { DnsResolver } from "../engine/transport/DestinationUrl.ts"
import { Transport } from "../engine/transport/Transport.ts"
import { leaseTimes } from "../engine/worker/Endpoints.ts"
import { workerLayer } from "../engine/worker/Worker.ts"
import { WorkerLife } from "../engine/worker/WorkerLife.ts"
import { makeAuditCleaning } from "../identity/audit/AuditRepo.ts"
import { Invitations } from "../identity/invitations/Invitations.ts"
import { Keys } from "../identity/keys/Keys.ts"
import { Members } from "../identity/members/Members.ts"
import { Organizations } from "../identity/organizations/Organizations.ts"
import { Sessions } from "../identity/sign-in/Sessions.ts"
import { SignIn } from "../identity/sign-in/SignIn.ts"
import { FailedRefunds, failedRefundsLayer } from "../inbound/FailedRefunds.ts"
import { Inbound } from "../inbound/Inbound.ts"
import { Receipts } from "../inbound/Receipts.ts"
import { CheckoutPages } from "../payments/checkout-pages/CheckoutPages.ts"
import { CheckoutSessions } from "../payments/checkout-sessions/CheckoutSessions.ts"
import { AccountConnection } from "../payments/connecting/AccountConnection.ts"
import { imageStoreLayer } from "../payments/images/ImageStoreLayer.ts"
import { Images } from "../payments/images/Images.ts"
import type { S3ImageStoreOptions } from "../payments/images/S3ImageStore.ts"
import { supports } from "../payments/OwnProvider.ts"
import { makePlatforms } from "../payments/Platforms.ts"
import { Provider } from "../payments/Provider.ts"
import { ProviderTriggers } from "../payments/ProviderTriggers.ts"
import { providerServicesLayer } from "../payments/Services.ts"
import { type StripeProviderOptions, stripeProviderLayer } from "../payments/stripe/StripeProvider.ts"
import { Cipher } from "../platform/kit/crypto/Cipher.ts"
import { KeyedHash } from "../platform/kit/crypto/KeyedHash.ts"
import type { Environment } from "../platform/kit/Environment.ts"
import { housekeepingLayer } from "../platform/kit/Housekeeping.ts"
import { Idempotency } from "../platform/kit/Idempotency.ts"
import { Mailer } from "../platform/kit/Mailer.ts"
import { RateLimits } from "../platform/kit/RateLimit.ts"
import { SlowReads } from "../platform/kit/SlowReads.ts"
import type { MasterKey, SettingsShape } from "../platform/settings/Settings.ts"
import { version } from "../platform/settings/Version.ts"
import { databaseLayer } from "../platform/storage/Database.ts"
import { type MigrationFailed, migrationsLayer } from "../platform/storage/Migrations.ts"
import { replicaOf } from "../platform/storage/ReadReplica.ts"
import { workerHealthLayer } from "../surface/http/WorkerHealth.ts"

export interface ServiceOptions {
  /** The environment's settings, apart from the parts below and those that local defaults complete. */
  readonly settings: Omit<
    SettingsShape,
    | "publicUrl"
    | "databaseUrl"
    | "databaseDirectUrl"
    | "databaseReadUrl"
    | "dataDirectory"
    | "masterKeys"
    | "provider"
    | "checkoutSuccessUrl"
    | "checkoutCancelUrl"
    | "imageStore"
  >
  /** The URL at which integrators reach the service, without a trailing slash; its origin is trusted. */
  readonly publicUrl: string
  readonly databaseUrl: Redacted.Redacted
  /** The database's own address, if there is a connection pooler in `databaseUrl`. */
  readonly databaseDirectUrl?: Redacted.Redacted
  /** A replica that may answer lists and history. Default: none. */
  readonly databaseReadUrl?: Redacted.Redacted
  readonly masterKeys: NonEmptyReadonlyArray<MasterKey>
  readonly provider: StripeProviderOptions
  /** Where product images are kept. Default: in the database. */
  readonly imageStore?: S3ImageStoreOptions
}

export type EmbeddedOptions = Omit<ServiceOptions, "databaseUrl" | "databaseDirectUrl" | "databaseReadUrl" | "provider">

/** The services behind the HTTP surface and the worker. */
export type Services = Layer.Layer.Success<ReturnType<typeof servicesLayer>>

export const storageLayer = (
  options: ServiceOptions
): Layer.Layer<PgClient.PgClient | SqlClient.SqlClient, SqlError.SqlError | MigrationFailed> =>
  Layer.merge(migrationsLayer, replicaOf(options.databaseReadUrl, options.settings.databasePoolSize)).pipe(
    Layer.provideMerge(
      databaseLayer({
        url: options.databaseUrl,
        ...(options.databaseDirectUrl === undefined ? {} : { directUrl: options.databaseDirectUrl }),
        poolSize: options.settings.databasePoolSize,
        schema: options.settings.databaseSchema
      })
    )
  )

export const servicesLayer = (options: ServiceOptions) =>
  servicesWithProviderLayer(options, stripeProviderLayer(options.provider)).pipe(
    Layer.provide(ProviderTriggers.layer(options.provider))
  )

/** The layers below the services, besides the database: the same with a provider and with only a team's own events. */
export const foundationsLayer = ({
  masterKeys,
  settings
}: {
  readonly masterKeys: Parameters<typeof Cipher.layer>[0]
  readonly settings: Parameters<typeof SlowReads.layer>[0]
}) =>
  Layer.mergeAll(
    Layer.provideMerge(KeyedHash.layer, Cipher.layer(masterKeys)),
    DnsResolver.layer,
    WakeUp.layer,
    LocalHandOff.layer,
    Queue.layer,
    SlowReads.layer(settings)
  )

export const servicesWithProviderLayer = <E, R>(options: EmbeddedOptions, provider: Layer.Layer<Provider, E, R>) => {
  const { allowLocalDestinations, destinationNetworks, endpointLimit, imageMegabytesPerHour, mailFrom, mode, smtpUrl } =
    options.settings
  const { retention: keepFor } = options.settings.delivery
  const foundations = Layer.merge(foundationsLayer(options), Layer.provideMerge(providerServicesLayer, provider))
  // Links in mails sign people in, so only a local log may show them
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
    Layer.provide(Images.layer({ publicUrl: options.publicUrl, plainHttp: mode === "local", imageMegabytesPerHour }), [
      imageStoreLayer(options.imageStore),
      RateLimits.layer
    ]),
    CheckoutPages.layer({ publicUrl: options.publicUrl, plainHttp: mode === "local" }),
    Layer.provide(AccountConnection.layer(options), RateLimits.layer),
    Endpoints.layer({ limit: endpointLimit, allowLocalDestinations, destinationNetworks, keepFor }),
    SyntheticTests.layer,
    Deliveries.layer({ keepFor }),
    Statistics.layer,
    Recoveries.layer,
    EventStreams.layer(options.settings),
    Layer.provide(EventTriggers.layer, Idempotency.layer),
    Events.layer({ keepFor }),
    EventReplays.layer({ keepFor }),
    Layer.provide(Warnings.layer(options), [mailer, Members.layer]),
    Retention.layer({ keepFor }),
    Layer.provide(FailedRefunds.layer(options), [mailer, Members.layer]),
    Inbound.layer,
    Receipts.layer(options.settings)
  ).pipe(Layer.provideMerge(foundations))
}

const httpOptionsOf = (options: EmbeddedOptions) =>
  Effect.gen(function* () {
    const { consoleUrlOf } = yield* Effect.promise(() => import("../surface/http/console/Source.ts"))
    return {
      ...options.settings,
      publicUrl: options.publicUrl,
      consoleUrl: options.settings.console ? yield* consoleUrlOf(options.publicUrl) : null,
      trustedOrigins: new Set([new URL(options.publicUrl).origin, ...options.settings.trustedOrigins])
    }
  })

/** The HTTP surface as an app, for a server of an embedding team's own. */
export const appLayer = (options: EmbeddedOptions) =>
  Layer.unwrapEffect(
    Effect.gen(function* () {
      const { mountedLayer } = yield* Effect.promise(() => import("../surface/http/Mounted.ts"))
      return mountedLayer(yield* httpOptionsOf(options))
    })
  )

/** The HTTP surface, listening. Loaded when it is built: a process that runs only a worker does not need it. */
export const apiLayer = (options: EmbeddedOptions) =>
  Layer.unwrapEffect(
    Effect.gen(function* () {
      const [{ httpLayer }, { serverLayer }] = yield* Effect.promise(() =>
        Promise.all([import("../surface/http/Http.ts"), import("../server/Server.ts")])
      )
      return Layer.provideMerge(
        httpLayer(yield* httpOptionsOf(options)),
        serverLayer({ ...options.settings, ...options.settings.http })
      )
    })
  )

export type DeliverySettings = Pick<
  ServiceOptions["settings"],
  "allowLocalDestinations" | "destinationNetworks" | "delivery" | "shutdownTimeout"
>

export const deliveryLayer = (options: { readonly settings: DeliverySettings }) => {
  const { allowLocalDestinations, delivery, destinationNetworks, shutdownTimeout } = options.settings
  const { lease, startWithin, timeoutSpread } = leaseTimes(delivery.timeout, delivery.leaseMargin)
  return workerLayer({
    lease,
    startWithin,
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
        timeoutSpread,
        // As many as there are concurrent attempts, since several organizations' endpoints may be on one host
        idleConnectionsPerOrigin: delivery.concurrency,
        idleConnections: 4 * delivery.concurrency
      })
    )
  )
}

/**
 * The housekeeping of every process: removes ended sessions, sign-in tokens and invitations, idempotency keys after
 * their 24 hours, rate limits that are full again, deleted checkout pages, the sold items of old sessions, unfinished
 * authorizations, rotated signing secrets, daily counts, and receipts, audit records, deliveries and payloads after
 * their retention.
 */
export const serviceHousekeepingLayer = ({ settings }: { readonly settings: Pick<SettingsShape, "auditRetention"> }) =>
  housekeepingLayer(
    "service",
    Effect.gen(function* () {
      return {
        sessions: (yield* Sessions).clean,
        "sign-in tokens": (yield* SignIn).clean,
        invitations: (yield* Invitations).clean,
        "idempotency keys": (yield* Idempotency).clean,
        "rate limits": (yield* RateLimits).clean,
        receipts: (yield* Receipts).clean,
        "audit records": yield* makeAuditCleaning(settings.auditRetention),
        "deleted checkout pages": (yield* CheckoutPages).clean,
        "items that sessions sell": (yield* CheckoutSessions).clean,
        "authorizations of accounts": (yield* AccountConnection).clean,
        "rotated secrets": (yield* Endpoints).clean,
        "bindings to ended secrets": (yield* Deliveries).rebind,
        "daily counts": (yield* Statistics).clean,
        // Last, since it may take long
        deliveries: (yield* Retention).clean,
        "references of deliveries": (yield* Retention).checkReferences
      }
    })
  )

/** Stores the provider's events whose notifications were lost, in one process, if the provider lists its events. */
const reconciliationLayer = (environment: Environment) =>
  Layer.unwrapEffect(
    Effect.map(Provider, (provider) =>
      supports(provider, "listEvents")
        ? housekeepingLayer(
            `reconciliation of ${environment}`,
            Effect.map(Receipts, ({ reconcile }) => ({ "lost notifications": reconcile(environment) }))
          )
        : Layer.empty
    )
  )

export const rolesLayer = (options: EmbeddedOptions) =>
  rolesWithLayer(options, options.settings.roles.api ? apiLayer(options) : Layer.empty)

/** `rolesLayer` with this HTTP surface. */
export const rolesWithLayer = <A, E, R>(options: EmbeddedOptions, api: Layer.Layer<A, E, R>) =>
  Layer.mergeAll(
    serviceHousekeepingLayer(options),
    deletedEndpointsLayer,
    statisticsLayer,
    recoveriesLayer,
    eventReplaysLayer,
    warningsLayer,
    failedRefundsLayer,
    options.settings.reconciliation
      ? Layer.merge(reconciliationLayer("sandbox"), reconciliationLayer("production"))
      : Layer.empty,
    api,
    options.settings.roles.worker
      ? // Built before the worker, so it ends after it: it answers until the last attempt has ended
        Layer.provideMerge(
          deliveryLayer(options),
          options.settings.roles.api ? Layer.empty : workerHealthLayer(options.settings)
        )
      : Layer.empty,
    // In every process: late deliveries must be noticed even if no worker runs at all
    Layer.scopedDiscard(observeQueue)
  ).pipe(
    Layer.provide(WorkerLife.layer),
    // Before anything is served
    Layer.provide(Layer.effectDiscard(Effect.flatMap(makePlatforms, ({ checkKeys }) => checkKeys)))
  )
