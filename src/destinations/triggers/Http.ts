import { Effect } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { serving } from "../../platform/kit/Handlers.ts"
import { EventTriggersApi } from "./Api.ts"
import { EventTriggers } from "./EventTriggers.ts"

export const eventTriggersHttp = serving(EventTriggersApi, EventTriggers, ({ trigger }) => ({
  create: ({ headers, payload }) =>
    Effect.flatMap(Principal, (principal) => trigger(principal, headers["idempotency-key"], payload.type))
}))
