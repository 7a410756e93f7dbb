import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import {
  EndpointDeleted,
  EndpointPaused,
  EventTypeNotSubscribed,
  errorSchema,
  errorSchemas,
  ReplayInProgress,
  ResourceNotFound
} from "../../platform/errors/Errors.ts"
import { EventReplayId } from "../../platform/kit/Ids.ts"
import { described, IdempotencyHeaders, optional, pageFields, strict, withStatus } from "../../platform/kit/Request.ts"
import {
  EndpointPath,
  integrationGet,
  integrationGroup,
  integrationPost,
  keyErrors
} from "../endpoints/Integrations.ts"
import { EventReplay, EventReplayList, StartEventReplay } from "./EventReplay.ts"

/** The query of an endpoint's replays. */
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

/** Replays of events to an endpoint, new or old. */
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
