import { describe, expect, it } from "@effect/vitest"
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js"
import addFormats from "ajv-formats"
import { Either, FastCheck, Schema } from "effect"
import type { EventType } from "../../src/events/Catalog.ts"
import { Envelope, encodeEnvelope, makeEnvelope } from "../../src/events/Envelope.ts"
import type { Translation } from "../../src/events/EventReader.ts"
import { eventJsonSchemas } from "../../src/events/JsonSchemas.ts"
import {
  type FoundSubjects,
  filterSubjects,
  parseProviderEvent,
  type SoldItems
} from "../../src/events/stripe/ProviderEvent.ts"
import { translate, translatedProviderTypes } from "../../src/events/stripe/Translate.ts"
import { accountStatus } from "../../src/payments/account/AccountStatus.ts"
import { idOf, inOlderForm, record } from "./OlderForm.ts"
import { canary, providerObjects } from "./ProviderObjects.ts"
import { checksOf, type Json, providerDefinitions } from "./ProviderSchemas.ts"

const provider = providerDefinitions({
  account: { file: "Accounts", name: "Account" },
  charge: { file: "Charges", name: "Charge" },
  dispute: { file: "Disputes", name: "Dispute" },
  invoice: { file: "Invoices", name: "Invoice" },
  payment_intent: { file: "PaymentIntents", name: "PaymentIntent" },
  payout: { file: "Payouts", name: "Payout" },
  session: { file: "Checkout/Sessions", name: "Session" },
  subscription: { file: "Subscriptions", name: "Subscription" }
})
type ObjectName = Parameters<typeof provider.definitionOf>[0]

const objectOf = providerObjects(provider)

const validators = new Map<EventType, ValidateFunction>()
const ajv = addFormats.default(new Ajv2020({ allErrors: true }))
for (const [type, schema] of eventJsonSchemas) validators.set(type, ajv.compile({ ...schema }))

/** The form that JSON gives a value: what was undefined is gone. */
const onTheWire = (value: unknown): Json => JSON.parse(JSON.stringify(value))

/** An object's id, whether it is expanded or not; null where there is none. */
const fields = (object: Json, ...names: ReadonlyArray<string>): Json =>
  Object.fromEntries(names.map((name) => [name, object[name] ?? null]))

const payout = (object: Json, ...further: ReadonlyArray<string>) => ({
  payout_id: object["id"],
  ...fields(object, "amount", "currency", ...further)
})

const dispute = (object: Json, further: string) => ({
  dispute_id: object["id"],
  charge_id: idOf(object["charge"]),
  payment_id: idOf(object["payment_intent"]),
  ...fields(object, "amount", "currency", further)
})

const checkout = (object: Json, soldItems: SoldItems | null) => ({
  session_id: object["id"],
  ...fields(object, "mode", "payment_status", "amount_total", "currency"),
  payment_id: idOf(object["payment_intent"]),
  subscription_id: idOf(object["subscription"]),
  price_ids: soldItems?.priceIds ?? null,
  product_ids: soldItems?.productIds ?? null
})

const subscription = (object: Json) => ({
  subscription_id: object["id"],
  customer_id: idOf(object["customer"]),
  status: object["status"]
})

/** Null where the invoice is of no subscription: then there is no event. */
const invoice = (object: Json, ...further: ReadonlyArray<string>): Json | null => {
  const owner = idOf(record(record(object["parent"])["subscription_details"])["subscription"])
  return owner === null
    ? null
    : { subscription_id: owner, invoice_id: object["id"], ...fields(object, "currency", ...further) }
}

/**
 * A provider's event, the type that it becomes, and what the catalog says of `data`, read from the object in the provider's
 * present form; null: no event.
 */
type Origin = readonly [
  providerType: string,
  object: ObjectName,
  type: EventType,
  data: (object: Json, soldItems: SoldItems | null) => Json | null
]

