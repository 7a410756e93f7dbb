import { Struct } from "effect"

export interface TriggerDescription {
  readonly type: string
  readonly description: string
  /** Its own options, besides the common ones, each with its meaning and its default. */
  readonly options: Readonly<Record<string, string>>
}

const money = {
  amount: "in the smallest currency unit; default 1500",
  currency: "default brl",
  metadata: "of the object that the event is about"
} as const

const asynchronousMethod = {
  method: "boleto (bank slip) or pix (instant transfer); default boleto"
} as const

const account = {
  business_profile: "{name, url}: changes only the profile",
  capabilities: "{<capability>: active | pending | inactive}, or null",
  charges_enabled: "true or false",
  details_submitted: "true or false",
  payouts_enabled: "true or false",
  requirements:
    "{currently_due, eventually_due, past_due, pending_verification: names; disabled_reason, current_deadline}, or null"
} as const

const payout = {
  payout: "the payout to move to this state; default: a new one",
  ...money,
  automatic: "false for a manual payout; default true"
} as const

const newSubscription = {
  items: "how many different prices it has, 1 to 20; the event shows only the first 10; default 1",
  ...money,
  amount: "of each price, in the smallest currency unit; default 1500"
} as const

const subscription = { subscription: "the subscription; default: a new one", ...newSubscription } as const

/** Every trigger also takes `account` and `api_version` (the version of its snapshots). */
const described = {
  "payment_intent.succeeded": { description: "A payment by card succeeds.", options: money },
  "payment_intent.payment_failed": { description: "A payment by card is declined.", options: money },
  "charge.refunded": {
    description: "A payment is refunded, in part or in full.",
    options: {
      charge: "the charge; default: of a new payment",
      refund_amount: "in the smallest currency unit; default: all that is left",
      ...money
    }
  },
  "refund.updated": {
    description: "A pending refund arrives: refunds of bank slips and instant transfers are pending at first.",
    options: { refund: "a pending refund; default: of a new payment by bank slip", ...money }
  },
  "refund.failed": {
    description: "A refund fails, even after it succeeded: the money returns to the balance.",
    options: {
      refund: "a pending or succeeded refund; default: of a new payment by card",
      reason: "default expired_or_canceled_card",
      ...money
    }
  },
  "charge.dispute.created": {
    description: "A payer disputes a payment; the amount and a fee leave the balance.",
    options: { charge: "the charge; default: of a new payment", reason: "default fraudulent", ...money }
  },
  "charge.dispute.closed": {
    description: "A dispute ends: it is won and the amount returns to the balance, or it is lost.",
    options: { dispute: "the dispute; default: a new one", outcome: "won or lost; default lost", ...money }
  },
  "checkout.session.completed": {
    description: "A payer completes a checkout session; by bank slip or instant transfer it is not paid yet.",
    options: {
      session: "an open session; default: a new one",
      method: "card, boleto (bank slip) or pix (instant transfer); default card",
      ...money
    }
  },
  "checkout.session.async_payment_succeeded": {
    description: "The bank slip or instant transfer of a completed session is paid.",
    options: { session: "a session, open or not paid yet; default: a new one", ...asynchronousMethod, ...money }
  },
  "checkout.session.async_payment_failed": {
    description: "The bank slip or instant transfer of a completed session expires unpaid.",
    options: { session: "a session, open or not paid yet; default: a new one", ...asynchronousMethod, ...money }
  },
  "customer.subscription.created": {
    description: "A payer subscribes and pays the first invoice.",
    options: newSubscription
  },
  "invoice.paid": { description: "A subscription is renewed and its invoice is paid.", options: subscription },
  "invoice.payment_failed": {
    description: "A subscription is due for renewal and the card is declined.",
    options: subscription
  },
  "customer.subscription.deleted": { description: "A subscription is canceled at once.", options: subscription },
  "payout.created": { description: "A payout is created.", options: payout },
  "payout.updated": { description: "A payout is on its way to the bank.", options: payout },
  "payout.paid": { description: "A payout arrives at the bank.", options: payout },
  "payout.failed": { description: "The bank returns a payout.", options: payout },
  "payout.canceled": { description: "A payout is canceled before it is sent to the bank.", options: payout },
  "account.updated": {
    description:
      "An account's status or profile changes; without options a document becomes due, or what is due is submitted.",
    options: { ...account, thin: "true sends the thin form too; default false" }
  },
  "account.application.deauthorized": {
    description: "The account's owner revokes the platform's access.",
    options: { thin: "true sends the thin form too; default false" }
  },
  "v1.account.updated": {
    description: "The same as account.updated, as a thin notification.",
    options: { ...account, snapshot: "true sends the snapshot too; default false" }
  },
  "v1.capability.updated": {
    description: "A capability of the account changes; the thin notification is about the capability.",
    options: { capability: "default card_payments", status: "active, pending or inactive; default inactive" }
  },
  "v2.core.account[requirements].updated": {
    description: "An account's requirements change; the thin notification has no snapshot.",
    options: account
  },
  "v1.account.application.deauthorized": {
    description: "The same as account.application.deauthorized, as a thin notification without an object.",
    options: { snapshot: "true sends the snapshot too; default false" }
  },
  "v2.core.event_destination.ping": {
    description: "The provider tests the platform's entry for thin notifications; nothing happens to an account.",
    options: {}
  }
} as const satisfies Readonly<Record<string, Omit<TriggerDescription, "type">>>

export type TriggerType = keyof typeof described

export const triggers: ReadonlyArray<TriggerDescription & { readonly type: TriggerType }> = Struct.entries(
  described
).map(([type, { description, options }]) => ({ type, description, options }))

export const isTriggerType = (type: string): type is TriggerType => Object.hasOwn(described, type)
