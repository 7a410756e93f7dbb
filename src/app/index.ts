/**
 * The entry point for an embedding team: what the guide on embedding and its examples use, and what these need besides
 * (contract 1). These names follow semantic versioning; `connected-payments/unstable` has the parts that they are
 * composed of. Clients of the HTTP API import `connected-payments/api` and `/client`, consumers of events `/webhooks`,
 * tests `/testing` and `/emulator`.
 */

export { Deliveries } from "../destinations/deliveries/Deliveries.ts"
export {
  type CreateEndpointError,
  type EndpointChange,
  Endpoints,
  type NewEndpoint
} from "../destinations/endpoints/Endpoints.ts"
export {
  EventNotPublishable,
  type OutboundEvent,
  type OutboundEventOf,
  OutboundEvents,
  type OutboundEventsOptions,
  type Published
} from "../destinations/publishing/OutboundEvents.ts"
export { type CatalogEntry, EventCatalog } from "../events/EventCatalog.ts"
export { Keys } from "../identity/keys/Keys.ts"
export { type NewOrganization, type Organization, Organizations } from "../identity/organizations/Organizations.ts"
export type { Author, Tenant } from "../identity/Principal.ts"
export { type OwnReturnUrls, ReturnUrls } from "../identity/return-urls/ReturnUrls.ts"
export type { VerifiedNotification } from "../payments/notifications/Port.ts"
export { Provider } from "../payments/Provider.ts"
export type { ConnectedAccount } from "../payments/ProviderCall.ts"
export { AccountAccessRevoked, type ProviderFailure } from "../payments/ProviderErrors.ts"
export { type StripeProviderOptions, stripeProviderLayer } from "../payments/stripe/StripeProvider.ts"
export type { Environment } from "../platform/kit/Environment.ts"
export { version } from "../platform/settings/Version.ts"
export * from "../surface/contract/index.ts"
export {
  defaultSettings,
  type EmbeddedEvents,
  type EmbeddedEventsOptions,
  type EmbeddedServiceOptions,
  embeddedEventsLayer,
  embeddedServiceLayer
} from "./Embedding.ts"
