import { Effect, Schema } from "effect"
import { remark } from "../bounds/Rules.ts"
import { Delivery, DeliveryDetail, DeliveryList } from "../deliveries/api/Api.ts"
import { Deliveries } from "../deliveries/api/Deliveries.ts"
import { makeDeliveryMutations } from "../deliveries/api/Mutations.ts"
import { Recoveries } from "../deliveries/api/Recoveries.ts"
import { Recovery, RecoveryList, StartRecovery } from "../deliveries/api/RecoveriesApi.ts"
import { EventType } from "../events/Catalog.ts"
import { DeliveryState } from "../events/DeliveryState.ts"
import { DeliveryId, EndpointId, RecoveryId } from "../kit/Ids.ts"
import { OptionalIdempotencyKey, optional, strict } from "../kit/Request.ts"
import { makeTool, type Tool } from "./Tool.ts"

/** Tools for deliveries (contract 9.10). */

const endpointId = EndpointId.annotations({ description: "The endpoint's id, from list_webhook_endpoints" })

const limit = optional(
  Schema.Int.pipe(Schema.between(1, 100)).annotations({ description: "How many items to return: 1 to 100, default 10" })
)

const deliveryId = DeliveryId.annotations({ description: "The delivery's id, from list_webhook_deliveries" })

const unixSeconds = (description: string) =>
  optional(Schema.Int.pipe(Schema.between(0, 4_102_444_800)).annotations({ ...remark("of Unix seconds"), description }))

/** The arguments of the history: its query, in JSON types. */
const ListArguments = strict(
  Schema.Struct({
    endpointId,
    limit,
    starting_after: optional(DeliveryId.annotations({ description: "The last id of the previous page" })),
    state: optional(DeliveryState),
    type: optional(EventType),
    created_gte: unixSeconds("Created at or after: Unix seconds"),
    created_lte: unixSeconds("Created at or before: Unix seconds")
  })
)

const RecoveriesArguments = strict(
  Schema.Struct({
    endpointId,
    limit,
    starting_after: optional(RecoveryId.annotations({ description: "The last id of the previous page" }))
  })
)

/** The tools for deliveries. */
export const makeDeliveryTools: Effect.Effect<
  ReadonlyArray<Tool>,
  never,
  Effect.Effect.Context<typeof makeDeliveryMutations>
> = Effect.gen(function* () {
  const deliveries = yield* Deliveries
  const recoveries = yield* Recoveries
  const { retry, startRecovery } = yield* makeDeliveryMutations
  return [
    makeTool({
      name: "list_webhook_deliveries",
      title: "List an endpoint's deliveries",
      description:
        "Lists deliveries of an endpoint, newest first: state (`queued`, `delivered`, `failed`), attempts so far, when the next one is due, the last HTTP status or error code. `has_more` says whether there is another page: pass the last id as `starting_after`.",
      permission: "webhook-endpoints:read",
      annotations: { readOnlyHint: true, openWorldHint: false },
      input: ListArguments,
      output: DeliveryList,
      run: (principal, { endpointId, ...query }) => deliveries.list(principal, endpointId, query)
    }),
    makeTool({
      name: "get_webhook_delivery",
      title: "Read a delivery",
      description: "Reads a delivery with each of its attempts and the event that is sent.",
      permission: "webhook-endpoints:read",
      annotations: { readOnlyHint: true, openWorldHint: false },
      input: strict(Schema.Struct({ deliveryId })),
      output: DeliveryDetail,
      run: (principal, { deliveryId }) => deliveries.get(principal, deliveryId)
    }),
    makeTool({
      name: "retry_webhook_delivery",
      title: "Re-send a failed delivery",
      description:
        "Queues a failed delivery for one more attempt at once: up to 12 attempts in all, within 72 hours of its creation. Find out first why it failed (get_webhook_delivery), and check the result afterwards.",
      permission: "webhook-endpoints:write",
      annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
      input: strict(Schema.Struct({ deliveryId, idempotencyKey: OptionalIdempotencyKey })),
      output: Delivery,
      run: (principal, { deliveryId, idempotencyKey: key }) => retry(principal, key, deliveryId)
    }),
    makeTool({
      name: "recover_webhook_endpoint",
      title: "Re-send all that failed at an endpoint",
      description:
        "Queues every delivery that failed for good at an endpoint since a time (`since`, at most 72 hours back) for one more attempt, in the background, except test events. Only do this once the endpoint works again. An endpoint has one running recovery: a repeated call returns it. Follow its progress with list_webhook_recoveries.",
      permission: "webhook-endpoints:write",
      annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
      input: strict(
        Schema.extend(Schema.Struct({ endpointId, idempotencyKey: OptionalIdempotencyKey }), StartRecovery)
      ),
      output: Recovery,
      run: (principal, { endpointId, idempotencyKey: key, ...params }) =>
        startRecovery(principal, key, endpointId, params)
    }),
    makeTool({
      name: "list_webhook_recoveries",
      title: "List an endpoint's recoveries",
      description:
        "Lists the recoveries of an endpoint, newest first: how many deliveries had failed, how many were queued again or could not be, and whether it is finished. `has_more` says whether there is another page: pass the last id as `starting_after`.",
      permission: "webhook-endpoints:read",
      annotations: { readOnlyHint: true, openWorldHint: false },
      input: RecoveriesArguments,
      output: RecoveryList,
      run: (principal, { endpointId, ...query }) => recoveries.list(principal, endpointId, query)
    })
  ]
})
