import { handlersOf } from "../../platform/kit/Handlers.ts"
import { reading, writeOnAccount } from "../AccountOperations.ts"
import { Provider } from "../Provider.ts"
import { PricesApi } from "./Api.ts"

export const pricesHandlers = handlersOf(PricesApi, Provider, (provider) => ({
  ...reading(provider.listPrices, provider.retrievePrice),
  create: (request) =>
    writeOnAccount({ operation: "prices.create", action: "price.created" }, request, (account, options) =>
      provider.createPrice(account, request.payload, options)
    ),
  update: (request) =>
    writeOnAccount({ operation: "prices.update", action: "price.updated" }, request, (account, options) =>
      provider.updatePrice(account, request.path.id, request.payload, options)
    )
}))
