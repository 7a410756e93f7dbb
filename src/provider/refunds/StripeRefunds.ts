import { Effect } from "effect"
import type Stripe from "stripe"
import { inOurNames } from "../RefusedFields.ts"
import { named, one, page, type StripeCall } from "../stripe/StripeCall.ts"
import { timeRangeNames, withTimeRange } from "../stripe/StripeTimeRange.ts"
import type { CreateRefund, ListRefunds } from "./Api.ts"
import type { RefundsPort } from "./Port.ts"

export const refundParams = ({ metadata, ...rest }: CreateRefund): Stripe.RefundCreateParams => ({
  ...rest,
  ...(metadata === undefined ? {} : { metadata: { ...metadata } })
})

export const refundsParams = (params: ListRefunds): Stripe.RefundListParams => withTimeRange(params)

export const stripeRefunds = (call: StripeCall): RefundsPort => ({
  createRefund: (account, params, { idempotencyKey }) =>
    one(
      call("refunds.create", account, (client, scope) =>
        client.refunds.create(refundParams(params), { ...scope, idempotencyKey })
      )
    ),
  listRefunds: (account, params) =>
    page(call("refunds.list", account, (client, scope) => client.refunds.list(refundsParams(params), scope))).pipe(
      Effect.mapError(inOurNames(timeRangeNames))
    ),
  retrieveRefund: (account, id) =>
    named(call("refunds.retrieve", account, (client, scope) => client.refunds.retrieve(id, {}, scope)))
})