/** The contract's catalog: the provider's event, and where each field of ours comes from. */
const origins: ReadonlyArray<Origin> = [
  [
    "payment_intent.succeeded",
    "payment_intent",
    "payment.succeeded",
    (object) => ({ payment_id: object["id"], ...fields(object, "amount_received", "currency") })
  ],
  [
    "payment_intent.payment_failed",
    "payment_intent",
    "payment.failed",
    (object) => ({
      payment_id: object["id"],
      ...fields(object, "amount", "currency"),
      failure_code: record(object["last_payment_error"])["code"] ?? null
    })
  ],
  [
    "charge.refunded",
    "charge",
    "payment.refunded",
    (object) => ({
      charge_id: object["id"],
      payment_id: idOf(object["payment_intent"]),
      ...fields(object, "amount_refunded", "currency"),
      fully_refunded: object["refunded"]
    })
  ],
  ["charge.dispute.created", "dispute", "dispute.created", (object) => dispute(object, "reason")],
  ["charge.dispute.closed", "dispute", "dispute.closed", (object) => dispute(object, "status")],
  ["checkout.session.completed", "session", "checkout.completed", checkout],
  ["checkout.session.async_payment_succeeded", "session", "checkout.payment_succeeded", checkout],
  ["checkout.session.async_payment_failed", "session", "checkout.payment_failed", checkout],
  ["customer.subscription.created", "subscription", "subscription.created", subscription],
  ["customer.subscription.deleted", "subscription", "subscription.canceled", subscription],
  [
    "invoice.paid",
    "invoice",
    "subscription.renewed",
    (object) => (object["billing_reason"] === "subscription_cycle" ? invoice(object, "amount_paid") : null)
  ],
  [
    "invoice.payment_failed",
    "invoice",
    "subscription.payment_failed",
    (object) => invoice(object, "amount_due", "attempt_count")
  ],
  ["payout.paid", "payout", "payout.paid", (object) => payout(object, "arrival_date")],
  ["payout.failed", "payout", "payout.failed", (object) => payout(object, "failure_code")],
  ["payout.created", "payout", "payout.created", (object) => payout(object, "status", "arrival_date", "automatic")],
  ["payout.updated", "payout", "payout.updated", (object) => payout(object, "status", "arrival_date", "automatic")],
  ["payout.canceled", "payout", "payout.canceled", (object) => payout(object)]
]

const soldItems: FastCheck.Arbitrary<SoldItems | null> = FastCheck.option(
  FastCheck.record({
    priceIds: FastCheck.array(FastCheck.stringMatching(/^price_[a-z]{3}$/), { maxLength: 3 }),
    productIds: FastCheck.array(FastCheck.stringMatching(/^prod_[a-z]{3}$/), { maxLength: 3 })
  })
)

const organizationId = "0199c0de-0000-7000-8000-000000000001"
const origin = {
  provider: "stripe",
  environment: "sandbox",
  organizationId,
  providerEventId: "evt_1",
  created: 1_760_000_000
} as const

interface Outcome {
  readonly translation: Translation
  readonly subjects: FoundSubjects
}

/** What becomes of a notification about the object, canaries all around it. */
const outcomeOf = (providerType: string, object: Json, sold: SoldItems | null): Outcome => {
  const event = Either.getOrThrow(
    parseProviderEvent(
      onTheWire({
        id: "evt_1",
        type: providerType,
        created: 1_760_000_000,
        livemode: false,
        account: "acct_1",
        context: canary,
        request: { id: canary, idempotency_key: canary },
        data: { object, previous_attributes: { metadata: { [canary]: canary } } }
      })
    )
  )
  return {
    translation: translate({ event, environment: "sandbox", organizationId, soldItems: sold }),
    subjects: filterSubjects(event, sold)
  }
}

/** Nothing of the object is in what is sent but the values that the catalog names. */
const expectNoLeak = (envelope: Envelope, data: Json): void => {
  const named = Object.values(data)
    .flat()
    .filter((value) => typeof value === "string")
    .toSorted((a, b) => b.length - a.length)
  const rest = named.reduce((text, value) => text.replaceAll(JSON.stringify(value), ""), encodeEnvelope(envelope))
  expect(rest).not.toContain(canary)
}

const isExact = Schema.is(Envelope, { onExcessProperty: "error" })

/** As published, and without any field beyond what the catalog says: the published schema is open for later versions. */
const expectPublished = (envelope: Envelope): void => {
  const validate = validators.get(envelope.type)
  const sent: unknown = JSON.parse(encodeEnvelope(envelope))
  expect([envelope.type, isExact(sent)]).toEqual([envelope.type, true])
  validate?.(sent)
  expect([envelope.type, validate?.errors]).toEqual([envelope.type, null])
}

const runs = { numRuns: 20 }

describe("made-up objects of the provider", () => {
  const check = checksOf(provider)
  const names = [...new Set(["account" as const, ...origins.map(([, object]) => object)])]

  it.each(names)("fit the type that they are made of: %s", (name) => {
    const problems = check(name)
    FastCheck.assert(
      FastCheck.property(objectOf(name), ({ exact }) => {
        expect(problems(onTheWire(exact)).slice(0, 3)).toEqual([])
      }),
      runs
    )
  })

  it("stand for every provider type that is translated", () => {
    expect(origins.map(([providerType]) => providerType).toSorted()).toEqual(translatedProviderTypes.toSorted())
  })
})

