/**
 * The entry point for an embedding team: what the guide on embedding and its examples use, and what these need besides
 * (contract 1). These names follow semantic versioning; `connected-payments/unstable` has the parts that they are
 * composed of. Clients of the HTTP API import `connected-payments/api` and `/client`, consumers of events `/webhooks`,
 * tests `/testing` and `/emulator`.
 */
export * from "./contract/index.ts"
export { Deliveries } from "./deliveries/api/Deliveries.ts"
export {
  defaultSettings,
  type EmbeddedEvents,
  type EmbeddedEventsOptions,
  type EmbeddedServiceOptions,
  embeddedEventsLayer,
  embeddedServiceLayer
} from "./Embedding.ts"
export { type CreateEndpointError, type EndpointChange, Endpoints, type NewEndpoint } from "./endpoints/Endpoints.ts"
export type { Environment } from "./events/Environment.ts"
export { type CatalogEntry, EventCatalog } from "./events/EventCatalog.ts"
export { Keys } from "./identity/keys/Keys.ts"
export { type NewOrganization, type Organization, Organizations } from "./identity/organizations/Organizations.ts"
export type { Author, Tenant } from "./identity/Principal.ts"
export { type OwnReturnUrls, ReturnUrls } from "./identity/return-urls/ReturnUrls.ts"
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
export { version } from "./settings/Version.ts"
