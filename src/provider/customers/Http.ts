import { HttpApiBuilder } from "@effect/platform"
import { Effect, Struct } from "effect"
import { BaseApi } from "../../kit/BaseApi.ts"
import { onAccount } from "../AccountOperations.ts"
import { operationsOf } from "../Operations.ts"
import { pageShownTo, shownTo } from "../PersonalData.ts"
import { Provider } from "../Provider.ts"
import type { ProviderObject } from "../Schemas.ts"
import { CustomersApi } from "./Api.ts"

/** A customer's fields that say nothing about the person. A list of them, since the provider may add others at any time. */
const impersonal = ["id", "object", "created", "currency", "deleted", "delinquent", "livemode"] as const

const withoutPersonalData = (customer: ProviderObject): ProviderObject => Struct.pick(customer, ...impersonal)

/** What the operations of `CustomersApi` do. */
export const customersOperations = Effect.map(Provider, (provider) =>
  operationsOf(CustomersApi, {
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

/** Serves `CustomersApi`. */
export const customersHttp = HttpApiBuilder.group(BaseApi.add(CustomersApi), "customers", (handlers) =>
  Effect.map(customersOperations, (operations) =>
    handlers.handle("list", operations.list).handle("get", operations.get)
  )
)
