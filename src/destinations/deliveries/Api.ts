import { OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { AttemptErrorCode } from "../../engine/attempts/Outcome.ts"
import { EventType } from "../../events/Catalog.ts"
import { DeliveryState } from "../../events/DeliveryState.ts"
import { EventTypeName } from "../../events/EventCatalog.ts"
import { text } from "../../platform/bounds/Text.ts"
import {
  DeliveryNotFailed,
  DeliveryRetryLimitReached,
  DeliveryWindowExpired,
  EndpointDeleted,
  errorSchema,
  errorSchemas,
  RateLimitExceeded,
  ResourceNotFound
} from "../../platform/errors/Errors.ts"
import { DeliveryId, EndpointId, OrganizationId } from "../../platform/kit/Ids.ts"
import {
  CreatedAt,
  createdFields,
  described,
  listOf,
  optional,
  pageFields,
  strict
} from "../../platform/kit/Request.ts"
import {
  EndpointPath,
  integrationGet,
  integrationGroup,
  integrationPost,
  keyErrors
} from "../endpoints/Integrations.ts"

/** An event's public id in a request. */
export const EventIdText = text({
  min: 9,
  max: 128,
  pattern: /^svc_(?:evt_[0-9a-f]{64}|test_evt_[A-Za-z0-9_-]+)$/,
  rule: "must be an event's id: svc_evt_ and 64 hexadecimal digits, or svc_test_evt_ and the test's id"
}).annotations({ description: "The event's id" })

/** A delivery of one event to one endpoint. It is `queued` while an attempt is in progress, too. */
export const Delivery = Schema.Struct({
  id: described(DeliveryId, "The delivery's UUID, also sent as `Service-Delivery-ID`"),
  endpointId: described(EndpointId, "The UUID of the endpoint that it is for"),
  eventId: described(Schema.String, "The id of the event, as in its envelope: `svc_evt_…` or `svc_test_evt_…`"),
  type: EventTypeName,
  paymentId: described(Schema.NullOr(Schema.String), "The `payment_id` of the event's `data`; null if it has none"),
  amount: described(
    Schema.NullOr(Schema.Int),
    "The event's principal amount, as filters read it, in the smallest currency unit; null if it has none"
  ),
  currency: described(Schema.NullOr(Schema.String), "The currency of `amount`; null if the event has none"),
  state: DeliveryState,
  test: described(Schema.Boolean, "True for a synthetic test's delivery, which proves nothing about money"),
  attemptCount: described(Schema.Int, "How many attempts were made so far"),
  nextAttemptAt: described(Schema.NullOr(Schema.Date), "When the next attempt is due; null if there is none"),
  createdAt: CreatedAt,
  finishedAt: described(Schema.NullOr(Schema.Date), "When it ended, in ISO 8601; null until then"),
  lastHttpStatus: described(
    Schema.NullOr(Schema.Int),
    "The status of the endpoint's last answer; null if there was none"
  ),
  lastErrorCode: described(Schema.NullOr(AttemptErrorCode), "Why the last attempt failed; null if it did not")
}).annotations({ identifier: "Delivery" })
export type Delivery = typeof Delivery.Type

/** One attempt. If the worker died during it, its outcome is unknown. */
export const Attempt = Schema.Struct({
  number: described(Schema.Int, "Its number, from 1"),
  trigger: described(
    Schema.Literal("automatic", "manual").annotations({ identifier: "AttemptTrigger" }),
    "`automatic` for the service's own attempts, `manual` for a re-send that was asked for"
  ),
  startedAt: described(Schema.Date, "When it began, in ISO 8601"),
  durationMs: described(
    Schema.NullOr(Schema.Int),
    "How long the attempt took, in milliseconds; null if the worker died during it"
  ),
  httpStatus: described(Schema.NullOr(Schema.Int), "The status of the endpoint's answer; null if there was none"),
  errorCode: described(Schema.NullOr(AttemptErrorCode), "Why the attempt failed; null if it did not")
}).annotations({ identifier: "Attempt" })
export type Attempt = typeof Attempt.Type

export const DeliveryDetail = Schema.Struct({
  ...Delivery.fields,
  attempts: described(Schema.Array(Attempt), "The attempts so far, the first one first"),
  event: described(Schema.Unknown, "The event envelope, as it is sent")
}).annotations({ identifier: "DeliveryDetail" })
export type DeliveryDetail = typeof DeliveryDetail.Type

export const DeliveryList = listOf("DeliveryList", Delivery)
export type DeliveryList = typeof DeliveryList.Type

const searchFields = {
  limit: pageFields.limit,
  starting_after: optional(DeliveryId, "The last id of the previous page"),
  state: optional(DeliveryState),
  type: optional(EventType),
  ...createdFields
}

export const ListDeliveries = strict(Schema.Struct(searchFields))
export type ListDeliveries = typeof ListDeliveries.Type

export const ListAllDeliveries = strict(
  Schema.Struct({
    ...searchFields,
    endpoint_id: optional(EndpointId, "Only deliveries to this endpoint (UUID)"),
    event_id: optional(EventIdText, "Only deliveries of this event")
  })
)
export type ListAllDeliveries = typeof ListAllDeliveries.Type

const DeliveryPath = Schema.Struct({ organizationId: OrganizationId, id: DeliveryId })

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
        "Includes those to deleted endpoints. An unknown `endpoint_id` or `event_id` has no deliveries. Queued and failed deliveries are found at once, however long the history is, unless very many have failed. Any other search starts with the newest delivery and takes at most 3 seconds: if the filters match too little of a long history, the answer is 503 `service_unavailable`; start closer to the wanted deliveries with `created_lte`. For `created_gte`, a delivery that an operator created from an old receipt is as old as the receipt; in the endpoint's own list it is not."
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
