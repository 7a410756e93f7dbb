/**
 * What an embedding team imports: the services, their layers, events and errors (contract, What the service does). A
 * client of the HTTP API takes `connected-payments/api` and `/client`, a consumer of events `/webhooks`, a test
 * `/testing` and `/emulator`.
 */
export * from "./Contract.ts"
export { Deliveries } from "./deliveries/Deliveries.ts"
export { Queue } from "./deliveries/Queue.ts"
export { Recoveries } from "./deliveries/Recoveries.ts"
export { Retention } from "./deliveries/Retention.ts"
export { Transport } from "./deliveries/Transport.ts"
export { WakeUp } from "./deliveries/WakeUp.ts"
export { type WorkerOptions, workerLayer } from "./deliveries/Worker.ts"
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
export { SyntheticTests } from "./endpoints/SyntheticTests.ts"
export { encodeEnvelope } from "./events/Envelope.ts"
export { type CatalogEntry, EventCatalog } from "./events/EventCatalog.ts"
export { parseProviderEvent, type Translation, translate } from "./events/Translate.ts"
export { Invitations } from "./identity/Invitations.ts"
export { Keys } from "./identity/Keys.ts"
export { Members } from "./identity/Members.ts"
export { type NewOrganization, type Organization, Organizations } from "./identity/Organizations.ts"
export type { Author, PrincipalShape, Role, Tenant } from "./identity/Principal.ts"
export { Sessions } from "./identity/Sessions.ts"
export { Inbound, type Received } from "./inbound/Inbound.ts"
export { Receipts } from "./inbound/Receipts.ts"
export { Cipher } from "./kit/Cipher.ts"
export { Mailer } from "./kit/Mailer.ts"
export { version } from "./kit/Version.ts"
export {
  EventNotPublishable,
  type OutboundEvent,
  type OutboundEventOf,
  OutboundEvents,
  type OutboundEventsOptions,
  type Published
} from "./outbound/OutboundEvents.ts"
export { Accounts } from "./provider/Accounts.ts"
export { type ConnectedAccount, Provider, type VerifiedNotification } from "./provider/Provider.ts"
export { AccountAccessRevoked, type ProviderFailure } from "./provider/ProviderErrors.ts"
export { type StripeProviderOptions, stripeProviderLayer } from "./provider/StripeProvider.ts"
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
export type { Environment, MasterKey, ProviderCredentials, SettingsShape } from "./Settings.ts"
export { type DatabaseOptions, databaseLayer, transaction } from "./storage/Database.ts"
export { MigrationFailed, migrate, migrationsLayer } from "./storage/Migrations.ts"
