/**
 * Fictitious data for an event of every type, for synthetic tests and for documents. Pure, and free of server code: the
 * contract's documents use it.
 */
import type { EventType } from "./Catalog.ts"
import type { EnvelopeOf } from "./Envelope.ts"
import { type Envelope, envelopeVersion, providerName } from "./EnvelopeSchema.ts"
import type { Make } from "./stripe/Translator.ts"

/** What the data of one sample is made of. */
interface Fictitious {
  readonly make: Make
  /** The id of an object that exists nowhere, such as `pi_test_…`. */
  readonly id: (prefix: string) => string
  /** A time in Unix seconds, so many days after the event. */
  readonly inDays: (days: number) => number
}

const currency = "brl"

const checkout = ({ id }: Fictitious, paymentStatus: "paid" | "unpaid") => ({
  session_id: id("cs"),
  mode: "payment",
  payment_status: paymentStatus,
  payment_id: id("pi"),
  subscription_id: null,
  amount_total: 1500,
  currency,
  price_ids: [id("price")],
  product_ids: [id("prod")]
})

const payment = ({ id }: Fictitious) => ({ payment_id: id("pi"), amount_received: 1500, currency })

const dispute = ({ id }: Fictitious) => ({
  dispute_id: id("dp"),
  charge_id: id("ch"),
  payment_id: id("pi"),
  amount: 1500,
  currency
})

const subscription = ({ id }: Fictitious, status: string) => ({
  subscription_id: id("sub"),
  customer_id: id("cus"),
  status
})

const payout = ({ id }: Fictitious) => ({ payout_id: id("po"), amount: 120_000, currency })

/** An event of each type. */
export const samples: { readonly [T in EventType]: (test: Fictitious) => EnvelopeOf<T> } = {
  "payment.succeeded": (test) => test.make("payment.succeeded", payment(test)),
  "payment.failed": ({ id, make }) =>
    make("payment.failed", { payment_id: id("pi"), amount: 1500, currency, failure_code: "card_declined" }),
  "payment.refunded": ({ id, make }) =>
    make("payment.refunded", {
      charge_id: id("ch"),
      payment_id: id("pi"),
      amount_refunded: 1500,
      currency,
      fully_refunded: true
    }),
  "dispute.created": (test) => test.make("dispute.created", { ...dispute(test), reason: "fraudulent" }),
  "dispute.closed": (test) => test.make("dispute.closed", { ...dispute(test), status: "won" }),
  "checkout.completed": (test) => test.make("checkout.completed", checkout(test, "paid")),
  "checkout.payment_succeeded": (test) => test.make("checkout.payment_succeeded", checkout(test, "paid")),
  "checkout.payment_failed": (test) => test.make("checkout.payment_failed", checkout(test, "unpaid")),
  "subscription.created": (test) => test.make("subscription.created", subscription(test, "active")),
  "subscription.renewed": ({ id, make }) =>
    make("subscription.renewed", { subscription_id: id("sub"), invoice_id: id("in"), amount_paid: 1500, currency }),
  "subscription.canceled": (test) => test.make("subscription.canceled", subscription(test, "canceled")),
  "subscription.payment_failed": ({ id, make }) =>
    make("subscription.payment_failed", {
      subscription_id: id("sub"),
      invoice_id: id("in"),
      amount_due: 1500,
      currency,
      attempt_count: 1
    }),
  "payout.paid": (test) => test.make("payout.paid", { ...payout(test), arrival_date: test.inDays(0) }),
  "payout.failed": (test) => test.make("payout.failed", { ...payout(test), failure_code: "account_closed" }),
  "payout.created": (test) =>
    test.make("payout.created", {
      ...payout(test),
      status: "in_transit",
      arrival_date: test.inDays(2),
      automatic: true
    }),
  "payout.updated": (test) =>
    test.make("payout.updated", { ...payout(test), status: "paid", arrival_date: test.inDays(1), automatic: true }),
  "payout.canceled": (test) => test.make("payout.canceled", payout(test)),
  "milestone.first_payment": (test) => test.make("milestone.first_payment", payment(test)),
  "account.updated": ({ id, inDays, make }) =>
    make("account.updated", {
      account_id: id("acct"),
      livemode: false,
      charges_enabled: true,
      payouts_enabled: false,
      details_submitted: true,
      capabilities: { card_payments: "active", transfers: "pending" },
      requirements: {
        action_required: true,
        currently_due_count: 1,
        past_due_count: 0,
        pending_verification_count: 0,
        disabled_reason: null,
        current_deadline: inDays(14)
      }
    })
}

export const secondsPerDay = 86_400

const exampleCreated = 1_760_000_000

/** An event of a type as one of the sandbox looks, for documents: the same each time, and of nothing that exists. */
export const exampleEvent = (type: EventType): Envelope =>
  samples[type]({
    make: (type, data) => ({
      id: `svc_evt_${"0123456789abcdef".repeat(4)}`,
      type,
      version: envelopeVersion,
      created_at: new Date(exampleCreated * 1000).toISOString(),
      livemode: false,
      organization_id: "0199c0de-0000-7000-8000-000000000001",
      source: { provider: providerName, event_id: "evt_1ExampleEvent" },
      data
    }),
    id: (prefix) => `${prefix}_1Example`,
    inDays: (days) => exampleCreated + days * secondsPerDay
  })
