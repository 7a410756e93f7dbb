import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { BaseApi } from "../../kit/BaseApi.ts"
import { onAccount } from "../AccountOperations.ts"
import { operationsOf } from "../Operations.ts"
import { Provider } from "../Provider.ts"
import { PayoutsApi } from "./Api.ts"

/** What the operations of `PayoutsApi` do. */
export const payoutsOperations = Effect.map(Provider, (provider) =>
  operationsOf(PayoutsApi, {
    list: ({ urlParams }) => onAccount((account) => provider.listPayouts(account, urlParams)),
    get: ({ path }) => onAccount((account) => provider.retrievePayout(account, path.id))
  })
)

/** Serves `PayoutsApi`. */
export const payoutsHttp = HttpApiBuilder.group(BaseApi.add(PayoutsApi), "payouts", (handlers) =>
  Effect.map(payoutsOperations, (operations) => handlers.handle("list", operations.list).handle("get", operations.get))
)
