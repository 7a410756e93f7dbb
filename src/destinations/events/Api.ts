import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { EventType } from "../../events/Catalog.ts"
import { EventTypeName } from "../../events/EventCatalog.ts"
import { errorSchema, RateLimitExceeded, ResourceNotFound } from "../../platform/errors/Errors.ts"
import { OrganizationId } from "../../platform/kit/Ids.ts"
import {
  described,
  listOf,
  optional,
  ProviderId,
  pageFields,
  shownDeliveries,
  strict,
  UnixSecondsFromQuery
} from "../../platform/kit/Request.ts"
import { Delivery, EventIdText } from "../deliveries/Api.ts"
import { integrationGet, integrationGroup } from "../endpoints/Integrations.ts"

const eventFields = {
  id: described(Schema.String, "`svc_evt_…`, the same in every delivery of the event"),
  type: EventTypeName,
  test: described(Schema.Boolean, "Whether it is a synthetic test's event"),
  receivedAt: described(
    Schema.Date,
    "When the service received it; `created_at` of the event itself says when it happened"
  ),
  event: described(Schema.Unknown, "The event envelope, as it is sent")
}

export const StoredEvent = Schema.Struct(eventFields).annotations({ identifier: "StoredEvent" })
export type StoredEvent = typeof StoredEvent.Type

export const StoredEventList = listOf("StoredEventList", StoredEvent)

export const StoredEventDetail = Schema.Struct({
  ...eventFields,
  deliveries: described(
    Schema.Array(Delivery),
    `Its deliveries to all endpoints, newest first: the newest ${shownDeliveries}, replays included`
  )
}).annotations({ identifier: "StoredEventDetail" })

export const ListEvents = strict(
  Schema.Struct({
    limit: pageFields.limit,
    starting_after: optional(EventIdText, "The last id of the previous page"),
    type: optional(EventType),
    payment_id: optional(
      ProviderId.annotations({ description: "Only with this `data.payment_id`", examples: ["pi_3Q1w2E3r4T5y6U"] })
    ),
    created_gte: optional(UnixSecondsFromQuery, "Received at or after: Unix seconds"),
    created_lte: optional(UnixSecondsFromQuery, "Received at or before: Unix seconds")
  })
)
export type ListEvents = typeof ListEvents.Type

const EventPath = Schema.Struct({ organizationId: OrganizationId, id: EventIdText })

export class EventsApi extends integrationGroup("events", "Events, whether or not they were delivered")
  .add(
    integrationGet("list", "/events", "List events, newest first")
      .setUrlParams(ListEvents)
      .addSuccess(StoredEventList)
      .addError(errorSchema(RateLimitExceeded))
      .annotate(
        OpenApi.Description,
        "In the order in which the service received them, kept as long as deliveries. The events of a payment are found at once, however many events there are. The search for a `type` starts with the newest event and takes at most 3 seconds: if it is rare in a long history, the answer is 503 `service_unavailable`; give the time with `created_gte` and `created_lte`."
      )
  )
  .add(
    integrationGet("get", "/events/:id", "Read an event with its deliveries")
      .setPath(EventPath)
      .addSuccess(StoredEventDetail)
      .addError(errorSchema(RateLimitExceeded))
  )
  .addError(errorSchema(ResourceNotFound)) {}
