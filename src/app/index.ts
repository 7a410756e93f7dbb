/**
 * The entry point for an embedding team: the names that the guide on embedding and its examples use, and the types that
 * these need (contract 1). These names follow semantic versioning; `connected-payments/unstable` has the parts that
 * they are composed of. Clients of the HTTP API import `connected-payments/api` and `/client`, consumers of events
 * `/webhooks`, tests `/testing` and `/emulator`.
 */

export { Deliveries } from "../destinations/deliveries/Deliveries.ts"
export type { RetentionOptions } from "../destinations/deliveries/Retention.ts"
export {
  type CreateEndpointError,
  type EndpointChange,
  Endpoints,
  type EndpointsOptions,
  type NewEndpoint
} from "../destinations/endpoints/Endpoints.ts"
export {
  EventNotPublishable,
  type OutboundEvent,
  type OutboundEventData,
  type OutboundEventOf,
  OutboundEvents,
  type OutboundEventsOptions,
  type Published
} from "../destinations/publishing/OutboundEvents.ts"
export type { ResendRefusal } from "../engine/attempts/Outcome.ts"
export { WakeUp } from "../engine/queue/WakeUp.ts"
export {
  type DestinationUnresolvable as HostUnresolvable,
  DnsResolver,
  type ResolvedAddress
} from "../engine/transport/DestinationUrl.ts"
export { type CatalogEntry, EventCatalog } from "../events/EventCatalog.ts"
export type { CatalogEvent, EventReader, Translating } from "../events/EventReader.ts"
export type { ProviderEvent } from "../events/stripe/ProviderEvent.ts"
export type {
  CredentialLimits,
  CredentialPolicies,
  TokensToTake
} from "../identity/keys/CredentialLimitsStatements.ts"
export { Keys, type NewKey, type PresentedKey } from "../identity/keys/Keys.ts"
export type { KeyRecord } from "../identity/keys/KeysRepo.ts"
export type { OwnPermission, OwnPermissions } from "../identity/keys/Permissions.ts"
export {
  type ChangedOrganization,
  type NewOrganization,
  type Organization,
  Organizations
} from "../identity/organizations/Organizations.ts"
export { type Author, Principal, type PrincipalShape, type Tenant } from "../identity/Principal.ts"
export { type OwnReturnUrls, ReturnUrls } from "../identity/return-urls/ReturnUrls.ts"
export {
  Accounts,
  AccountTaken,
  type Disconnected,
  type LinkedAccount,
  type LinkOptions
} from "../payments/Accounts.ts"
export type { LinkedBy } from "../payments/AccountsRepo.ts"
export type { VerifiedNotification } from "../payments/notifications/Port.ts"
export { type OwnProvider, providerOf } from "../payments/OwnProvider.ts"
export { Provider, type ProviderShape } from "../payments/Provider.ts"
export type { ConnectedAccount, ProviderCall } from "../payments/ProviderCall.ts"
export {
  AccountAccessRevoked,
  type AccountFailure,
  type ProviderCallFailure,
  type ProviderFailure
} from "../payments/ProviderErrors.ts"
export { type StripeProviderOptions, stripeProviderLayer } from "../payments/stripe/StripeProvider.ts"
export { Cipher, DecryptionFailed, type Encrypted } from "../platform/kit/crypto/Cipher.ts"
export { KeyedHash } from "../platform/kit/crypto/KeyedHash.ts"
export type { Environment } from "../platform/kit/Environment.ts"
export { SlowReads, type SlowReadsOptions } from "../platform/kit/SlowReads.ts"
export type { MasterKey } from "../platform/settings/Settings.ts"
export { version } from "../platform/settings/Version.ts"
export {
  type DatabaseOptions,
  type DatabasePool,
  databaseLayer,
  type SessionOptions
} from "../platform/storage/Database.ts"
export { MigrationFailed, migrationsLayer } from "../platform/storage/Migrations.ts"
export { schemaLayer } from "../platform/storage/Schema.ts"
export { metricsLayer } from "../platform/telemetry/Metrics.ts"
export * from "../surface/contract/index.ts"
export { PaymentsApp } from "../surface/http/Mounted.ts"
export { ApiKeyCheck, ownPermissions, requirePermission } from "./ApiKeyCheck.ts"
export {
  type EmbeddedEvents,
  type EmbeddedEventsOptions,
  type EmbeddedServiceError,
  type EmbeddedServiceOptions,
  type EmbeddedServices,
  embeddedAppLayer,
  embeddedEventsLayer,
  embeddedServiceLayer
} from "./Embedding.ts"