const reasons = [
  "automatic_pending_invoice_item_invoice",
  "manual",
  "quote_accept",
  "subscription",
  "subscription_create",
  "subscription_cycle",
  "subscription_threshold",
  "subscription_update",
  "upcoming"
]

/** Whether nobody knows if an invoice is news: its reason and its subscription don't fit, or its reason is a new one. */
const isUnclear = (providerType: string, object: Json): boolean => {
  if (!providerType.startsWith("invoice.")) return false
  const reason = object["billing_reason"]
  return invoice(object) === null
    ? String(reason).startsWith("subscription")
    : providerType === "invoice.paid" && reason !== null && !reasons.includes(String(reason))
}

describe.each(origins)("%s", (providerType, name, type, data) => {
  it(`becomes ${type} with exactly the catalog's fields, as its schema says, in both forms of the payload`, () => {
    FastCheck.assert(
      FastCheck.property(objectOf(name), soldItems, FastCheck.boolean(), ({ exact, extended }, sold, isCycle) => {
        // Renewals are one of ten reasons for an invoice
        const reason = isCycle && name === "invoice" ? { billing_reason: "subscription_cycle" } : {}
        const expected = data(onTheWire({ ...exact, ...reason }), sold)
        const object = { ...onTheWire(extended), ...reason }
        const present = outcomeOf(providerType, object, sold)
        const older = outcomeOf(providerType, inOlderForm(name, object), sold)
        for (const { translation } of [present, older]) {
          if (expected === null) {
            expect(translation._tag).toBe(isUnclear(providerType, object) ? "Malformed" : "Ignored")
            continue
          }
          expect(translation).toMatchObject({ _tag: "Translated", events: [{ type }] })
          if (translation._tag !== "Translated") return
          const [envelope] = translation.events
          expect(envelope.data).toEqual(expected)
          expectNoLeak(envelope, expected)
          expectPublished(envelope)
        }
        expect(older.subjects).toEqual(present.subjects)
      }),
      runs
    )
  })
})

describe("milestone.first_payment", () => {
  it("is the payment that caused it, as its own schema says", () => {
    FastCheck.assert(
      FastCheck.property(objectOf("payment_intent"), ({ extended }) => {
        const { translation } = outcomeOf("payment_intent.succeeded", onTheWire(extended), null)
        if (translation._tag !== "Translated" || translation.events[0].type !== "payment.succeeded") {
          throw new Error(translation._tag)
        }
        const milestone = makeEnvelope({
          ...origin,
          type: "milestone.first_payment",
          data: translation.events[0].data
        })
        expectPublished(milestone)
        expectNoLeak(milestone, milestone.data)
      }),
      runs
    )
  })
})

const lengthOf = (value: unknown): number => (Array.isArray(value) ? value.length : 0)

/** What the contract's table of `account.updated` says, read from the account. */
const statusOf = (account: Json): Json => {
  const requirements = record(account["requirements"])
  const due = lengthOf(requirements["currently_due"])
  const overdue = lengthOf(requirements["past_due"])
  return {
    account_id: account["id"],
    livemode: false,
    ...fields(account, "charges_enabled", "payouts_enabled", "details_submitted"),
    capabilities: record(account["capabilities"]),
    requirements: {
      action_required: due + overdue > 0,
      currently_due_count: due,
      past_due_count: overdue,
      pending_verification_count: lengthOf(requirements["pending_verification"]),
      ...fields(requirements, "disabled_reason", "current_deadline")
    }
  }
}

describe("account.updated", () => {
  it("is the account's status, exactly the contract's fields, counts in the place of the names of what is pending", () => {
    FastCheck.assert(
      FastCheck.property(objectOf("account"), ({ exact, extended }) => {
        const { capabilities } = onTheWire(exact)
        // Every key in there is a payment method, those included that the types do not know yet
        const account = { ...onTheWire(extended), ...(capabilities === undefined ? {} : { capabilities }) }
        const expected = statusOf(account)
        const data = Either.getOrThrow(accountStatus("sandbox", account))
        expect(data).toEqual(expected)
        const envelope = makeEnvelope({
          ...origin,
          type: "account.updated",
          data
        })
        expectNoLeak(envelope, { id: data.account_id, reason: data.requirements.disabled_reason })
        expectPublished(envelope)
      }),
      runs
    )
  })
})
