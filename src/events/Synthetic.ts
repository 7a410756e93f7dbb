/**
 * Synthetic test events (contract, Synthetic test events): an envelope of every type of the catalog, with fictitious
 * data. Pure. They look like the real ones, say in several places that they are none, and name nothing that exists.
 */
import type { EventType } from "./Catalog.ts"
import { type EnvelopeOf, makeEnvelope, makeTestEnvelope } from "./Envelope.ts"
import type { Envelope } from "./EnvelopeSchema.ts"
import type { Make } from "./Translator.ts"

/** What a synthetic event is made of. The same input gives the same event. */
export interface SyntheticInput {
  /** UUID of the organization. */
  readonly organizationId: string
  /** Tells this test from all others: a UUID. The event's id and all fictitious ids are made of it. */
  readonly testId: string
  readonly createdAt: Date
  readonly type: EventType
}

/** What the data of one test is made of. */
interface Fictitious {
  readonly make: Make
  /** The id of an object that exists nowhere, such as `pi_test_…`. */
  readonly id: (prefix: string) => string
  /** A time in Unix seconds, so many days after the test. */
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

const samples: { readonly [T in EventType]: (test: Fictitious) => EnvelopeOf<T> } = {
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

const secondsPerDay = 86_400

/** The envelope of a synthetic event: `test` is true, the mode is not live, and the source is `svc_test`. */
export const syntheticEvent = ({ createdAt, organizationId, testId, type }: SyntheticInput): Envelope => {
  const unique = testId.replaceAll("-", "")
  const now = Math.floor(createdAt.getTime() / 1000)
  return samples[type]({
    make: (type, data) => makeTestEnvelope({ organizationId, testId, createdAt, type, data }),
    id: (prefix) => `${prefix}_test_${unique}`,
    inDays: (days) => now + days * secondsPerDay
  })
}

const exampleCreated = 1_760_000_000

/**
 * An event of a type as one of the sandbox looks, for documents: the same each time, and of nothing that exists.
 */
export const exampleEvent = (type: EventType): Envelope =>
  samples[type]({
    make: (type, data) =>
      makeEnvelope({
        environment: "sandbox",
        organizationId: "0199c0de-0000-7000-8000-000000000001",
        providerEventId: "evt_1ExampleEvent",
        created: exampleCreated,
        type,
        data
      }),
    id: (prefix) => `${prefix}_1Example`,
    inDays: (days) => exampleCreated + days * secondsPerDay
  })
