import { Effect } from "effect"
import type Stripe from "stripe"
import { inOurNames } from "../RefusedFields.ts"
import { named, page, type StripeCall } from "../stripe/StripeCall.ts"
import { timeRangeNames, withTimeRange } from "../stripe/StripeTimeRange.ts"
import type { ListDisputes } from "./Api.ts"
import type { DisputesPort } from "./Port.ts"

export const disputesParams = (params: ListDisputes): Stripe.DisputeListParams => withTimeRange(params)

export const stripeDisputes = (call: StripeCall): DisputesPort => ({
  listDisputes: (account, params) =>
    page(call("disputes.list", account, (client, scope) => client.disputes.list(disputesParams(params), scope))).pipe(
      Effect.mapError(inOurNames(timeRangeNames))
    ),
  retrieveDispute: (account, id) =>
    named(call("disputes.retrieve", account, (client, scope) => client.disputes.retrieve(id, {}, scope)))
})
