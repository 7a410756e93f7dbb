import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { BaseApi } from "../../kit/BaseApi.ts"
import { makeStartRecovery } from "./Mutations.ts"
import { Recoveries } from "./Recoveries.ts"
import { RecoveriesApi } from "./RecoveriesApi.ts"

/** Serves `RecoveriesApi`. */
export const recoveriesHttp = HttpApiBuilder.group(BaseApi.add(RecoveriesApi), "recoveries", (handlers) =>
  Effect.gen(function* () {
    const recoveries = yield* Recoveries
    const start = yield* makeStartRecovery
    return handlers
      .handle("start", ({ headers, path, payload }) =>
        Effect.flatMap(Principal, (principal) => start(principal, headers["idempotency-key"], path.id, payload))
      )
      .handle("list", ({ path, urlParams }) =>
        Effect.flatMap(Principal, (principal) => recoveries.list(principal, path.id, urlParams))
      )
      .handle("get", ({ path }) =>
        Effect.flatMap(Principal, (principal) => recoveries.get(principal, path.id, path.recoveryId))
      )
  })
)
