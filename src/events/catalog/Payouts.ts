import { Schema } from "effect"
import { eventType, type Fictitious } from "../EventDefinition.ts"
import { amount, currency, flag, providerCode, providerId, unixSeconds } from "../Fields.ts"

const payoutFields = {
  payout_id: providerId("The provider's id of the payout"),
  amount: amount("The payout's amount"),
  currency
}

const arrivalDate = unixSeconds("When the money is expected at the bank")

const PayoutPaidData = Schema.Struct({
  ...payoutFields,
  arrival_date: arrivalDate
}).annotations({ identifier: "PayoutPaidData", description: "A payout that was paid" })

const PayoutFailedData = Schema.Struct({
  ...payoutFields,
  failure_code: Schema.NullOr(providerCode("Why the payout failed, in the provider's words"))
}).annotations({ identifier: "PayoutFailedData", description: "A payout that failed" })

const PayoutData = Schema.Struct({
  ...payoutFields,
  status: providerCode("The payout's status, in the provider's words, e.g. in_transit"),
  arrival_date: arrivalDate,
  automatic: flag("Whether the payout schedule created it, and not a person")
}).annotations({ identifier: "PayoutData", description: "A payout and its status" })

const PayoutCanceledData = Schema.Struct(payoutFields).annotations({
  identifier: "PayoutCanceledData",
  description: "A payout that was canceled"
})

const payout = ({ id }: Fictitious) => ({ payout_id: id("po"), amount: 120_000, currency: "brl" })

export const payoutEvents = [
  eventType("payout.paid", {
    description: "A payout is expected to have reached the bank.",
    data: PayoutPaidData,
    sample: (fictitious) => ({ ...payout(fictitious), arrival_date: fictitious.inDays(0) })
  }),
  eventType("payout.failed", {
    description: "A payout failed and its money returned to the balance.",
    data: PayoutFailedData,
    sample: (fictitious) => ({ ...payout(fictitious), failure_code: "account_closed" })
  }),
  eventType("payout.created", {
    description: "A payout was created.",
    data: PayoutData,
    sample: (fictitious) => ({
      ...payout(fictitious),
      status: "in_transit",
      arrival_date: fictitious.inDays(2),
      automatic: true
    })
  }),
  eventType("payout.updated", {
    description: "A payout was changed.",
    data: PayoutData,
    sample: (fictitious) => ({
      ...payout(fictitious),
      status: "paid",
      arrival_date: fictitious.inDays(1),
      automatic: true
    })
  }),
  eventType("payout.canceled", {
    description: "A payout was canceled before it was sent.",
    data: PayoutCanceledData,
    sample: payout
  })
] as const
