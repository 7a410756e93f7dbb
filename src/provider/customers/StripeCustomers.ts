import { Effect } from "effect"
import type Stripe from "stripe"
import { inOurNames } from "../RefusedFields.ts"
import { named, page, type StripeCall } from "../stripe/StripeCall.ts"
import { timeRangeNames, withTimeRange } from "../stripe/StripeTimeRange.ts"
import type { ListCustomers } from "./Api.ts"
import type { CustomersPort } from "./Port.ts"

export const customersParams = (params: ListCustomers): Stripe.CustomerListParams => withTimeRange(params)

export const stripeCustomers = (call: StripeCall): CustomersPort => ({
  listCustomers: (account, params) =>
    page(
      call("customers.list", account, (client, scope) => client.customers.list(customersParams(params), scope))
    ).pipe(Effect.mapError(inOurNames(timeRangeNames))),
  retrieveCustomer: (account, id) =>
    named(call("customers.retrieve", account, (client, scope) => client.customers.retrieve(id, {}, scope)))
})
