import { Effect, Schema } from "effect"
import { remark } from "../bounds/Rules.ts"
import { EventIdText } from "../deliveries/api/EventIdText.ts"
import { EventReplay, EventReplayList, StartEventReplay } from "../deliveries/api/EventReplay.ts"
import { EventReplays } from "../deliveries/api/EventReplays.ts"
import { Events } from "../deliveries/api/Events.ts"
import { StoredEventDetail, StoredEventList } from "../deliveries/api/EventsApi.ts"
import { makeDeliveryMutations } from "../deliveries/api/Mutations.ts"
import { EventType } from "../events/Catalog.ts"
import { EndpointId, EventReplayId } from "../kit/Ids.ts"
import { OptionalIdempotencyKey, optional, ProviderId, strict } from "../kit/Request.ts"
import { makeTool, type Tool } from "./Tool.ts"

/** Tools for events and their replays. */

const endpointId = EndpointId.annotations({ description: "The endpoint's id, from list_webhook_endpoints" })
const replayId = EventReplayId.annotations({ description: "The replay's id, from list_webhook_replays" })

const limit = optional(
  Schema.Int.pipe(Schema.between(1, 100)).annotations({ description: "How many items to return: 1 to 100, default 10" })
)

const unixSeconds = (description: string) =>
  optional(Schema.Int.pipe(Schema.between(0, 4_102_444_800)).annotations({ ...remark("of Unix seconds"), description }))

const ListArguments = strict(
  Schema.Struct({
    limit,
    starting_after: optional(EventIdText.annotations({ description: "The last id of the previous page" })),
    type: optional(EventType),
    payment_id: optional(ProviderId.annotations({ description: "Events whose `data.payment_id` this is" })),
    created_gte: unixSeconds("Received at or after: Unix seconds"),
    created_lte: unixSeconds("Received at or before: Unix seconds")
  })
)

const ReplayArguments = strict(
  Schema.extend(
    Schema.extend(Schema.Struct({ endpointId }), StartEventReplay),
    Schema.Struct({ idempotencyKey: OptionalIdempotencyKey })
  )
)

/** The tools for events and their replays. */
export const makeEventTools: Effect.Effect<
  ReadonlyArray<Tool>,
  never,
  Events | Effect.Effect.Context<typeof makeDeliveryMutations>
> = Effect.gen(function* () {
  const events = yield* Events
  const replays = yield* EventReplays
  const { cancelReplay, startReplay } = yield* makeDeliveryMutations
  return [
    makeTool({
      name: "list_webhook_events",
      title: "List events",
      description:
        "Lists the organization's events, newest first, whether or not they were delivered to anybody: what happened, with the event that is sent. `has_more` says whether there is another page: pass the last id as `starting_after`. If a `type` is rare in a long history, give the time too.",
      permission: "webhook-endpoints:read",
      annotations: { readOnlyHint: true, openWorldHint: false },
      input: ListArguments,
      output: StoredEventList,
      run: (principal, query) => events.list(principal, query)
    }),
    makeTool({
      name: "get_webhook_event",
      title: "Read an event",
      description: "Reads an event with its deliveries to all endpoints, newest first.",
      permission: "webhook-endpoints:read",
      annotations: { readOnlyHint: true, openWorldHint: false },
      input: strict(Schema.Struct({ eventId: EventIdText })),
      output: StoredEventDetail,
      run: (principal, { eventId }) => events.get(principal, eventId)
    }),
    makeTool({
      name: "replay_webhook_events",
      title: "Send the events of a period to an endpoint",
      description:
        "Sends the events of a period to an active endpoint as new deliveries, whatever happened to them before, oldest first, in the background: for an endpoint that is new, or lost what it had received. To re-send only what failed, use recover_webhook_endpoint. The consumer sees the same event ids again. An endpoint has one running replay. Follow its progress with list_webhook_replays.",
      permission: "webhook-endpoints:write",
      annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
      input: ReplayArguments,
      output: EventReplay,
      run: (principal, { endpointId, idempotencyKey: key, ...params }) =>
        startReplay(principal, key, endpointId, params)
    }),
    makeTool({
      name: "list_webhook_replays",
      title: "List an endpoint's replays",
      description:
        "Lists the replays to an endpoint, newest first: how far they are, and how many deliveries they have created. `has_more` says whether there is another page: pass the last id as `starting_after`.",
      permission: "webhook-endpoints:read",
      annotations: { readOnlyHint: true, openWorldHint: false },
      input: strict(
        Schema.Struct({
          endpointId,
          limit,
          starting_after: optional(EventReplayId.annotations({ description: "The last id of the previous page" }))
        })
      ),
      output: EventReplayList,
      run: (principal, { endpointId, ...query }) => replays.list(principal, endpointId, query)
    }),
    makeTool({
      name: "cancel_webhook_replay",
      title: "Cancel a replay",
      description:
        "Cancels a running replay: it creates no more deliveries, and those that it has created are sent. One that has ended stays as it is.",
      permission: "webhook-endpoints:write",
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
      input: strict(Schema.Struct({ endpointId, replayId, idempotencyKey: OptionalIdempotencyKey })),
      output: EventReplay,
      run: (principal, { endpointId, idempotencyKey: key, replayId }) =>
        cancelReplay(principal, key, endpointId, replayId)
    })
  ]
})
