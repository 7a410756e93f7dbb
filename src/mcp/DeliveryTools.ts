import { Effect, Schema } from "effect"
import { remark } from "../bounds/Rules.ts"
import { Delivery, DeliveryDetail, DeliveryList, DeliveryState } from "../deliveries/Api.ts"
import { Deliveries } from "../deliveries/Deliveries.ts"
import { EventType } from "../events/Catalog.ts"
import { DeliveryId, EndpointId } from "../kit/Ids.ts"
import { optional, strict } from "../kit/Request.ts"
import { makeTool, type Tool } from "./Tool.ts"

/** Tools over deliveries (contract, Delivery). */

const deliveryId = DeliveryId.annotations({ description: "The delivery's id, as list_webhook_deliveries answers it" })

const unixSeconds = (description: string) =>
  optional(Schema.Int.pipe(Schema.between(0, 4_102_444_800)).annotations({ ...remark("of Unix seconds"), description }))

/** The query of the history, in JSON's own types. */
const ListArguments = strict(
  Schema.Struct({
    endpointId: EndpointId.annotations({ description: "The endpoint's id, as list_webhook_endpoints answers it" }),
    limit: optional(
      Schema.Int.pipe(Schema.between(1, 100)).annotations({ description: "How many: 1 to 100, default 10" })
    ),
    starting_after: optional(DeliveryId.annotations({ description: "The last id of the page before" })),
    state: optional(DeliveryState),
    type: optional(EventType),
    created_gte: unixSeconds("Created at or after: Unix seconds"),
    created_lte: unixSeconds("Created at or before: Unix seconds")
  })
)

/** All of them. */
export const makeDeliveryTools: Effect.Effect<ReadonlyArray<Tool>, never, Deliveries> = Effect.map(
  Deliveries,
  (deliveries) => [
    makeTool({
      name: "list_webhook_deliveries",
      title: "List an endpoint's deliveries",
      description:
        "Lists deliveries of an endpoint, newest first: state (`queued`, `delivered`, `failed`), attempts so far, when the next one is due, the last HTTP status or error code. `has_more` says that there is another page: pass the last id as `starting_after`.",
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
        "Queues a failed delivery for one more attempt at once: up to 12 attempts in all, within 72 hours of its creation. Find out first why it failed (get_webhook_delivery), and see afterwards what came of it.",
      permission: "webhook-endpoints:write",
      annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
      input: strict(Schema.Struct({ deliveryId })),
      output: Delivery,
      run: (principal, { deliveryId }) => deliveries.retry(principal, deliveryId)
    })
  ]
)
