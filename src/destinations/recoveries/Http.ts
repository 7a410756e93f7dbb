import { Effect } from "effect"
import { keyedWrite } from "../../identity/KeyedWrite.ts"
import { Principal } from "../../identity/Principal.ts"
import { handlersOf, serve } from "../../platform/kit/Handlers.ts"
import { RecoveriesApi, Recovery } from "./Api.ts"
import { Recoveries } from "./Recoveries.ts"

export const recoveriesHandlers = handlersOf(
  RecoveriesApi,
  Effect.all([Recoveries, keyedWrite]),
  ([recoveries, write]) => ({
    start: (request) =>
      Effect.zipLeft(
        write.atOnce({ operation: "endpoints.recover", answer: Recovery, status: 202 }, request, (tenant) =>
          recoveries.queue(tenant, request.path.id, request.payload.since)
        ),
        recoveries.announce
      ),
    list: ({ path, urlParams }) =>
      Effect.flatMap(Principal, (principal) => recoveries.list(principal, path.id, urlParams)),
    get: ({ path }) => Effect.flatMap(Principal, (principal) => recoveries.get(principal, path.id, path.recoveryId))
  })
)

export const recoveriesHttp = serve(recoveriesHandlers)
