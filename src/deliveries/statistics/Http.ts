import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { BaseApi } from "../../kit/BaseApi.ts"
import { StatisticsApi } from "./Api.ts"
import { DailyCounts } from "./DailyCounts.ts"

export const statisticsHttp = HttpApiBuilder.group(BaseApi.add(StatisticsApi), "statistics", (handlers) =>
  Effect.map(DailyCounts, (counts) =>
    handlers.handle("get", ({ urlParams }) =>
      Effect.flatMap(Principal, (principal) => counts.read(principal, urlParams.days ?? 30))
    )
  )
)
