import type Stripe from "stripe"
import { one, type StripeCall } from "../stripe/StripeCall.ts"
import type { CreateRefund } from "./Api.ts"
import type { RefundsPort } from "./Port.ts"

/** The parameters of a new refund. */
export const refundParams = ({ metadata, ...rest }: CreateRefund): Stripe.RefundCreateParams => ({
  ...rest,
  ...(metadata === undefined ? {} : { metadata: { ...metadata } })
})

/** Refunds at Stripe. */
export const stripeRefunds = (call: StripeCall): RefundsPort => ({
  createRefund: (account, params, { idempotencyKey }) =>
    one(
      call("refunds.create", account, (client, scope) =>
        client.refunds.create(refundParams(params), { ...scope, idempotencyKey })
      )
    )
})
