import { Effect } from "effect"
import { makeDeliveryTools } from "./DeliveryTools.ts"
import { makeEndpointTools } from "./EndpointTools.ts"
import { makeEventTools } from "./EventTools.ts"
import { makePaymentTools } from "./PaymentTools.ts"
import type { Tool } from "./Tool.ts"

/** Every tool of the tool server, by its name (contract 5.7). */
export type Tools = ReadonlyMap<string, Tool>

/** Creates the tools once; what a caller sees of them depends on its permissions and its connection. */
export const makeTools = Effect.map(
  Effect.all([makePaymentTools, makeEndpointTools, makeDeliveryTools, makeEventTools]),
  (groups): Tools => new Map(groups.flat().map((tool) => [tool.name, tool]))
)
