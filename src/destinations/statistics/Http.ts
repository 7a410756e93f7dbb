import { Effect } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { handlersOf, serve } from "../../platform/kit/Handlers.ts"
import { StatisticsApi } from "./Api.ts"
import { Statistics } from "./Statistics.ts"

export const statisticsHandlers = handlersOf(StatisticsApi, Statistics, (counts) => ({
  get: ({ urlParams }) => Effect.flatMap(Principal, (principal) => counts.read(principal, urlParams.days ?? 30))
}))

export const statisticsHttp = serve(statisticsHandlers)
