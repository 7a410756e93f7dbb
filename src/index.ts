/**
 * The entry point for an embedding team: the services, their layers, events and errors (contract 1). Clients of the
 * HTTP API import `connected-payments/api` and `/client`, consumers of events `/webhooks`, tests `/testing` and
 * `/emulator`.
 */
export * from "./contract/index.ts"
export { Deliveries } from "./deliveries/api/Deliveries.ts"
export { Retention } from "./deliveries/api/Retention.ts"
export { EventReplays } from "./deliveries/event-replays/EventReplays.ts"
export { Events } from "./deliveries/events/Events.ts"
export { Recoveries } from "./deliveries/recoveries/Recoveries.ts"
export { Queue } from "./deliveries/sending/Queue.ts"
export { Transport } from "./deliveries/sending/Transport.ts"
export { type WorkerOptions, workerLayer } from "./deliveries/sending/Worker.ts"
export { DailyCounts } from "./deliveries/statistics/DailyCounts.ts"
export {
  defaultSettings,
  type EmbeddedEvents,
  type EmbeddedEventsOptions,
  type EmbeddedServiceOptions,
  embeddedEventsLayer,
  embeddedServiceLayer
} from "./Embedding.ts"
export { DnsResolver } from "./endpoints/DestinationUrl.ts"
export {
  type CreateEndpointError,
  type EndpointChange,
  Endpoints,
  type EndpointsOptions,
  type NewEndpoint
} from "./endpoints/Endpoints.ts"
export { encodeEnvelope } from "./events/Envelope.ts"
export type { Environment } from "./events/Environment.ts"
export { type CatalogEntry, EventCatalog } from "./events/EventCatalog.ts"
export { parseProviderEvent, type Translation, translate } from "./events/stripe/Translate.ts"
export { Invitations } from "./identity/invitations/Invitations.ts"
export { Keys } from "./identity/keys/Keys.ts"
export { Members } from "./identity/members/Members.ts"
export { type NewOrganization, type Organization, Organizations } from "./identity/organizations/Organizations.ts"
export type { Author, PrincipalShape, Role, Tenant } from "./identity/Principal.ts"
export { type OwnReturnUrls, ReturnUrls } from "./identity/return-urls/ReturnUrls.ts"
export { Sessions } from "./identity/sign-in/Sessions.ts"
export { Inbound, type Received } from "./inbound/Inbound.ts"
export { Receipts } from "./inbound/Receipts.ts"
export { Cipher, DecryptionFailed } from "./kit/Cipher.ts"
export { Mailer } from "./kit/Mailer.ts"
export { Accounts } from "./provider/Accounts.ts"
export { CheckoutPages } from "./provider/checkout-pages/CheckoutPages.ts"
export { AccountConnection, type Connection } from "./provider/connecting/AccountConnection.ts"
export type { VerifiedNotification } from "./provider/notifications/Port.ts"
export { Provider } from "./provider/Provider.ts"
export type { ConnectedAccount } from "./provider/ProviderCall.ts"
export { AccountAccessRevoked, type ProviderFailure } from "./provider/ProviderErrors.ts"
export { type StripeProviderOptions, stripeProviderLayer } from "./provider/stripe/StripeProvider.ts"
export {
  EventNotPublishable,
  type OutboundEvent,
  type OutboundEventOf,
  OutboundEvents,
  type OutboundEventsOptions,
  type Published
} from "./publishing/OutboundEvents.ts"
export { SyntheticTests } from "./publishing/SyntheticTests.ts"
export { WakeUp } from "./publishing/WakeUp.ts"
export {
  apiLayer,
  type DeliverySettings,
  deliveryLayer,
  type EmbeddedOptions,
  rolesLayer,
  type ServiceOptions,
  type Services,
  servicesLayer,
  servicesWithProviderLayer,
  storageLayer
} from "./Service.ts"
export type { MasterKey, ProviderCredentials, SettingsShape } from "./settings/Settings.ts"
export { version } from "./settings/Version.ts"
export { type DatabaseOptions, databaseLayer, transaction } from "./storage/Database.ts"
export { MigrationFailed, migrate, migrationsLayer } from "./storage/Migrations.ts"
