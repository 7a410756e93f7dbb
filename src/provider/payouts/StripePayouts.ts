import { Effect } from "effect"
import type Stripe from "stripe"
import { inOurNames } from "../RefusedFields.ts"
import { named, page, type StripeCall } from "../stripe/StripeCall.ts"
import { timeRangeNames, withTimeRange } from "../stripe/StripeTimeRange.ts"
import type { ListPayouts } from "./Api.ts"
import type { PayoutsPort } from "./Port.ts"

export const payoutsParams = (params: ListPayouts): Stripe.PayoutListParams => withTimeRange(params)

export const stripePayouts = (call: StripeCall): PayoutsPort => ({
  listPayouts: (account, params) =>
    page(call("payouts.list", account, (client, scope) => client.payouts.list(payoutsParams(params), scope))).pipe(
      Effect.mapError(inOurNames(timeRangeNames))
    ),
  retrievePayout: (account, id) =>
    named(call("payouts.retrieve", account, (client, scope) => client.payouts.retrieve(id, {}, scope)))
})
