import { readdirSync, readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Either, FastCheck, Schema } from "effect"
import { EventType, eventData, eventTypes } from "../../src/events/Catalog.ts"
import { maxSubscriptions } from "../../src/events/EventCatalog.ts"

/** The contract's catalog: type and fields of `data`, in its order; a field that may be null ends in `?`. */
const contract: ReadonlyArray<readonly [string, string]> = [
  ["payment.succeeded", "payment_id amount_received currency"],
  ["payment.failed", "payment_id amount currency failure_code?"],
  ["payment.refunded", "charge_id payment_id? amount_refunded currency fully_refunded"],
  ["dispute.created", "dispute_id charge_id payment_id? amount currency reason"],
  ["dispute.closed", "dispute_id charge_id payment_id? amount currency status"],
  ...["checkout.completed", "checkout.payment_succeeded", "checkout.payment_failed"].map(
    (type) =>
      [
        type,
        "session_id mode payment_status payment_id? subscription_id? amount_total? currency? price_ids? product_ids?"
      ] as const
  ),
  ["subscription.created", "subscription_id customer_id status"],
  ["subscription.renewed", "subscription_id invoice_id amount_paid currency"],
  ["subscription.canceled", "subscription_id customer_id status"],
  ["subscription.payment_failed", "subscription_id invoice_id amount_due currency attempt_count"],
  ["payout.paid", "payout_id amount currency arrival_date"],
  ["payout.failed", "payout_id amount currency failure_code?"],
  ["payout.created", "payout_id amount currency status arrival_date automatic"],
  ["payout.updated", "payout_id amount currency status arrival_date automatic"],
  ["payout.canceled", "payout_id amount currency"],
  ["milestone.first_payment", "payment_id amount_received currency"],
  ["account.updated", "account_id livemode charges_enabled payouts_enabled details_submitted capabilities requirements"]
]

const folder = new URL("../../src/platform/storage/schema/", import.meta.url)
const schema = readdirSync(folder).map((file) => readFileSync(new URL(file, folder), "utf8"))

const amounts = ["amount", "amount_received", "amount_refunded", "amount_total", "amount_paid", "amount_due"]
const integers = [...amounts, "attempt_count", "arrival_date"]
const flags = ["fully_refunded", "automatic", "livemode", "charges_enabled", "payouts_enabled", "details_submitted"]

const schemaOf = (type: EventType): Schema.Schema<object> => Schema.make<object>(eventData[type].ast)

const sample = (type: EventType): Record<string, unknown> => {
  const [value] = FastCheck.sample<object>(Arbitrary.make(schemaOf(type)), {
    numRuns: 1,
    seed: 1
  })
  return { ...value }
}

const accepts = (type: EventType, data: unknown): boolean =>
  Either.isRight(Schema.decodeUnknownEither(schemaOf(type))(data))

describe("the catalog", () => {
  it("has the contract's 19 types, each with a description", () => {
    expect(eventTypes.map(({ type }) => type).sort()).toEqual(contract.map(([type]) => type).sort())
    expect(new Set(eventTypes.map(({ description }) => description)).size).toBe(19)
    for (const { description } of eventTypes) expect(description).toMatch(/^[A-Z].*\.$/)
  })

  it("is no longer than what the table of endpoints takes: one endpoint may subscribe to all of it", () => {
    const checks = schema.flatMap((text) => [...text.matchAll(/cardinality\(events\) BETWEEN 1 AND (\d+)/g)])
    expect(checks.length).toBeGreaterThan(0)
    expect(Number(checks.at(-1)?.[1])).toBeGreaterThanOrEqual(maxSubscriptions)
  })
})

describe.each(contract)("data of %s", (name, fields) => {
  const type = Schema.decodeUnknownSync(EventType)(name)
  const named = fields.split(" ").map((field) => ({ key: field.replace("?", ""), nullable: field.endsWith("?") }))

  it("has exactly the contract's fields", () => {
    expect(Object.keys(eventData[type].fields)).toEqual(named.map(({ key }) => key))
  })

  it("needs every field, and takes null where the origin may lack it and nowhere else", () => {
    const data = sample(type)
    expect(accepts(type, data)).toBe(true)
    for (const { key, nullable } of named) {
      expect([key, accepts(type, { ...data, [key]: null })]).toEqual([key, nullable])
      const { [key]: _, ...without } = data
      expect([key, accepts(type, without)]).toEqual([key, false])
    }
  })

  it("takes amounts and counts as integers only, flags as booleans, ids as text, currencies as lowercase ISO codes", () => {
    const data = sample(type)
    for (const { key } of named) {
      const refused = integers.includes(key)
        ? [1.5, "1", Number.NaN, 2 ** 53, true]
        : flags.includes(key)
          ? ["true", 1, 0]
          : key === "currency"
            ? ["BRL", "br", "real", "", 986]
            : [1, true, "", [1], [""]]
      for (const value of refused) {
        expect([key, value, accepts(type, { ...data, [key]: value })]).toEqual([key, value, false])
      }
    }
  })
})

describe("data of account.updated", () => {
  const data = {
    account_id: "acct_1",
    livemode: false,
    charges_enabled: true,
    payouts_enabled: false,
    details_submitted: true,
    capabilities: { card_payments: "active", pix_payments: "pending", boleto_payments: "inactive" },
    requirements: {
      action_required: true,
      currently_due_count: 2,
      past_due_count: 0,
      pending_verification_count: 1,
      disabled_reason: "requirements.past_due",
      current_deadline: 1_760_000_000
    }
  }

  it("takes what the contract shows", () => {
    expect(accepts("account.updated", data)).toBe(true)
    expect(accepts("account.updated", { ...data, capabilities: {} })).toBe(true)
    const free = { ...data.requirements, disabled_reason: null, current_deadline: null }
    expect(accepts("account.updated", { ...data, requirements: free })).toBe(true)
  })

  it("refuses other capability states and counts that are none", () => {
    expect(accepts("account.updated", { ...data, capabilities: { card_payments: "unrequested" } })).toBe(false)
    for (const bad of [-1, 0.5, null, "2"]) {
      const requirements = { ...data.requirements, past_due_count: bad }
      expect(accepts("account.updated", { ...data, requirements })).toBe(false)
    }
  })
})
