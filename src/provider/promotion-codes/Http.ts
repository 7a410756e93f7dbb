import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { BaseApi } from "../../kit/BaseApi.ts"
import { onAccount, write, writeOnAccount } from "../AccountOperations.ts"
import { operationsOf } from "../Operations.ts"
import { Provider } from "../Provider.ts"
import { PromotionCodesApi } from "./Api.ts"
import { PromotionCodes } from "./PromotionCodes.ts"

/** What the operations of `PromotionCodesApi` do. */
export const promotionCodesOperations = Effect.gen(function* () {
  const provider = yield* Provider
  const promotionCodes = yield* PromotionCodes
  return operationsOf(PromotionCodesApi, {
    create: ({ headers, payload }) =>
      Effect.flatMap(Principal, (principal) =>
        write(
          {
            operation: "promotion_codes.create",
            callerKey: headers["idempotency-key"],
            parameters: payload,
            action: "promotion_code.created",
            targetType: "promotion_code"
          },
          (effectKey) => promotionCodes.create(principal, payload, effectKey)
        )
      ),
    list: ({ urlParams }) => onAccount((account) => provider.listPromotionCodes(account, urlParams)),
    get: ({ path }) => onAccount((account) => provider.retrievePromotionCode(account, path.id)),
    update: ({ headers, path, payload }) =>
      writeOnAccount(
        {
          operation: "promotion_codes.update",
          callerKey: headers["idempotency-key"],
          parameters: { id: path.id, changes: payload },
          action: "promotion_code.updated",
          targetType: "promotion_code"
        },
        (account, options) => provider.updatePromotionCode(account, path.id, payload, options)
      )
  })
})

/** Serves `PromotionCodesApi`. */
export const promotionCodesHttp = HttpApiBuilder.group(BaseApi.add(PromotionCodesApi), "promotionCodes", (handlers) =>
  Effect.map(promotionCodesOperations, (operations) =>
    handlers
      .handle("create", operations.create)
      .handle("list", operations.list)
      .handle("get", operations.get)
      .handle("update", operations.update)
  )
)
