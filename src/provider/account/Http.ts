import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { BaseApi } from "../../kit/BaseApi.ts"
import { onAccount } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { AccountApi } from "./Api.ts"

/** Serves `AccountApi`. */
export const accountHttp = HttpApiBuilder.group(BaseApi.add(AccountApi), "account", (handlers) =>
  Effect.map(Provider, (provider) =>
    handlers
      .handle("get", () => onAccount(provider.retrieveAccount))
      .handle("balance", () => onAccount(provider.retrieveBalance))
      .handle("payoutSettings", () => onAccount(provider.retrievePayoutSettings))
  )
)
