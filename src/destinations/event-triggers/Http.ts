import { Effect } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { handlersOf, serve } from "../../platform/kit/Handlers.ts"
import { EventTriggersApi } from "./Api.ts"
import { EventTriggers } from "./EventTriggers.ts"

export const eventTriggersHandlers = handlersOf(EventTriggersApi, EventTriggers, ({ trigger }) => ({
  create: ({ headers, payload }) =>
    Effect.flatMap(Principal, (principal) => trigger(principal, headers["idempotency-key"], payload.type))
}))

export const eventTriggersHttp = serve(eventTriggersHandlers)
