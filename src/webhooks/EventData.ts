// Written by `npm run docs` from the catalog of events: change the catalog, not this file

/** A payment that was received: `data` of `payment.succeeded`, `milestone.first_payment`. */
export interface PaymentSucceededData {
  /** The provider's id of the payment (payment intent): guard the effect by it */
  readonly payment_id: string
  /** The amount received, in the smallest currency unit */
  readonly amount_received: number
  /** Lowercase ISO 4217 currency code */
  readonly currency: string
}

/** An attempt to pay that failed: `data` of `payment.failed`. */
export interface PaymentFailedData {
  /** The provider's id of the payment (payment intent): guard the effect by it */
  readonly payment_id: string
  /** The amount that should have been received, in the smallest currency unit */
  readonly amount: number
  /** Lowercase ISO 4217 currency code */
  readonly currency: string
  /** The provider's error code; null if the payment carries no error */
  readonly failure_code: string | null
}

/**
 * A charge that was refunded in part or in full, or an authorization that was given up uncaptured: `data` of
 * `payment.refunded`.
 */
export interface PaymentRefundedData {
  /** The provider's id of the charge that was refunded */
  readonly charge_id: string
  /** The provider's id of the payment (payment intent): guard the effect by it */
  readonly payment_id: string | null
  /** How much of the charge has been refunded so far, in the smallest currency unit */
  readonly amount_refunded: number
  /** Lowercase ISO 4217 currency code */
  readonly currency: string
  /** Whether the full amount was refunded */
  readonly fully_refunded: boolean
}

/** A dispute that was opened: `data` of `dispute.created`. */
export interface DisputeCreatedData {
  /** The provider's id of the dispute */
  readonly dispute_id: string
  /** The provider's id of the disputed charge */
  readonly charge_id: string
  /** The payment (payment intent) */
  readonly payment_id: string | null
  /** The disputed amount, in the smallest currency unit */
  readonly amount: number
  /** Lowercase ISO 4217 currency code */
  readonly currency: string
  /** Why the payer disputes, in the provider's words, e.g. fraudulent */
  readonly reason: string
}

/** A dispute that has ended: `data` of `dispute.closed`. */
export interface DisputeClosedData {
  /** The provider's id of the dispute */
  readonly dispute_id: string
  /** The provider's id of the disputed charge */
  readonly charge_id: string
  /** The payment (payment intent) */
  readonly payment_id: string | null
  /** The disputed amount, in the smallest currency unit */
  readonly amount: number
  /** Lowercase ISO 4217 currency code */
  readonly currency: string
  /** How the dispute ended, in the provider's words, e.g. won or lost */
  readonly status: string
}

/**
 * A checkout session and what it sells: `data` of `checkout.completed`, `checkout.payment_succeeded`,
 * `checkout.payment_failed`.
 */
export interface CheckoutData {
  /** The provider's id of the checkout session */
  readonly session_id: string
  /** What the session is for: payment, subscription or setup */
  readonly mode: string
  /** Only paid confirms that the money was received; others are unpaid, no_payment_required */
  readonly payment_status: string
  /** The payment (payment intent); null for subscriptions and free orders */
  readonly payment_id: string | null
  /** The subscription; null unless the session is for one */
  readonly subscription_id: string | null
  /** The total after discounts and taxes, in the smallest currency unit */
  readonly amount_total: number | null
  /** Lowercase ISO 4217 currency code */
  readonly currency: string | null
  /** The prices that the session sells; null if this service did not create it */
  readonly price_ids: ReadonlyArray<string> | null
  /** The products that the session sells; null if this service did not create it */
  readonly product_ids: ReadonlyArray<string> | null
}

/** A subscription and its status: `data` of `subscription.created`, `subscription.canceled`. */
export interface SubscriptionData {
  /** The provider's id of the subscription */
  readonly subscription_id: string
  /** The provider's id of the customer who subscribed */
  readonly customer_id: string
  /** The subscription's status, in the provider's words, e.g. active */
  readonly status: string
}

/** A renewal that was paid: `data` of `subscription.renewed`. */
export interface SubscriptionRenewedData {
  /** The provider's id of the subscription */
  readonly subscription_id: string
  /** The provider's id of the invoice */
  readonly invoice_id: string
  /** The amount paid on the invoice, in the smallest currency unit */
  readonly amount_paid: number
  /** Lowercase ISO 4217 currency code */
  readonly currency: string
}

/** An invoice whose payment failed: `data` of `subscription.payment_failed`. */
export interface SubscriptionPaymentFailedData {
  /** The provider's id of the subscription */
  readonly subscription_id: string
  /** The provider's id of the invoice */
  readonly invoice_id: string
  /** The amount due on the invoice, in the smallest currency unit */
  readonly amount_due: number
  /** Lowercase ISO 4217 currency code */
  readonly currency: string
  /** How often payment was tried so far */
  readonly attempt_count: number
}

