import { Effect } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { serving } from "../../platform/kit/Handlers.ts"
import { StatisticsApi } from "./Api.ts"
import { DailyCounts } from "./DailyCounts.ts"

export const statisticsHttp = serving(StatisticsApi, DailyCounts, (counts) => ({
  get: ({ urlParams }) => Effect.flatMap(Principal, (principal) => counts.read(principal, urlParams.days ?? 30))
}))
