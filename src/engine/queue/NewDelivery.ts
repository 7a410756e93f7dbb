import { type DeliveryId, deliveryId, type EndpointId } from "../../platform/kit/Ids.ts"

/** An endpoint that receives an event. */
export interface Subscriber {
  readonly endpointId: EndpointId
  /** The secrets that will sign, the current one first. */
  readonly secretIds: ReadonlyArray<string>
}

/** A delivery as stored with its event. */
export interface NewDelivery {
  readonly id: DeliveryId
  readonly endpointId: EndpointId
  readonly eventId: string
  readonly secretIds: ReadonlyArray<string>
}

/** The deliveries of an event. The same event and endpoint always get the same id. */
export const newDeliveries = (
  event: { readonly id: string; readonly receivedAt: Date },
  subscribers: ReadonlyArray<Subscriber>
): ReadonlyArray<NewDelivery> =>
  subscribers.map(({ endpointId, secretIds }) => ({
    id: deliveryId({ eventId: event.id, endpointId, receivedAt: event.receivedAt }),
    endpointId,
    eventId: event.id,
    secretIds
  }))
