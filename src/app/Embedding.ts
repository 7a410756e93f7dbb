import type { HttpServerError } from "@effect/platform"
import type { SqlClient, SqlError } from "@effect/sql"
import type { PgClient } from "@effect/sql-pg"
import { ConfigProvider, Context, type Duration, Effect, Layer } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { Deliveries } from "../destinations/deliveries/Deliveries.ts"
import { Retention } from "../destinations/deliveries/Retention.ts"
import { deletedEndpointsLayer, Endpoints } from "../destinations/endpoints/Endpoints.ts"
import { EventReplays } from "../destinations/event-replays/EventReplays.ts"
import { Events } from "../destinations/events/Events.ts"
import { OutboundEvents, type OutboundEventsOptions } from "../destinations/publishing/OutboundEvents.ts"
import { outboxLayer } from "../destinations/publishing/Outbox.ts"
import { makeOutboxRepo } from "../destinations/publishing/OutboxRepo.ts"
import { SyntheticTests } from "../destinations/publishing/SyntheticTests.ts"
import { Recoveries } from "../destinations/recoveries/Recoveries.ts"
import { Statistics } from "../destinations/statistics/Statistics.ts"
import { type CatalogEntry, EventCatalog } from "../events/EventCatalog.ts"
import { Invitations } from "../identity/invitations/Invitations.ts"
import { Keys } from "../identity/keys/Keys.ts"
import { Members } from "../identity/members/Members.ts"
import { Organizations } from "../identity/organizations/Organizations.ts"
import { ReturnUrls } from "../identity/return-urls/ReturnUrls.ts"
import { Sessions } from "../identity/sign-in/Sessions.ts"
import { Inbound } from "../inbound/Inbound.ts"
import { Receipts } from "../inbound/Receipts.ts"
import { Accounts } from "../payments/Accounts.ts"
import { CheckoutPages } from "../payments/checkout-pages/CheckoutPages.ts"
import { AccountConnection } from "../payments/connecting/AccountConnection.ts"
import type { AnotherPlatform } from "../payments/Platforms.ts"
import { Provider } from "../payments/Provider.ts"
import { type StripeProviderOptions, stripeProviderLayer } from "../payments/stripe/StripeProvider.ts"
import type { DecryptionFailed } from "../platform/kit/crypto/Cipher.ts"
import { housekeepingLayer } from "../platform/kit/Housekeeping.ts"
import { type MasterKey, readSettings } from "../platform/settings/Settings.ts"
import { type MigrationFailed, migrationsLayer } from "../platform/storage/Migrations.ts"
import { teamClientLayer } from "../platform/storage/TeamClient.ts"
import { PaymentsApp } from "../surface/http/Mounted.ts"
import type { ServeError } from "../surface/http/WorkerHealth.ts"
import {
  appLayer,
  type DeliverySettings,
  deliveryLayer,
  type EmbeddedOptions,
  foundationsLayer,
  rolesLayer,
  rolesWithLayer,
  type ServiceOptions,
  servicesWithProviderLayer
} from "./Service.ts"

/**
 * The service inside another Effect service, on that service's own PostgreSQL. All tables are in one schema of the
 * `PgClient`'s database (`settings.databaseSchema`, `payments` by default), which is created and kept up to date when a
 * layer is built; one transaction can span it and the embedding team's own schemas.
 */

/** The default settings, with production's rules for destinations and mail. */
export const defaultSettings: Effect.Effect<ServiceOptions["settings"]> = readSettings.pipe(
  Effect.withConfigProvider(ConfigProvider.fromMap(new Map())),
  Effect.orDie,
  Effect.map((settings) => ({ ...settings, mode: "production", allowLocalDestinations: false }))
)

export interface EmbeddedServiceOptions<E = never, R = never> extends Omit<EmbeddedOptions, "settings"> {
  /** Overrides of the defaults, which `defaultSettings` of `connected-payments/unstable` has. */
  readonly settings?: Partial<ServiceOptions["settings"]>
  /** Stripe's credentials, or a layer: another provider, or a double for tests. */
  readonly provider: StripeProviderOptions | Layer.Layer<Provider, E, R>
}

/** The team's database: its client, checked, and the schema up to date. */
const storage = ({ databaseSchema }: Pick<ServiceOptions["settings"], "databaseSchema">) =>
  Layer.provideMerge(migrationsLayer, teamClientLayer(databaseSchema))

const given = [
  AccountConnection,
  Accounts,
  CheckoutPages,
  Statistics,
  Deliveries,
  Endpoints,
  EventReplays,
  Events,
  Inbound,
  Invitations,
  Keys,
  Members,
  Organizations,
  Provider,
  Receipts,
  Recoveries,
  Retention,
  ReturnUrls,
  Sessions,
  SyntheticTests
] as const

/** The services that the whole service gives its embedding team. */
export type EmbeddedServices = Context.Tag.Identifier<(typeof given)[number]>

/** Why the whole service can't be started; each message is for operators. */
export type EmbeddedServiceError =
  | AnotherPlatform
  | DecryptionFailed
  | HttpServerError.ServeError
  | MigrationFailed
  | SqlError.SqlError
  | ServeError