/** A payout that was paid: `data` of `payout.paid`. */
export interface PayoutPaidData {
  /** The provider's id of the payout */
  readonly payout_id: string
  /** The payout's amount, in the smallest currency unit */
  readonly amount: number
  /** Lowercase ISO 4217 currency code */
  readonly currency: string
  /** When the money is expected at the bank, in Unix seconds */
  readonly arrival_date: number
}

/** A payout that failed: `data` of `payout.failed`. */
export interface PayoutFailedData {
  /** The provider's id of the payout */
  readonly payout_id: string
  /** The payout's amount, in the smallest currency unit */
  readonly amount: number
  /** Lowercase ISO 4217 currency code */
  readonly currency: string
  /** Why the payout failed, in the provider's words */
  readonly failure_code: string | null
}

/** A payout and its status: `data` of `payout.created`, `payout.updated`. */
export interface PayoutData {
  /** The provider's id of the payout */
  readonly payout_id: string
  /** The payout's amount, in the smallest currency unit */
  readonly amount: number
  /** Lowercase ISO 4217 currency code */
  readonly currency: string
  /** The payout's status, in the provider's words, e.g. in_transit */
  readonly status: string
  /** When the money is expected at the bank, in Unix seconds */
  readonly arrival_date: number
  /** Whether the payout schedule created it, and not a person */
  readonly automatic: boolean
}

/** A payout that was canceled: `data` of `payout.canceled`. */
export interface PayoutCanceledData {
  /** The provider's id of the payout */
  readonly payout_id: string
  /** The payout's amount, in the smallest currency unit */
  readonly amount: number
  /** Lowercase ISO 4217 currency code */
  readonly currency: string
}

/** The connected account's status: `data` of `account.updated`. */
export interface AccountUpdatedData {
  /** The provider's id of the connected account */
  readonly account_id: string
  /** Whether this is about the provider's live mode */
  readonly livemode: boolean
  /** Whether the account can charge */
  readonly charges_enabled: boolean
  /** Whether the account can receive payouts */
  readonly payouts_enabled: boolean
  /** Whether the account's details were submitted */
  readonly details_submitted: boolean
  /** The status of each payment method */
  readonly capabilities: { readonly [key: string]: "active" | "pending" | "inactive" }
  /** Counts of the information that the account still has to submit */
  readonly requirements: {
    /** Whether information is pending or overdue */
    readonly action_required: boolean
    /** How many pieces of information are due */
    readonly currently_due_count: number
    /** How many pieces of information are overdue */
    readonly past_due_count: number
    /** How many pieces of information are being verified */
    readonly pending_verification_count: number
    /** The provider's code if something is blocked */
    readonly disabled_reason: string | null
    /** By when the due information is needed, in Unix seconds */
    readonly current_deadline: number | null
  }
}

/** The type of `data` for each event type of the catalog. */
export interface WebhookEventData {
  readonly "payment.succeeded": PaymentSucceededData
  readonly "payment.failed": PaymentFailedData
  readonly "payment.refunded": PaymentRefundedData
  readonly "dispute.created": DisputeCreatedData
  readonly "dispute.closed": DisputeClosedData
  readonly "checkout.completed": CheckoutData
  readonly "checkout.payment_succeeded": CheckoutData
  readonly "checkout.payment_failed": CheckoutData
  readonly "subscription.created": SubscriptionData
  readonly "subscription.renewed": SubscriptionRenewedData
  readonly "subscription.canceled": SubscriptionData
  readonly "subscription.payment_failed": SubscriptionPaymentFailedData
  readonly "payout.paid": PayoutPaidData
  readonly "payout.failed": PayoutFailedData
  readonly "payout.created": PayoutData
  readonly "payout.updated": PayoutData
  readonly "payout.canceled": PayoutCanceledData
  readonly "milestone.first_payment": PaymentSucceededData
  readonly "account.updated": AccountUpdatedData
}

/** The types that this version of the kit knows. */
export const knownTypes: { readonly [Type in keyof WebhookEventData]: true } = {
  "payment.succeeded": true,
  "payment.failed": true,
  "payment.refunded": true,
  "dispute.created": true,
  "dispute.closed": true,
  "checkout.completed": true,
  "checkout.payment_succeeded": true,
  "checkout.payment_failed": true,
  "subscription.created": true,
  "subscription.renewed": true,
  "subscription.canceled": true,
  "subscription.payment_failed": true,
  "payout.paid": true,
  "payout.failed": true,
  "payout.created": true,
  "payout.updated": true,
  "payout.canceled": true,
  "milestone.first_payment": true,
  "account.updated": true
}
