import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { BaseApi } from "../../kit/BaseApi.ts"
import { Recoveries } from "./Recoveries.ts"
import { RecoveriesApi } from "./RecoveriesApi.ts"

/** Serves `RecoveriesApi`. */
export const recoveriesHttp = HttpApiBuilder.group(BaseApi.add(RecoveriesApi), "recoveries", (handlers) =>
  Effect.gen(function* () {
    const recoveries = yield* Recoveries
    return handlers
      .handle("start", ({ path, payload }) =>
        Effect.flatMap(Principal, (principal) => recoveries.start(principal, path.id, payload.since))
      )
      .handle("list", ({ path, urlParams }) =>
        Effect.flatMap(Principal, (principal) => recoveries.list(principal, path.id, urlParams))
      )
      .handle("get", ({ path }) =>
        Effect.flatMap(Principal, (principal) => recoveries.get(principal, path.id, path.recoveryId))
      )
  })
)
