import { Effect, Schema } from "effect"
import {
  CreatedEndpoint,
  CreateEndpoint,
  Endpoint,
  EndpointList,
  QueuedTest,
  RotatedEndpoint,
  SkippedCursor,
  SkippedEventList,
  UpdateEndpoint
} from "../endpoints/Api.ts"
import { Endpoints } from "../endpoints/Endpoints.ts"
import { DeletedEndpoint, makeEndpointMutations } from "../endpoints/Mutations.ts"
import { EventType, eventTypes } from "../events/Catalog.ts"
import { EndpointId } from "../kit/Ids.ts"
import { OptionalIdempotencyKey, optional, strict } from "../kit/Request.ts"
import { makeSendTest } from "../publishing/SendTest.ts"
import { makeTool, NoArguments, type Tool } from "./Tool.ts"

/** Tools for webhook destinations (contract 5.7). */

const endpointId = EndpointId.annotations({ description: "The endpoint's id, from list_webhook_endpoints" })

const EventTypeList = Schema.Struct({ data: EndpointList.fields.eventTypes })

const ListedEndpoints = Schema.Struct({ data: EndpointList.fields.data })

/** The arguments of the skipped events: their query, in JSON types. */
const SkippedArguments = strict(
  Schema.Struct({
    endpointId,
    limit: optional(
      Schema.Int.pipe(Schema.between(1, 100)).annotations({
        description: "How many items to return: 1 to 100, default 10"
      })
    ),
    starting_after: optional(SkippedCursor)
  })
)

const Keyed = Schema.Struct({ idempotencyKey: OptionalIdempotencyKey })

const CreateArguments = strict(Schema.extend(CreateEndpoint, Keyed))

/** The tools for endpoints. */
export const makeEndpointTools: Effect.Effect<
  ReadonlyArray<Tool>,
  never,
  Endpoints | Effect.Effect.Context<typeof makeEndpointMutations> | Effect.Effect.Context<typeof makeSendTest>
