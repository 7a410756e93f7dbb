import type Stripe from "stripe"
import type { ConnectedAccount, CreateObject, ListObjects, ProviderCall, RetrieveObject } from "../ProviderCall.ts"
import type { StripeCall } from "../stripe/StripeCall.ts"
import { stripeObjects, withTimeRange } from "../stripe/StripeObjects.ts"
import { someOnPages } from "../stripe/StripePages.ts"
import type { CreateRefund, ListOfPayments, ListPayments } from "./Api.ts"

export interface PaymentsPort {
  readonly listCharges: ListObjects<ListPayments>
  readonly retrieveCharge: RetrieveObject
  /**
   * Whether the account has a charge that succeeded and was captured; failed and pending charges do not count. Decides
   * whether the account's first payment here is a milestone.
   */
  readonly hasCharges: (account: ConnectedAccount) => ProviderCall<boolean>
  readonly listPaymentIntents: ListObjects<ListPayments>
  readonly retrievePaymentIntent: RetrieveObject
  /** The newest payment intents of an amount, by the provider's search. */
  readonly searchPaymentIntents: ListObjects<{
    readonly amount: number
    readonly currency?: string
    readonly limit: number
  }>
  readonly createRefund: CreateObject<CreateRefund>
  readonly listRefunds: ListObjects<ListOfPayments>
  readonly retrieveRefund: RetrieveObject
  readonly listDisputes: ListObjects<ListOfPayments>
  readonly retrieveDispute: RetrieveObject
  /** With their personal data. */
  readonly listCustomers: ListObjects<ListPayments>
  readonly retrieveCustomer: RetrieveObject
}

/** Whether the charge brought in money: not if it failed, is pending, or was authorized but not captured. */
const isPayment = ({ captured, status }: Stripe.Charge): boolean => status === "succeeded" && captured

export const refundParams = ({ metadata, ...rest }: CreateRefund): Stripe.RefundCreateParams => ({
  ...rest,
  ...(metadata === undefined ? {} : { metadata: { ...metadata } })
})

export const stripePayments = (call: StripeCall): PaymentsPort => {
  const { create, list, retrieve } = stripeObjects(call)
  return {
    listCharges: list("charges.list", (client) => client.charges, withTimeRange),
    retrieveCharge: retrieve("charges.retrieve", (client) => client.charges, {}),
    hasCharges: (account) =>
      someOnPages(
        (params) => call("charges.list", account, (client, scope) => client.charges.list(params, scope)),
        isPayment,
        // After 2,000 charges without a success, assume that the account is old enough to have had its first payment
        true
      ),
    listPaymentIntents: list("payment_intents.list", (client) => client.paymentIntents, withTimeRange),
    retrievePaymentIntent: retrieve("payment_intents.retrieve", (client) => client.paymentIntents, {}),
    searchPaymentIntents: list(
      "payment_intents.search",
      ({ paymentIntents }) => ({
        list: (params: Stripe.PaymentIntentSearchParams, options: Stripe.RequestOptions) =>
          paymentIntents.search(params, options)
      }),
      ({ amount, currency, limit }) => ({
        query: `amount:${amount}${currency === undefined ? "" : ` AND currency:"${currency}"`}`,
        limit
      })
    ),
    createRefund: create("refunds.create", (client) => client.refunds, refundParams),
    listRefunds: list("refunds.list", (client) => client.refunds, withTimeRange),
    retrieveRefund: retrieve("refunds.retrieve", (client) => client.refunds, {}),
    listDisputes: list("disputes.list", (client) => client.disputes, withTimeRange),
    retrieveDispute: retrieve("disputes.retrieve", (client) => client.disputes, {}),
    listCustomers: list("customers.list", (client) => client.customers, withTimeRange),
    retrieveCustomer: retrieve("customers.retrieve", (client) => client.customers, {})
  }
}
