/**
 * The events that a consumer receives, as plain types (contract 6). This module and its neighbours depend on
 * nothing, so that a consumer can take them alone.
 */

/** `data` of `payment.succeeded` and `milestone.first_payment`. Amounts are in the smallest currency unit. */
export interface PaymentSucceededData {
  readonly payment_id: string
  readonly amount_received: number
  /** Lowercase ISO 4217, here and in all other types. */
  readonly currency: string
}

/** `data` of `payment.failed`. */
export interface PaymentFailedData {
  readonly payment_id: string
  readonly amount: number
  readonly currency: string
  readonly failure_code: string | null
}

/** `data` of `payment.refunded`. */
export interface PaymentRefundedData {
  readonly charge_id: string
  readonly payment_id: string | null
  /** All that was refunded of the charge so far. */
  readonly amount_refunded: number
  readonly currency: string
  readonly fully_refunded: boolean
}

/** `data` of `dispute.created`. */
export interface DisputeCreatedData {
  readonly dispute_id: string
  readonly charge_id: string
  readonly payment_id: string | null
  readonly amount: number
  readonly currency: string
  readonly reason: string
}

/** `data` of `dispute.closed`. */
export interface DisputeClosedData {
  readonly dispute_id: string
  readonly charge_id: string
  readonly payment_id: string | null
  readonly amount: number
  readonly currency: string
  readonly status: string
}

/** `data` of the three `checkout.*` types. Only `payment_status: "paid"` says that the money was received. */
export interface CheckoutData {
  readonly session_id: string
  readonly mode: string
  readonly payment_status: string
  readonly payment_id: string | null
  readonly subscription_id: string | null
  readonly amount_total: number | null
  readonly currency: string | null
  /** What the session sells; `null` where the service did not create it. */
  readonly price_ids: ReadonlyArray<string> | null
  readonly product_ids: ReadonlyArray<string> | null
}

/** `data` of `subscription.created` and `subscription.canceled`. */
export interface SubscriptionData {
  readonly subscription_id: string
  readonly customer_id: string
  readonly status: string
}

/** `data` of `subscription.renewed`. */
export interface SubscriptionRenewedData {
  readonly subscription_id: string
  readonly invoice_id: string
  readonly amount_paid: number
  readonly currency: string
}

/** `data` of `subscription.payment_failed`. */
export interface SubscriptionPaymentFailedData {
  readonly subscription_id: string
  readonly invoice_id: string
  readonly amount_due: number
  readonly currency: string
  readonly attempt_count: number
}

/** `data` of `payout.paid`. */
export interface PayoutPaidData {
  readonly payout_id: string
  readonly amount: number
  readonly currency: string
  /** Unix seconds. */
  readonly arrival_date: number
}

/** `data` of `payout.failed`. */
export interface PayoutFailedData {
  readonly payout_id: string
  readonly amount: number
  readonly currency: string
  readonly failure_code: string | null
}

/** `data` of `payout.created` and `payout.updated`. */
export interface PayoutData {
  readonly payout_id: string
  readonly amount: number
  readonly currency: string
  readonly status: string
  /** Unix seconds. */
  readonly arrival_date: number
  readonly automatic: boolean
}

/** `data` of `payout.canceled`. */
export interface PayoutCanceledData {
  readonly payout_id: string
  readonly amount: number
  readonly currency: string
}

/** `data` of `account.updated`. */
export interface AccountUpdatedData {
  readonly account_id: string
  readonly livemode: boolean
  readonly charges_enabled: boolean
  readonly payouts_enabled: boolean
  readonly details_submitted: boolean
  /** By payment method. */
  readonly capabilities: { readonly [method: string]: "active" | "pending" | "inactive" }
  readonly requirements: {
    readonly action_required: boolean
    readonly currently_due_count: number
    readonly past_due_count: number
    readonly pending_verification_count: number
    readonly disabled_reason: string | null
    /** Unix seconds. */
    readonly current_deadline: number | null
  }
}

/** What `data` holds for each type of the catalog. */
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

/** An event type of the catalog. */
export type WebhookEventType = keyof WebhookEventData

/** What every event carries (contract 6.1). */
export interface WebhookEnvelope<Type extends string, Data> {
  /** Stable across retries: deduplicate by it, durably. */
  readonly id: string
  readonly type: Type
  readonly version: 1
  /** ISO 8601, UTC. Order among deliveries is not guaranteed: compare this instead. */
  readonly created_at: string
  /** False in the sandbox. */
  readonly livemode: boolean
  readonly organization_id: string
  readonly source: {
    /** `svc_test` on synthetic events. */
    readonly provider: "stripe" | "svc_test"
    /** The provider's event id. Several events can share it, and one payment can have several. */
    readonly event_id: string
  }
  readonly data: Data
  /** Present only on synthetic events, which prove nothing: check it before any business effect. */
  readonly test?: true
}

/** An event of one type of the catalog. */
export type WebhookEventOf<Type extends WebhookEventType> = WebhookEnvelope<Type, WebhookEventData[Type]>

/** An event of any type of the catalog: `switch` on `type` to reach its `data`. */
export type KnownWebhookEvent = { readonly [Type in WebhookEventType]: WebhookEventOf<Type> }[WebhookEventType]

/**
 * The name of a type that this version of the kit does not know. At run time it is the name as it was sent; to the
 * compiler it is text of a form that no name of the catalog has, since that alone makes comparing `type` with a name
 * narrow to that name's event. Assign it to a `string` to compare it with a name that the kit lacks.
 */
export type UnknownWebhookEventType = `(unknown) ${string}`

/** An event of a type added to the catalog after this version of the kit. Acknowledge it (2xx) if you have no use for it. */
export type UnknownWebhookEvent = WebhookEnvelope<UnknownWebhookEventType, { readonly [field: string]: unknown }>

/** Whatever a verified delivery can hold. */
export type WebhookEvent = KnownWebhookEvent | UnknownWebhookEvent

const known: { readonly [Type in WebhookEventType]: true } = {
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

/** Whether the event's type is one that this version of the kit knows. */
export const isKnownWebhookEvent = (event: WebhookEvent): event is KnownWebhookEvent => Object.hasOwn(known, event.type)
