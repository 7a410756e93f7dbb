import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { BaseApi } from "../../kit/BaseApi.ts"
import { onAccount } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { PayoutsApi } from "./Api.ts"

/** Serves `PayoutsApi`. */
export const payoutsHttp = HttpApiBuilder.group(BaseApi.add(PayoutsApi), "payouts", (handlers) =>
  Effect.map(Provider, (provider) =>
    handlers
      .handle("list", ({ urlParams }) => onAccount((account) => provider.listPayouts(account, urlParams)))
      .handle("get", ({ path }) => onAccount((account) => provider.retrievePayout(account, path.id)))
  )
)
