import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { BaseApi } from "../../kit/BaseApi.ts"
import { writeOnAccount } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { RefundsApi } from "./Api.ts"

/** Serves `RefundsApi`. */
export const refundsHttp = HttpApiBuilder.group(BaseApi.add(RefundsApi), "refunds", (handlers) =>
  Effect.map(Provider, (provider) =>
    handlers.handle("create", ({ headers, payload }) =>
      writeOnAccount(
        {
          operation: "refunds.create",
          callerKey: headers["idempotency-key"],
          parameters: payload,
          action: "refund.created",
          targetType: "refund"
        },
        (account, options) => provider.createRefund(account, payload, options)
      )
    )
  )
)
