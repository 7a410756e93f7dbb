import { Effect } from "effect"
import { makeDeliveryTools } from "./DeliveryTools.ts"
import { makeEndpointTools } from "./EndpointTools.ts"
import type { Tool } from "./Tool.ts"

/** Every tool of the tool server, by its name (contract 5.7). */
export type Tools = ReadonlyMap<string, Tool>

/** Creates the tools once; they are the same for every caller. */
export const makeTools: Effect.Effect<
  Tools,
  never,
  Effect.Effect.Context<typeof makeEndpointTools> | Effect.Effect.Context<typeof makeDeliveryTools>
> = Effect.zipWith(
  makeEndpointTools,
  makeDeliveryTools,
  (ofEndpoints, ofDeliveries) => new Map([...ofEndpoints, ...ofDeliveries].map((tool) => [tool.listed.name, tool]))
)
