import { Schema } from "effect"
import { EventType } from "../../events/Catalog.ts"
import { EventTypeName, maxSubscriptions } from "../../events/EventCatalog.ts"
import { EndpointId, EventReplayId } from "../../platform/kit/Ids.ts"
import { Instant } from "../../platform/kit/Instant.ts"
import { CreatedAt, described, listOf, optional, strict, uniqueArray } from "../../platform/kit/Request.ts"

/** A replay: sends the events of a period to one endpoint, whatever happened to them before; with its progress. */
export const EventReplay = Schema.Struct({
  id: EventReplayId,
  endpointId: EndpointId,
  since: described(Schema.Date, "The beginning of its period, in ISO 8601"),
  until: described(Schema.Date, "The end of its period, in ISO 8601; later events are left out"),
  types: described(
    Schema.NullOr(Schema.Array(EventTypeName)),
    "The types that were asked for; null for all that the endpoint subscribes to"
  ),
  state: described(
    Schema.Literal("running", "finished", "canceled").annotations({ identifier: "EventReplayState" }),
    "`running` until the whole period was examined, then `finished`; or `canceled`"
  ),
  queued: described(Schema.Int, "Deliveries that it has created so far"),
  skipped: described(
    Schema.Int,
    "Events of its types that were left out so far, by the endpoint's filters or because they are synthetic"
  ),
  reachedAt: described(
    Schema.Date,
    "Its progress from `since` to `until`: all events received before this time were examined"
  ),
  createdAt: CreatedAt,
  finishedAt: described(Schema.NullOr(Schema.Date), "When it ended, in ISO 8601; null until then")
}).annotations({ identifier: "EventReplay" })
export type EventReplay = typeof EventReplay.Type

export const EventReplayList = listOf("EventReplayList", EventReplay)
export type EventReplayList = typeof EventReplayList.Type

export const StartEventReplay = strict(
  Schema.Struct({
    since: described(Instant, "Events that were received at this time or later; not in the future"),
    until: optional(
      Instant,
      "Events that were received before this time; after `since`, not in the future. Default: now"
    ),
    types: optional(
      uniqueArray(EventType, { min: 1, max: maxSubscriptions }).annotations({
        description: "Types that the endpoint subscribes to, each once. Default: all that it subscribes to",
        jsonSchema: { uniqueItems: true }
      })
    )
  }).annotations({ identifier: "StartEventReplay" })
)
export type StartEventReplay = typeof StartEventReplay.Type
