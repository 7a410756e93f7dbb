import { Effect } from "effect"
import type Stripe from "stripe"
import { inOurNames } from "../RefusedFields.ts"
import { named, page, type StripeCall } from "../stripe/StripeCall.ts"
import { someOnPages } from "../stripe/StripePages.ts"
import { timeRangeNames, withTimeRange } from "../stripe/StripeTimeRange.ts"
import type { ListPayments } from "./Api.ts"
import type { PaymentsPort } from "./Port.ts"

/** The parameters of a list of charges or of payment intents. */
export const paymentsParams = (params: ListPayments): Stripe.ChargeListParams & Stripe.PaymentIntentListParams =>
  withTimeRange(params)

/** Whether the charge brought in money: not if it failed, is pending, or was authorized but not captured. */
const isPayment = ({ captured, status }: Stripe.Charge): boolean => status === "succeeded" && captured

/** Charges and payment intents at Stripe. */
export const stripePayments = (call: StripeCall): PaymentsPort => ({
  listCharges: (account, params) =>
    page(call("charges.list", account, (client, scope) => client.charges.list(paymentsParams(params), scope))).pipe(
      Effect.mapError(inOurNames(timeRangeNames))
    ),
  retrieveCharge: (account, id) =>
    named(call("charges.retrieve", account, (client, scope) => client.charges.retrieve(id, {}, scope))),
  hasCharges: (account) =>
    someOnPages(
      (params) => call("charges.list", account, (client, scope) => client.charges.list(params, scope)),
      isPayment,
      // After 2,000 charges without a success, assume that the account is old enough to have had its first payment
      true
    ),

  listPaymentIntents: (account, params) =>
    page(
      call("payment_intents.list", account, (client, scope) =>
        client.paymentIntents.list(paymentsParams(params), scope)
      )
    ).pipe(Effect.mapError(inOurNames(timeRangeNames))),
  retrievePaymentIntent: (account, id) =>
    named(call("payment_intents.retrieve", account, (client, scope) => client.paymentIntents.retrieve(id, {}, scope)))
})