> = Effect.gen(function* () {
  const endpoints = yield* Endpoints
  const mutations = yield* makeEndpointMutations
  const sendTest = yield* makeSendTest
  return [
    makeTool({
      name: "list_event_types",
      title: "List event types",
      description: "Lists the event types that an endpoint can subscribe to, with a sentence about each.",
      permission: "webhook-endpoints:read",
      annotations: { readOnlyHint: true, openWorldHint: false },
      input: NoArguments,
      output: EventTypeList,
      run: () => Effect.succeed({ data: eventTypes })
    }),
    makeTool({
      name: "list_webhook_endpoints",
      title: "List webhook endpoints",
      description:
        "Lists the organization's webhook endpoints in the key's environment, newest first: URL, subscribed events, filters, whether active, and how many deliveries failed for good in the last 24 hours.",
      permission: "webhook-endpoints:read",
      annotations: { readOnlyHint: true, openWorldHint: false },
      input: NoArguments,
      output: ListedEndpoints,
      run: (principal) => Effect.map(endpoints.list(principal), ({ data }) => ({ data }))
    }),
    makeTool({
      name: "create_webhook_endpoint",
      title: "Create a webhook endpoint",
      description:
        "Creates an active endpoint that signed events are sent to. The answer holds its signing secret, `signingSecret`, and the same as Standard Webhooks libraries take it, `standardWebhooksSecret`. Both are shown only this once: give them to those who verify the events, and to nobody else.",
      permission: "webhook-endpoints:write",
      annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
      input: CreateArguments,
      output: CreatedEndpoint,
      run: (principal, { idempotencyKey: key, ...params }) => mutations.create(principal, key, params)
    }),
    makeTool({
      name: "set_webhook_endpoint_active",
      title: "Pause or activate a webhook endpoint",
      description:
        "Pauses an endpoint (`active: false`: no new events are queued for it, what is queued already is still sent) or activates it again (`active: true`: new events are matched from now on).",
      permission: "webhook-endpoints:write",
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
      input: strict(
        Schema.Struct({
          endpointId,
          active: Schema.Boolean.annotations({ description: "true activates, false pauses" }),
          ...Keyed.fields
        })
      ),
      output: Endpoint,
      run: (principal, { active, endpointId, idempotencyKey: key }) =>
        mutations.update(principal, key, endpointId, { active })
    }),
    makeTool({
      name: "update_webhook_endpoint",
      title: "Change a webhook endpoint",
      description:
        "Changes an endpoint's name, subscribed events or filters, or whether it is active; absent arguments are unchanged. `events` and `filters` are replaced as a whole, and apply to events from now on: what is queued already is still sent. The URL never changes: create another endpoint for that.",
      permission: "webhook-endpoints:write",
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
      input: strict(Schema.extend(Schema.Struct({ endpointId, ...Keyed.fields }), UpdateEndpoint)),
      output: Endpoint,
      run: (principal, { endpointId, idempotencyKey: key, ...change }) =>
        mutations.update(principal, key, endpointId, change)
    }),
    makeTool({
      name: "delete_webhook_endpoint",
      title: "Delete a webhook endpoint",
      description:
        "Deletes an endpoint for good: its secrets are erased, and waiting deliveries are never sent (`failed` with `endpoint_deleted`). Its deliveries stay readable. It can't be undone: only do this when asked, and pause an endpoint (set_webhook_endpoint_active) if it may be needed again.",
      permission: "webhook-endpoints:write",
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
      input: strict(Schema.Struct({ endpointId, ...Keyed.fields })),
      output: DeletedEndpoint,
      run: (principal, { endpointId, idempotencyKey: key }) => mutations.delete(principal, key, endpointId)
    }),
    makeTool({
      name: "list_skipped_webhook_events",
      title: "List events that an endpoint missed",
      description:
        "Lists the events that matched an endpoint while it was paused, newest first, each as it would have been sent. They have no deliveries, so they can't be re-sent: the receiver takes them from here. `has_more` says whether there is another page: pass the last `eventId` as `starting_after`.",
      permission: "webhook-endpoints:read",
      annotations: { readOnlyHint: true, openWorldHint: false },
      input: SkippedArguments,
      output: SkippedEventList,
      run: (principal, { endpointId, ...query }) => endpoints.listSkipped(principal, endpointId, query)
    }),
    makeTool({
      name: "send_webhook_test_event",
      title: "Send a test event",
      description:
        "Queues a synthetic event (`test: true`, fictitious data) of a type that the endpoint subscribes to. Only for active endpoints in the sandbox, at most 5 new ones per minute and endpoint. It proves nothing about any payment. Check the result with get_webhook_delivery and the `id` of the answer.",
      permission: "webhook-endpoints:write",
      annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
      input: strict(
        Schema.Struct({
          endpointId,
          type: EventType.annotations({ description: "A type that the endpoint subscribes to" }),
          ...Keyed.fields
        })
      ),
      output: QueuedTest,
      run: (principal, { endpointId, idempotencyKey: key, type }) => sendTest(principal, key, endpointId, { type })
    }),
    makeTool({
      name: "rotate_webhook_secret",
      title: "Rotate a signing secret",
      description:
        "Issues a new signing secret for an endpoint, shown only this once as `signingSecret`, and as `standardWebhooksSecret` in the form of Standard Webhooks libraries. For 24 hours new events carry signatures with the new and the previous secret; then the previous one is discarded. Only do this when asked: those who verify the events need the new secret within that time.",
      permission: "webhook-endpoints:write",
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
      input: strict(Schema.Struct({ endpointId, ...Keyed.fields })),
      output: RotatedEndpoint,
      run: (principal, { endpointId, idempotencyKey: key }) => mutations.rotateSecret(principal, key, endpointId)
    })
  ]
})
