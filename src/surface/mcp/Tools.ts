import { Effect } from "effect"
import { paymentTools } from "./PaymentTools.ts"
import type { Tool } from "./Tool.ts"
import { webhookTools } from "./WebhookTools.ts"

export type Tools = ReadonlyMap<string, Tool>

/** Creates the tools once; what a caller sees of them depends on its permissions and its connection. */
export const makeTools = Effect.map(
  Effect.all([...paymentTools, ...webhookTools]),
  (groups): Tools => new Map(groups.flat().map((tool) => [tool.name, tool]))
)