/**
 * The whole service for an embedding team: the services, and what its `roles` run. Its HTTP server stays inside: a server
 * of the team's own in the same program is another one.
 */
export const embeddedServiceLayer = <E = never, R = never>(
  options: EmbeddedServiceOptions<E, R>
): Layer.Layer<EmbeddedServices, EmbeddedServiceError | E, PgClient.PgClient | SqlClient.SqlClient | R> =>
  embedded(options, rolesLayer).pipe(Layer.map(Context.pick(...given)))

/**
 * The whole service without a port of its own: `PaymentsApp` goes into the team's own server, under a prefix or not.
 * `publicUrl` then includes the prefix. `settings.roles.api` is ignored.
 */
export const embeddedAppLayer = <E = never, R = never>(
  options: EmbeddedServiceOptions<E, R>
): Layer.Layer<EmbeddedServices | PaymentsApp, EmbeddedServiceError | E, PgClient.PgClient | SqlClient.SqlClient | R> =>
  embedded(options, (complete) => {
    const settings = { ...complete.settings, roles: { ...complete.settings.roles, api: true } }
    return rolesWithLayer({ ...complete, settings }, appLayer(complete))
  }).pipe(Layer.map(Context.pick(...given, PaymentsApp)))

const embedded = <E, R, A, RolesE, RolesR>(
  options: EmbeddedServiceOptions<E, R>,
  roles: (complete: EmbeddedOptions) => Layer.Layer<A, RolesE, RolesR>
) =>
  Layer.unwrapEffect(
    Effect.map(defaultSettings, (defaults) => {
      const complete: EmbeddedOptions = { ...options, settings: { ...defaults, ...options.settings } }
      const provider = "sandbox" in options.provider ? stripeProviderLayer(options.provider) : options.provider
      // Fresh, with all its parts: otherwise a second service in one process would share the first one's queue and
      // organizations, and with them its database. A team's provider may consist of layers that its program shares
      return roles(complete).pipe(
        Layer.provideMerge(servicesWithProviderLayer(complete, Layer.effect(Provider, Provider))),
        Layer.provide(storage(complete.settings)),
        Layer.fresh,
        Layer.provide(provider)
      )
    })
  )

export interface EmbeddedEventsOptions extends OutboundEventsOptions {
  readonly catalog: ReadonlyArray<CatalogEntry>
  /** Keys for the signing secrets: the first encrypts, all decrypt. */
  readonly masterKeys: NonEmptyReadonlyArray<MasterKey>
  /** Overrides of the defaults, which `defaultSettings` of `connected-payments/unstable` has. */
  readonly settings?: Partial<
    DeliverySettings & Pick<ServiceOptions["settings"], "databasePoolSize" | "databaseSchema" | "endpointLimit">
  >
  /** `false` if this process only publishes, and another one delivers. Default `true`. */
  readonly worker?: boolean
}

export type EmbeddedEvents = OutboundEvents | Endpoints | Deliveries | Organizations

/** Endpoints, deliveries, the queue and its worker, for the team's own events only: no HTTP surface, no provider. */
export const embeddedEventsLayer = (
  options: EmbeddedEventsOptions
): Layer.Layer<
  EmbeddedEvents,
  MigrationFailed | SqlError.SqlError | DecryptionFailed,
  PgClient.PgClient | SqlClient.SqlClient
> =>
  Layer.unwrapEffect(
    Effect.map(defaultSettings, (defaults) => {
      const settings = { ...defaults, ...options.settings }
      const { retention: keepFor } = settings.delivery
      const foundations = Layer.mergeAll(
        foundationsLayer({ masterKeys: options.masterKeys, settings }),
        EventCatalog.layer(options.catalog),
        Retention.layer({ keepFor })
      )
      const services = Layer.mergeAll(
        OutboundEvents.layer(options),
        Endpoints.layer({ ...settings, limit: settings.endpointLimit, keepFor }),
        Deliveries.layer({ keepFor }),
        Organizations.layer
      )
      const background = Layer.mergeAll(
        embeddedHousekeepingLayer(keepFor),
        deletedEndpointsLayer,
        outboxLayer,
        options.worker === false ? Layer.empty : deliveryLayer({ settings })
      )
      return background.pipe(
        Layer.provideMerge(services),
        Layer.provide(foundations),
        Layer.provide(storage(settings)),
        Layer.fresh
      )
    })
  )

/** Removes rotated secrets, bindings to them, and deliveries and refused events after their retention. */
const embeddedHousekeepingLayer = (
  keepFor: Duration.Duration
): Layer.Layer<never, never, Endpoints | Deliveries | Retention | SqlClient.SqlClient> =>
  housekeepingLayer(
    "events",
    Effect.gen(function* () {
      return {
        "rotated secrets": (yield* Endpoints).clean,
        "bindings to ended secrets": (yield* Deliveries).rebind,
        "refused events of payments.publish": (yield* makeOutboxRepo).removeRefused(keepFor),
        deliveries: (yield* Retention).clean,
        "references of deliveries": (yield* Retention).checkReferences
      }
    })
  )
