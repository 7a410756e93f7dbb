import { Schema } from "effect"

/** The state of a delivery: waiting for an attempt, answered with 2xx, or given up (contract 9.1). */
export const DeliveryState = Schema.Literal("queued", "delivered", "failed").annotations({
  identifier: "DeliveryState",
  description: "`queued` until it succeeds or is given up, then `delivered` or `failed`"
})
export type DeliveryState = typeof DeliveryState.Type
