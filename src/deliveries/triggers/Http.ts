import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { BaseApi } from "../../kit/BaseApi.ts"
import { EventTriggersApi } from "./Api.ts"
import { EventTriggers } from "./EventTriggers.ts"

export const eventTriggersHttp = HttpApiBuilder.group(BaseApi.add(EventTriggersApi), "eventTriggers", (handlers) =>
  Effect.map(EventTriggers, ({ trigger }) =>
    handlers.handle("create", ({ headers, payload }) =>
      Effect.flatMap(Principal, (principal) => trigger(principal, headers["idempotency-key"], payload.type))
    )
  )
)
