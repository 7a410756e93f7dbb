import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, FastCheck, Schema } from "effect"
import { ListBalanceTransactions, ListPayouts } from "../../src/provider/account/Api.ts"
import { ListCheckoutSessions } from "../../src/provider/checkout/Api.ts"
import { CreateRefund, ListOfPayments, ListPayments } from "../../src/provider/payments/Api.ts"
import { refundParams } from "../../src/provider/payments/StripePayments.ts"
import { withTimeRange } from "../../src/provider/stripe/StripeObjects.ts"
import { ListSubscriptions, UpdateSubscription } from "../../src/provider/subscriptions/Api.ts"
import { subscriptionsParams, updateSubscriptionParams } from "../../src/provider/subscriptions/StripeSubscriptions.ts"
import { providerChecks } from "./ProviderSchemas.ts"

const check = providerChecks({
  charges: { file: "Charges", name: "ChargeListParams" },
  customers: { file: "Customers", name: "CustomerListParams" },
  disputes: { file: "Disputes", name: "DisputeListParams" },
  checkoutSessions: { file: "Checkout/Sessions", name: "Checkout.SessionListParams" },
  paymentIntents: { file: "PaymentIntents", name: "PaymentIntentListParams" },
  payouts: { file: "Payouts", name: "PayoutListParams" },
  refund: { file: "Refunds", name: "RefundCreateParams" },
  refunds: { file: "Refunds", name: "RefundListParams" },
  subscription: { file: "Subscriptions", name: "SubscriptionUpdateParams" },
  subscriptions: { file: "Subscriptions", name: "SubscriptionListParams" },
  transactions: { file: "BalanceTransactions", name: "BalanceTransactionListParams" }
})

type Kind = Parameters<typeof check>[0]

/** Everything that a schema of the API admits, as handlers get it. */
const admitted = <A, I>(schema: Schema.Schema<A, I>) => Arbitrary.make(Schema.typeSchema(schema))

const kinds: ReadonlyArray<{ readonly kind: Kind; readonly request: FastCheck.Arbitrary<object> }> = [
  { kind: "charges", request: admitted(ListPayments).map(withTimeRange) },
  { kind: "checkoutSessions", request: admitted(ListCheckoutSessions).map(withTimeRange) },
  { kind: "paymentIntents", request: admitted(ListPayments).map(withTimeRange) },
  { kind: "customers", request: admitted(ListPayments).map(withTimeRange) },
  { kind: "disputes", request: admitted(ListOfPayments).map(withTimeRange) },
  { kind: "refunds", request: admitted(ListOfPayments).map(withTimeRange) },
  { kind: "subscription", request: admitted(UpdateSubscription).map(updateSubscriptionParams) },
  { kind: "payouts", request: admitted(ListPayouts).map(withTimeRange) },
  { kind: "refund", request: admitted(CreateRefund).map(refundParams) },
  { kind: "subscriptions", request: admitted(ListSubscriptions).map(subscriptionsParams) },
  { kind: "transactions", request: admitted(ListBalanceTransactions).map(withTimeRange) }
]

describe("requests about money", () => {
  it.each(kinds)("of the kind $kind fit the provider's own type, whatever the caller sends", ({ kind, request }) => {
    FastCheck.assert(
      FastCheck.property(request, (params) => {
        expect(check(kind)(params), JSON.stringify(params)).toEqual([])
      }),
      { numRuns: 100 }
    )
  })

  it.each(kinds)("of the kind $kind are held against types that refuse what they do not know", ({ kind, request }) => {
    const [params] = FastCheck.sample(request, 1)
    expect(check(kind)({ ...params, no_such_parameter: 1 })).toHaveLength(1)
  })

  it("carry a range of times as the provider has it, and nothing of the API's own names", () => {
    const range = { created_gte: 1, created_lte: 2 }
    expect(withTimeRange({ ...range, limit: 5 })).toEqual({ limit: 5, created: { gte: 1, lte: 2 } })
    expect(withTimeRange({ created_gte: 0 })).toEqual({ created: { gte: 0 } })
    expect(withTimeRange({ created_lte: 2, payout: "po_1", type: "charge" })).toEqual({
      created: { lte: 2 },
      payout: "po_1",
      type: "charge"
    })
    expect(withTimeRange({})).toEqual({})
  })

  it("for a refund leave fees and transfers alone", () => {
    FastCheck.assert(
      FastCheck.property(admitted(CreateRefund), (body) => {
        const named = ["payment_intent", "charge"].filter((key) => key in refundParams(body))
        expect(named).toHaveLength(1)
        expect(Object.keys(refundParams(body)).filter((key) => /fee|transfer|currency|origin/.test(key))).toEqual([])
      })
    )
  })
})
