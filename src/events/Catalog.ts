/**
 * The catalog of event types and the `data` of each (contract 6.3): what a consumer may subscribe to, and
 * exactly the fields that it receives. No personal data, card data, client secret or metadata is part of any.
 */
import { Schema } from "effect"
import { amount, count, currency, flag, providerCode, providerId, unixSeconds } from "./Fields.ts"

const paymentId = providerId("The payment (payment intent)")
const chargeId = providerId("The charge")
const disputeId = providerId("The dispute")
const subscriptionId = providerId("The subscription")
const invoiceId = providerId("The invoice")
const payoutId = providerId("The payout")

/** `data` of `payment.succeeded` and `milestone.first_payment`. */
export const PaymentSucceededData = Schema.Struct({
  payment_id: paymentId,
  amount_received: amount("What was received"),
  currency
}).annotations({ identifier: "PaymentSucceededData", description: "A payment that was received" })

/** `data` of `payment.failed`. */
export const PaymentFailedData = Schema.Struct({
  payment_id: paymentId,
  amount: amount("What was to be received"),
  currency,
  failure_code: Schema.NullOr(providerCode("The provider's error code; null where the payment carries no error"))
}).annotations({ identifier: "PaymentFailedData", description: "An attempt to pay that failed" })

/** `data` of `payment.refunded`. */
export const PaymentRefundedData = Schema.Struct({
  charge_id: chargeId,
  payment_id: Schema.NullOr(paymentId),
  amount_refunded: amount("All that was refunded of the charge so far"),
  currency,
  fully_refunded: flag("Whether nothing of the charge is left to refund")
}).annotations({ identifier: "PaymentRefundedData", description: "A charge of which some or all was refunded" })

const disputeFields = {
  dispute_id: disputeId,
  charge_id: chargeId,
  payment_id: Schema.NullOr(paymentId),
  amount: amount("The disputed amount"),
  currency
}

/** `data` of `dispute.created`. */
export const DisputeCreatedData = Schema.Struct({
  ...disputeFields,
  reason: providerCode("Why the payer disputes, in the provider's words, e.g. fraudulent")
}).annotations({ identifier: "DisputeCreatedData", description: "A dispute that was opened" })

/** `data` of `dispute.closed`. */
export const DisputeClosedData = Schema.Struct({
  ...disputeFields,
  status: providerCode("How the dispute ended, in the provider's words, e.g. won or lost")
}).annotations({ identifier: "DisputeClosedData", description: "A dispute that has ended" })

/** `data` of the three `checkout.*` types. */
export const CheckoutData = Schema.Struct({
  session_id: providerId("The checkout session"),
  mode: providerCode("What the session is for: payment, subscription or setup"),
  payment_status: providerCode(
    "Only paid confirms that the money was received; others are unpaid, no_payment_required"
  ),
  payment_id: Schema.NullOr(providerId("The payment (payment intent); null for subscriptions and free orders")),
  subscription_id: Schema.NullOr(providerId("The subscription; null unless the session is for one")),
  amount_total: Schema.NullOr(amount("The total after discounts and taxes")),
  currency: Schema.NullOr(currency),
  price_ids: Schema.NullOr(
    Schema.Array(providerId("A price")).annotations({
      description: "The prices that the session sells; null where it was not created by this service"
    })
  ),
  product_ids: Schema.NullOr(
    Schema.Array(providerId("A product")).annotations({
      description: "The products that the session sells; null where it was not created by this service"
    })
  )
}).annotations({ identifier: "CheckoutData", description: "A checkout session and what it sells" })

/** `data` of `subscription.created` and `subscription.canceled`. */
export const SubscriptionData = Schema.Struct({
  subscription_id: subscriptionId,
  customer_id: providerId("The customer"),
  status: providerCode("The subscription's status, in the provider's words, e.g. active")
}).annotations({ identifier: "SubscriptionData", description: "A subscription and its status" })

/** `data` of `subscription.renewed`. */
export const SubscriptionRenewedData = Schema.Struct({
  subscription_id: subscriptionId,
  invoice_id: invoiceId,
  amount_paid: amount("What was paid of the invoice"),
  currency
}).annotations({ identifier: "SubscriptionRenewedData", description: "A renewal that was paid" })

/** `data` of `subscription.payment_failed`. */
export const SubscriptionPaymentFailedData = Schema.Struct({
  subscription_id: subscriptionId,
  invoice_id: invoiceId,
  amount_due: amount("What is due on the invoice"),
  currency,
  attempt_count: count("How often payment was tried so far")
}).annotations({ identifier: "SubscriptionPaymentFailedData", description: "An invoice whose payment failed" })

const arrivalDate = unixSeconds("When the money is expected at the bank")

/** `data` of `payout.paid`. */
export const PayoutPaidData = Schema.Struct({
  payout_id: payoutId,
  amount: amount("The payout's amount"),
  currency,
  arrival_date: arrivalDate
}).annotations({ identifier: "PayoutPaidData", description: "A payout that was paid" })

/** `data` of `payout.failed`. */
export const PayoutFailedData = Schema.Struct({
  payout_id: payoutId,
  amount: amount("The payout's amount"),
  currency,
  failure_code: Schema.NullOr(providerCode("Why the payout failed, in the provider's words"))
}).annotations({ identifier: "PayoutFailedData", description: "A payout that failed" })

