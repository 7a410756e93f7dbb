/** The contract, its errors and ids, and the events, for clients: no server code. */

export { Attempt, Delivery, DeliveryDetail, DeliveryList } from "../../destinations/deliveries/Api.ts"
export {
  CreatedEndpoint,
  CreateEndpoint,
  Endpoint,
  EndpointList,
  RotatedEndpoint,
  SkippedEvent,
  UpdateEndpoint
} from "../../destinations/endpoints/Api.ts"
export { Envelope, type EventData, EventType, eventData, eventTypes } from "../../events/Catalog.ts"
export { DeliveryState } from "../../events/DeliveryState.ts"
export { EventId } from "../../events/EventDefinition.ts"
export { Filters } from "../../events/Filters.ts"
export { type Permission, RequiredPermission } from "../../identity/keys/Permissions.ts"
export { CheckoutPage, CreateCheckoutPage, UpdateCheckoutPage } from "../../payments/checkout-pages/Api.ts"
export { ProviderObject, ProviderPage } from "../../payments/Schemas.ts"
export * from "../../platform/errors/Errors.ts"
export { CheckoutPageId, DeliveryId, EndpointId, OrganizationId } from "../../platform/kit/Ids.ts"
export { Api, HealthApi, operations } from "./Api.ts"
export type { Operation } from "./Operations.ts"
