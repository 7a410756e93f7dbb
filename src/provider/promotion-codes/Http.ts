import { Effect } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { handlersOf, serve } from "../../kit/Handlers.ts"
import { onAccount, write, writeOnAccount } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { PromotionCodesApi } from "./Api.ts"
import { PromotionCodes } from "./PromotionCodes.ts"

export const promotionCodesHandlers = Effect.gen(function* () {
  const provider = yield* Provider
  const promotionCodes = yield* PromotionCodes
  return handlersOf(PromotionCodesApi, {
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

export const promotionCodesHttp = serve(PromotionCodesApi, promotionCodesHandlers)