/** `data` of `payout.created` and `payout.updated`. */
export const PayoutData = Schema.Struct({
  payout_id: payoutId,
  amount: amount("The payout's amount"),
  currency,
  status: providerCode("The payout's status, in the provider's words, e.g. in_transit"),
  arrival_date: arrivalDate,
  automatic: flag("Whether the payout schedule made it, and not a person")
}).annotations({ identifier: "PayoutData", description: "A payout and its status" })

/** `data` of `payout.canceled`. */
export const PayoutCanceledData = Schema.Struct({
  payout_id: payoutId,
  amount: amount("The payout's amount"),
  currency
}).annotations({ identifier: "PayoutCanceledData", description: "A payout that was canceled" })

/** The status of one payment method's capability (contract 6.7). */
export const CapabilityStatus = Schema.Literal("active", "pending", "inactive").annotations({
  identifier: "CapabilityStatus",
  description: "Whether the account may use the payment method"
})

/** `data` of `account.updated` (contract 6.7). Names of pending fields are never part of it. */
export const AccountUpdatedData = Schema.Struct({
  account_id: providerId("The provider account"),
  livemode: flag("Whether this is about the provider's live mode"),
  charges_enabled: flag("Whether the account can charge"),
  payouts_enabled: flag("Whether the account can receive payouts"),
  details_submitted: flag("Whether the account's details were handed in"),
  capabilities: Schema.Record({ key: Schema.String, value: CapabilityStatus }).annotations({
    description: "The status of each payment method"
  }),
  requirements: Schema.Struct({
    action_required: flag("Whether information is pending or overdue"),
    currently_due_count: count("How many pieces of information are due"),
    past_due_count: count("How many pieces of information are overdue"),
    pending_verification_count: count("How many pieces of information are being verified"),
    disabled_reason: Schema.NullOr(providerCode("The provider's code where something is blocked")),
    current_deadline: Schema.NullOr(unixSeconds("By when the due information is needed"))
  }).annotations({ description: "What the account still has to hand in; names of the information are never said" })
}).annotations({ identifier: "AccountUpdatedData", description: "The connected account's status" })

/** The 19 event types (contract 6.3). */
export const EventType = Schema.Literal(
  "payment.succeeded",
  "payment.failed",
  "payment.refunded",
  "dispute.created",
  "dispute.closed",
  "checkout.completed",
  "checkout.payment_succeeded",
  "checkout.payment_failed",
  "subscription.created",
  "subscription.renewed",
  "subscription.canceled",
  "subscription.payment_failed",
  "payout.paid",
  "payout.failed",
  "payout.created",
  "payout.updated",
  "payout.canceled",
  "milestone.first_payment",
  "account.updated"
).annotations({ identifier: "EventType", description: "An event type of the catalog" })

/** See the schema of the same name. */
export type EventType = typeof EventType.Type

/** The schema of `data` for each type. */
export const eventData = {
  "payment.succeeded": PaymentSucceededData,
  "payment.failed": PaymentFailedData,
  "payment.refunded": PaymentRefundedData,
  "dispute.created": DisputeCreatedData,
  "dispute.closed": DisputeClosedData,
  "checkout.completed": CheckoutData,
  "checkout.payment_succeeded": CheckoutData,
  "checkout.payment_failed": CheckoutData,
  "subscription.created": SubscriptionData,
  "subscription.renewed": SubscriptionRenewedData,
  "subscription.canceled": SubscriptionData,
  "subscription.payment_failed": SubscriptionPaymentFailedData,
  "payout.paid": PayoutPaidData,
  "payout.failed": PayoutFailedData,
  "payout.created": PayoutData,
  "payout.updated": PayoutData,
  "payout.canceled": PayoutCanceledData,
  "milestone.first_payment": PaymentSucceededData,
  "account.updated": AccountUpdatedData
} satisfies { readonly [T in EventType]: Schema.Schema.AnyNoContext }

/** What `data` holds for a type. */
export type EventData<T extends EventType> = Schema.Schema.Type<(typeof eventData)[T]>

const descriptions: { readonly [T in EventType]: string } = {
  "payment.succeeded": "A payment was received. This is the financial confirmation of a payment.",
  "payment.failed": "An attempt to pay failed.",
  "payment.refunded": "Some or all of a charge was refunded.",
  "dispute.created": "A payer disputes a charge.",
  "dispute.closed": "A dispute has ended.",
  "checkout.completed": "A checkout session was completed. It confirms payment only where payment_status is paid.",
  "checkout.payment_succeeded": "The delayed payment of a completed checkout session was received.",
  "checkout.payment_failed": "The delayed payment of a completed checkout session failed.",
  "subscription.created": "A subscription was created.",
  "subscription.renewed": "The invoice of a subscription's new period was paid.",
  "subscription.canceled": "A subscription has ended.",
  "subscription.payment_failed": "The payment of a subscription's invoice failed.",
  "payout.paid": "A payout is expected to have reached the bank.",
  "payout.failed": "A payout failed and its money returned to the balance.",
  "payout.created": "A payout was created.",
  "payout.updated": "A payout was changed.",
  "payout.canceled": "A payout was canceled before it was sent.",
  "milestone.first_payment": "The account received its first payment; sent once, together with its payment.succeeded.",
  "account.updated": "The connected account's status changed: what it can do, or what it still has to hand in."
}

/** Every type with a sentence about it, in the catalog's order: what the endpoint list shows beside the endpoints. */
export const eventTypes: ReadonlyArray<{ readonly type: EventType; readonly description: string }> =
  EventType.literals.map((type) => ({ type, description: descriptions[type] }))
