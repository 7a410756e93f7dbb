import { OpenApi } from "@effect/platform"
import { Schema } from "effect"
import {
  EndpointPath,
  integrationGet,
  integrationGroup,
  integrationPost,
  keyErrors
} from "../../endpoints/Integrations.ts"
import {
  DeliveryNotFailed,
  DeliveryRetryLimitReached,
  DeliveryWindowExpired,
  EndpointDeleted,
  errorSchema,
  errorSchemas,
  RateLimitExceeded,
  ResourceNotFound
} from "../../errors/Errors.ts"
import { EventType } from "../../events/Catalog.ts"
import { DeliveryState } from "../../events/DeliveryState.ts"
import { EventTypeName } from "../../events/EventCatalog.ts"
import { DeliveryId, EndpointId, OrganizationId } from "../../kit/Ids.ts"
import { optional, pageFields, strict, UnixSecondsFromQuery } from "../../kit/Request.ts"
import { AttemptErrorCode } from "../Attempt.ts"
import { EventIdText } from "./EventIdText.ts"

/** A delivery of one event to one endpoint. It is `queued` while an attempt is in progress, too. */
export const Delivery = Schema.Struct({
  id: DeliveryId,
  endpointId: EndpointId,
  eventId: Schema.String,
  type: EventTypeName,
  state: DeliveryState,
  test: Schema.Boolean,
  attemptCount: Schema.Int,
  nextAttemptAt: Schema.NullOr(Schema.Date),
  createdAt: Schema.Date,
  finishedAt: Schema.NullOr(Schema.Date),
  lastHttpStatus: Schema.NullOr(Schema.Int),
  lastErrorCode: Schema.NullOr(AttemptErrorCode)
}).annotations({ identifier: "Delivery" })
export type Delivery = typeof Delivery.Type

/** One attempt. `durationMs` is null if the worker died during it: its outcome is unknown. */
export const Attempt = Schema.Struct({
  number: Schema.Int,
  trigger: Schema.Literal("automatic", "manual"),
  startedAt: Schema.Date,
  durationMs: Schema.NullOr(Schema.Int),
  httpStatus: Schema.NullOr(Schema.Int),
  errorCode: Schema.NullOr(AttemptErrorCode)
}).annotations({ identifier: "Attempt" })
export type Attempt = typeof Attempt.Type

/** A delivery with its attempts and the envelope that is sent. */
export const DeliveryDetail = Schema.Struct({
  ...Delivery.fields,
  attempts: Schema.Array(Attempt),
  event: Schema.Unknown.annotations({ description: "The event envelope, as it is sent" })
}).annotations({ identifier: "DeliveryDetail" })
export type DeliveryDetail = typeof DeliveryDetail.Type

export const DeliveryList = Schema.Struct({ data: Schema.Array(Delivery), has_more: Schema.Boolean }).annotations({
  identifier: "DeliveryList"
})
export type DeliveryList = typeof DeliveryList.Type

/** The query of an endpoint's history. */
export const ListDeliveries = strict(
  Schema.Struct({
    limit: pageFields.limit,
    starting_after: optional(DeliveryId.annotations({ description: "The last id of the previous page" })),
    state: optional(DeliveryState),
    type: optional(EventType),
    created_gte: optional(UnixSecondsFromQuery),
    created_lte: optional(UnixSecondsFromQuery)
  })
)
export type ListDeliveries = typeof ListDeliveries.Type

/** The query of the history of all endpoints. */
export const ListAllDeliveries = strict(
  Schema.Struct({
    limit: pageFields.limit,
    starting_after: optional(DeliveryId.annotations({ description: "The last id of the previous page" })),
    endpoint_id: optional(EndpointId.annotations({ description: "Only deliveries to this endpoint (UUID)" })),
    event_id: optional(EventIdText.annotations({ description: "Only deliveries of this event" })),
    state: optional(DeliveryState),
    type: optional(EventType),
    created_gte: optional(UnixSecondsFromQuery),
    created_lte: optional(UnixSecondsFromQuery)
  })
)
export type ListAllDeliveries = typeof ListAllDeliveries.Type

const DeliveryPath = Schema.Struct({ organizationId: OrganizationId, id: DeliveryId })

/** Deliveries and their history (contract 5.3). */
export class DeliveriesApi extends integrationGroup(
  "deliveries",
  "Deliveries of events to endpoints, with every attempt"
)
  .add(
    integrationGet("list", "/endpoints/:id/deliveries", "List an endpoint's deliveries, newest first")
      .setPath(EndpointPath)
      .setUrlParams(ListDeliveries)
      .addSuccess(DeliveryList)
      .addError(errorSchema(RateLimitExceeded))
      .annotate(
        OpenApi.Description,
        "The search for matches starts with the newest delivery and takes at most 3 seconds. If the filters match too little of a long history, the answer is 503 `service_unavailable`: start closer to the wanted deliveries with `created_lte`."
      )
  )
  .add(
    integrationGet("listAll", "/deliveries", "List the deliveries to all endpoints, newest first")
      .setUrlParams(ListAllDeliveries)
      .addSuccess(DeliveryList)
      .addError(errorSchema(RateLimitExceeded))
      .annotate(
        OpenApi.Description,
        "Deleted endpoints' included. An `endpoint_id` or `event_id` that there is not has no deliveries. What waits and what has failed is found at once, however long the history is, unless very much has failed. Another search starts with the newest delivery and takes at most 3 seconds: if the filters match too little of a long history, the answer is 503 `service_unavailable`; start closer to the wanted deliveries with `created_lte`. `created_gte` takes a delivery that an operator has made of an old receipt for as old as the receipt; the endpoint's own list does not."
      )
  )
  .add(
    integrationGet("get", "/deliveries/:id", "Read a delivery with its attempts and its event")
      .setPath(DeliveryPath)
      .addSuccess(DeliveryDetail)
  )
  .add(
    integrationPost("retry", "/deliveries/:id/retry", "Re-send a failed delivery")
      .setPath(DeliveryPath)
      .addSuccess(Delivery)
      .addError(errorSchemas(DeliveryNotFailed, EndpointDeleted, DeliveryRetryLimitReached, DeliveryWindowExpired))
      .addError(keyErrors)
      .annotate(
        OpenApi.Description,
        "Queues it at once for one attempt; if that fails, the delivery is `failed` again. Up to 12 attempts in all, within 72 hours of the delivery's creation. It is signed with the secrets of its creation."
      )
  )
  .addError(errorSchema(ResourceNotFound)) {}
