import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { BaseApi } from "../../kit/BaseApi.ts"
import { onAccount, writeOnAccount } from "../AccountOperations.ts"
import { operationsOf } from "../Operations.ts"
import { pageShownTo, shownTo, withoutPayer } from "../PersonalData.ts"
import { Provider } from "../Provider.ts"
import { RefundsApi } from "./Api.ts"

/** What the operations of `RefundsApi` do. */
export const refundsOperations = Effect.map(Provider, (provider) =>
  operationsOf(RefundsApi, {
    create: ({ headers, payload }) =>
      writeOnAccount(
        {
          operation: "refunds.create",
          callerKey: headers["idempotency-key"],
          parameters: payload,
          action: "refund.created",
          targetType: "refund"
        },
        (account, options) => Effect.map(provider.createRefund(account, payload, options), withoutPayer)
      ),
    list: ({ urlParams }) =>
      onAccount((account) => provider.listRefunds(account, urlParams)).pipe(Effect.flatMap(pageShownTo(withoutPayer))),
    get: ({ path }) =>
      onAccount((account) => provider.retrieveRefund(account, path.id)).pipe(Effect.flatMap(shownTo(withoutPayer)))
  })
)

/** Serves `RefundsApi`. */
export const refundsHttp = HttpApiBuilder.group(BaseApi.add(RefundsApi), "refunds", (handlers) =>
  Effect.map(refundsOperations, (operations) =>
    handlers.handle("create", operations.create).handle("list", operations.list).handle("get", operations.get)
  )
)
