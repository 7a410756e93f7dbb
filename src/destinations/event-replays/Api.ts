import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { EventType } from "../../events/Catalog.ts"
import { EventTypeName, maxSubscriptions } from "../../events/EventCatalog.ts"
import {
  EndpointDeleted,
  EndpointPaused,
  EventTypeNotSubscribed,
  errorSchema,
  errorSchemas,
  ReplayInProgress,
  ResourceNotFound
} from "../../platform/errors/Errors.ts"
import { EndpointId, EventReplayId } from "../../platform/kit/Ids.ts"
import { Instant } from "../../platform/kit/Instant.ts"
import {
  CreatedAt,
  described,
  IdempotencyHeaders,
  listOf,
  optional,
  pageFields,
  strict,
  uniqueArray,
  withStatus
} from "../../platform/kit/Request.ts"
import {
  EndpointPath,
  integrationGet,
  integrationGroup,
  integrationPost,
  keyErrors
} from "../endpoints/Integrations.ts"

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

export const ListEventReplays = strict(
  Schema.Struct({
    limit: pageFields.limit,
    starting_after: optional(EventReplayId, "The last id of the previous page")
  })
)
export type ListEventReplays = typeof ListEventReplays.Type
const ReplayPath = Schema.Struct({
  ...EndpointPath.fields,
  replayId: described(
    EventReplayId,
    "The `id` in the answer that began the replay, and in the endpoint's list of replays"
  )
})

export class EventReplaysApi extends integrationGroup("eventReplays", "Replays of events to an endpoint")
  .add(
    integrationPost(
      "start",
      "/endpoints/:id/replay",
      "Send the events of a period to an endpoint, again or for the first time"
    )
      .setPath(EndpointPath)
      .setHeaders(IdempotencyHeaders)
      .setPayload(StartEventReplay)
      .addSuccess(withStatus(202, EventReplay))
      .addError(errorSchemas(EndpointDeleted, EndpointPaused, EventTypeNotSubscribed, ReplayInProgress))
      .addError(keyErrors)
      .annotate(
        OpenApi.Description,
        "Whether or not they were delivered before: as new deliveries of the same events, oldest first, each event at most once per replay, if it passes the endpoint's filters at that time. Runs in the background, a few at a time, and only while few of the endpoint's deliveries wait, so that new events are not delayed. Synthetic events are left out. An endpoint has one running replay; while it is paused, the replay waits."
      )
  )
  .add(
    integrationGet("list", "/endpoints/:id/replays", "List an endpoint's replays, newest first")
      .setPath(EndpointPath)
      .setUrlParams(ListEventReplays)
      .addSuccess(EventReplayList)
  )
  .add(
    integrationGet("get", "/endpoints/:id/replays/:replayId", "Read the progress of a replay")
      .setPath(ReplayPath)
      .addSuccess(EventReplay)
  )
  .add(
    integrationPost("cancel", "/endpoints/:id/replays/:replayId/cancel", "Cancel a replay")
      .setPath(ReplayPath)
      .addSuccess(EventReplay)
      .addError(keyErrors)
      .annotate(
        OpenApi.Description,
        "The replay creates no more deliveries; those already created are sent. A replay that has ended stays as it is."
      )
  )
  .addError(errorSchema(ResourceNotFound)) {}
