import { Effect } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { handlersOf } from "../../platform/kit/Handlers.ts"
import { reading, write, writeOnAccount } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { PromotionCodesApi } from "./Api.ts"
import { makePromotionCodes } from "./PromotionCodes.ts"

export const promotionCodesHandlers = handlersOf(
  PromotionCodesApi,
  Effect.all([Provider, makePromotionCodes]),
  ([provider, promotionCodes]) => ({
    ...reading(provider.listPromotionCodes, provider.retrievePromotionCode),
    create: (request) =>
      write({ operation: "promotion_codes.create", action: "promotion_code.created" }, request, (keyFor) =>
        Effect.flatMap(Principal, (principal) => promotionCodes.create(principal, request.payload, keyFor))
      ),
    update: (request) =>
      writeOnAccount(
        { operation: "promotion_codes.update", action: "promotion_code.updated" },
        request,
        (account, options) => provider.updatePromotionCode(account, request.path.id, request.payload, options)
      )
  })
)
