/**
 * The entry point for clients of the HTTP API, without server code: the whole contract, its errors and ids, and the
 * events.
 */

export { Attempt, Delivery, DeliveryDetail, DeliveryList } from "../deliveries/api/Api.ts"
export {
  CreatedEndpoint,
  CreateEndpoint,
  Endpoint,
  EndpointList,
  RotatedEndpoint,
  SkippedEvent,
  UpdateEndpoint
} from "../endpoints/Api.ts"
export * from "../errors/Errors.ts"
export { type EventData, EventType, eventData, eventTypes } from "../events/Catalog.ts"
export { DeliveryState } from "../events/DeliveryState.ts"
export { Envelope, EventId } from "../events/EnvelopeSchema.ts"
export { Filters } from "../events/Filters.ts"
export { type Permission, RequiredPermission } from "../identity/keys/Permissions.ts"
export { CheckoutPageId, DeliveryId, EndpointId, OrganizationId } from "../kit/Ids.ts"
export { CheckoutPage, CreateCheckoutPage, UpdateCheckoutPage } from "../provider/checkout-pages/Api.ts"
export { ProviderObject, ProviderPage } from "../provider/Schemas.ts"
export { Api, HealthApi, operations } from "./Api.ts"
export type { Operation } from "./Operations.ts"
