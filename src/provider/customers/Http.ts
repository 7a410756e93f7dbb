import { Effect, Struct } from "effect"
import { handlersOf, serve } from "../../kit/Handlers.ts"
import { onAccount } from "../AccountOperations.ts"
import { pageShownTo, shownTo } from "../PersonalData.ts"
import { Provider } from "../Provider.ts"
import type { ProviderObject } from "../Schemas.ts"
import { CustomersApi } from "./Api.ts"

/** A customer's fields that are not personal: an allowlist, since the provider may add fields at any time. */
const impersonal = ["id", "object", "created", "currency", "deleted", "delinquent", "livemode"] as const

const withoutPersonalData = (customer: ProviderObject): ProviderObject => Struct.pick(customer, ...impersonal)

export const customersHandlers = Effect.map(Provider, (provider) =>
  handlersOf(CustomersApi, {
    list: ({ urlParams }) =>
      onAccount((account) => provider.listCustomers(account, urlParams)).pipe(
        Effect.flatMap(pageShownTo(withoutPersonalData))
      ),
    get: ({ path }) =>
      onAccount((account) => provider.retrieveCustomer(account, path.id)).pipe(
        Effect.flatMap(shownTo(withoutPersonalData))
      )
  })
)

export const customersHttp = serve(CustomersApi, customersHandlers)
