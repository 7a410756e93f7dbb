import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import {
  EndpointDeleted,
  EndpointPaused,
  EventTypeNotSubscribed,
  errorSchema,
  IdempotencyKeyReused,
  IdempotencyRequestInProgress,
  ReplayInProgress,
  ResourceNotFound,
  ServiceUnavailable
} from "../../errors/Errors.ts"
import { Authentication } from "../../identity/Authentication.ts"
import { RequiredPermission } from "../../identity/keys/Permissions.ts"
import { EndpointId, EventReplayId, OrganizationId } from "../../kit/Ids.ts"
import {
  described,
  IdempotencyHeaders,
  NoQuery,
  OptionalIdempotencyHeaders,
  optional,
  pageFields,
  strict,
  withStatus
} from "../../kit/Request.ts"
import { EventReplay, EventReplayList, StartEventReplay } from "./EventReplay.ts"

/** The query of an endpoint's replays. */
export const ListEventReplays = strict(
  Schema.Struct({
    limit: pageFields.limit,
    starting_after: optional(EventReplayId, "The last id of the previous page")
  })
)
export type ListEventReplays = typeof ListEventReplays.Type

const EndpointPath = Schema.Struct({ organizationId: OrganizationId, id: EndpointId })
const ReplayPath = Schema.Struct({
  ...EndpointPath.fields,
  replayId: described(
    EventReplayId,
    "As `id` in the answer that began the replay, and in the endpoint's list of replays"
  )
})

/** Replays of events to an endpoint, new or old. */
export class EventReplaysApi extends HttpApiGroup.make("eventReplays")
  .add(
    HttpApiEndpoint.post("start", "/endpoints/:id/replay")
      .setPath(EndpointPath)
      .setUrlParams(NoQuery)
      .setHeaders(IdempotencyHeaders)
      .setPayload(StartEventReplay)
      .addSuccess(withStatus(202, EventReplay))
      .addError(errorSchema(EndpointDeleted))
      .addError(errorSchema(EndpointPaused))
      .addError(errorSchema(EventTypeNotSubscribed))
      .addError(errorSchema(ReplayInProgress))
      .addError(errorSchema(IdempotencyKeyReused))
      .addError(errorSchema(IdempotencyRequestInProgress))
      .annotate(RequiredPermission, "webhook-endpoints:write")
      .annotate(OpenApi.Summary, "Send the events of a period to an endpoint, again or for the first time")
      .annotate(
        OpenApi.Description,
        "Whatever became of them before: as new deliveries of the same events, oldest first, each event at most once per replay, if it passes the endpoint's filters as they are then. In the background, a few at a time, and only while few of the endpoint's deliveries wait, so that new events are not delayed. Synthetic events are left out. An endpoint has one running replay; while it is paused, the replay waits."
      )
  )
  .add(
    HttpApiEndpoint.get("list", "/endpoints/:id/replays")
      .setPath(EndpointPath)
      .setUrlParams(ListEventReplays)
      .addSuccess(EventReplayList)
      .annotate(RequiredPermission, "webhook-endpoints:read")
      .annotate(OpenApi.Summary, "List an endpoint's replays, newest first")
  )
  .add(
    HttpApiEndpoint.get("get", "/endpoints/:id/replays/:replayId")
      .setPath(ReplayPath)
      .setUrlParams(NoQuery)
      .addSuccess(EventReplay)
      .annotate(RequiredPermission, "webhook-endpoints:read")
      .annotate(OpenApi.Summary, "Read the progress of a replay")
  )
  .add(
    HttpApiEndpoint.post("cancel", "/endpoints/:id/replays/:replayId/cancel")
      .setPath(ReplayPath)
      .setUrlParams(NoQuery)
      .setHeaders(OptionalIdempotencyHeaders)
      .addSuccess(EventReplay)
      .addError(errorSchema(IdempotencyKeyReused))
      .addError(errorSchema(IdempotencyRequestInProgress))
      .annotate(RequiredPermission, "webhook-endpoints:write")
      .annotate(OpenApi.Summary, "Cancel a replay")
      .annotate(
        OpenApi.Description,
        "It creates no more deliveries; those that it has created are sent. One that has ended stays as it is."
      )
  )
  .addError(errorSchema(ResourceNotFound))
  .addError(errorSchema(ServiceUnavailable))
  .middleware(Authentication)
  .prefix("/v2/organizations/:organizationId/integrations")
  .annotate(OpenApi.Description, "Replays of events to an endpoint") {}
