import { describe, expect, it } from "@effect/vitest"
import { FastCheck } from "effect"
import { capitalized, pairsAt, plainWords, textAt, valueAt } from "../../src/console/api/Reading.ts"
import { createdWithin } from "../../src/console/pages/payments/Days.ts"
import {
  chargeStatus,
  disputeStatus,
  intentStatus,
  methodOf,
  needsResponse,
  paymentStatus,
  refundableOf,
  refundReason,
  refundStatus,
  sessionStatus
} from "../../src/console/pages/payments/Statuses.ts"

const paid = { status: "succeeded", captured: true, amount: 3000, amount_captured: 3000, amount_refunded: 0 }

const anyField = FastCheck.oneof(
  FastCheck.anything(),
  FastCheck.double(),
  FastCheck.constantFrom("succeeded", "failed")
)

/** What the provider may send one day: known fields with values of any kind. */
const sentByProvider = FastCheck.oneof(
  FastCheck.anything(),
  FastCheck.record(
    {
      amount_captured: anyField,
      amount_refunded: anyField,
      captured: anyField,
      payment_method_details: FastCheck.oneof(
        anyField,
        FastCheck.record({ type: FastCheck.oneof(anyField, FastCheck.constant("card")), card: anyField })
      ),
      payment_status: anyField,
      reason: anyField,
      status: anyField
    },
    { requiredKeys: [] }
  )
)

describe("the state of a payment", () => {
  it("is what its charge says, once it has succeeded", () => {
    const intent = { status: "succeeded" }
    expect(paymentStatus(intent, paid).words).toBe("Succeeded")
    expect(paymentStatus(intent, { ...paid, amount_refunded: 100 }).words).toBe("Partly refunded")
    expect(paymentStatus(intent, { ...paid, amount_refunded: 3000, refunded: true }).words).toBe("Refunded")
    expect(paymentStatus(intent, { ...paid, disputed: true, amount_refunded: 3000, refunded: true }).words).toBe(
      "Disputed"
    )
    expect(paymentStatus(intent, undefined).words).toBe("Succeeded")
  })

  it("is failed after a refused attempt, and not paid before any", () => {
    expect(intentStatus({ status: "requires_payment_method", last_payment_error: null }).words).toBe("Not paid")
    expect(intentStatus({ status: "requires_payment_method", last_payment_error: { type: "card_error" } }).words).toBe(
      "Failed"
    )
  })

  it("is authorized until the money is captured", () => {
    expect(chargeStatus({ ...paid, captured: false }).words).toBe("Authorized")
  })

  it("is the provider's own word for what is not known here", () => {
    expect(intentStatus({ status: "requires_a_miracle" })).toEqual({ words: "Requires a miracle", tone: "neutral" })
    expect(refundStatus({}).words).toBe("Unknown")
    expect(disputeStatus({ status: "charge_refunded" }).words).toBe("Charge refunded")
  })

  it("is never an error, whatever the provider sends", () => {
    FastCheck.assert(
      FastCheck.property(sentByProvider, (sent) => {
        for (const status of [intentStatus, chargeStatus, sessionStatus, refundStatus, disputeStatus]) {
          expect(status(sent).words).toMatch(/./)
        }
        methodOf(sent)
        refundReason(sent)
        expect(refundableOf(sent)).toBeGreaterThanOrEqual(0)
      })
    )
  })
})

describe("the state of a checkout session", () => {
  it("is paid only if the money came, not when the payer has finished", () => {
    expect(sessionStatus({ status: "complete", payment_status: "paid" }).words).toBe("Paid")
    expect(sessionStatus({ status: "complete", payment_status: "unpaid" }).words).toBe("Waits for payment")
    expect(sessionStatus({ status: "complete", payment_status: "no_payment_required" }).words).toBe("Complete")
    expect(sessionStatus({ status: "open", payment_status: "unpaid" }).words).toBe("Open")
    expect(sessionStatus({ status: "expired" }).words).toBe("Expired")
  })
})

describe("what can be refunded", () => {
  it("is what was captured and not refunded yet", () => {
    expect(refundableOf(paid)).toBe(3000)
    expect(refundableOf({ ...paid, amount_refunded: 1000 })).toBe(2000)
    expect(refundableOf({ ...paid, amount_captured: 1500 })).toBe(1500)
    expect(refundableOf({ ...paid, amount_refunded: 4000 })).toBe(0)
  })

  it("is nothing of a charge that failed or was only authorized", () => {
    expect(refundableOf({ ...paid, status: "failed" })).toBe(0)
    expect(refundableOf({ ...paid, captured: false })).toBe(0)
  })
})

describe("words of payments", () => {
  it("name the card, or the method", () => {
    const card = { payment_method_details: { type: "card", card: { brand: "visa", last4: "4242" } } }
    expect(methodOf(card)).toBe("Visa •••• 4242")
    expect(methodOf({ payment_method_details: { type: "card", card: {} } })).toBe("Card")
    expect(methodOf({ payment_method_details: { type: "us_bank_account" } })).toBe("Us bank account")
    expect(methodOf({})).toBeUndefined()
  })

  it("say when a dispute needs an answer", () => {
    expect(needsResponse({ status: "needs_response" })).toBe(true)
    expect(needsResponse({ status: "warning_needs_response" })).toBe(true)
    expect(needsResponse({ status: "under_review" })).toBe(false)
  })

  it("are those of the provider, made readable", () => {
    expect(capitalized(plainWords("product_not_received"))).toBe("Product not received")
  })
})

describe("fields that may be missing", () => {
  it("are undefined rather than an error", () => {
    expect(textAt(undefined, "a", "b")).toBeUndefined()
    expect(textAt({ a: null }, "a", "b")).toBeUndefined()
    expect(textAt({ a: { b: "" } }, "a", "b")).toBeUndefined()
    expect(valueAt({ a: ["x"] }, "a", "0")).toBeUndefined()
    expect(pairsAt({ metadata: { order: "7", nested: {} } }, "metadata")).toEqual([["order", "7"]])
  })
})

describe("days of the reader's calendar", () => {
  it("begin and end in the reader's zone", () => {
    const { created_gte, created_lte } = createdWithin("2026-11-23", "2026-11-23")
    expect(created_gte).toBe(new Date(2026, 10, 23).getTime() / 1000)
    expect(created_lte).toBe(new Date(2026, 10, 24).getTime() / 1000 - 1)
  })

  it("are left out if they name no day", () => {
    expect(createdWithin("", "")).toEqual({})
    expect(createdWithin("soon", "1900-01-01")).toEqual({})
  })
})
