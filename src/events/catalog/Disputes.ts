import { Schema } from "effect"
import { eventType, type Fictitious } from "../EventDefinition.ts"
import { amount, currency, providerCode, providerId } from "../Fields.ts"

const disputeFields = {
  dispute_id: providerId("The provider's id of the dispute"),
  charge_id: providerId("The provider's id of the disputed charge"),
  payment_id: Schema.NullOr(providerId("The payment (payment intent)")),
  amount: amount("The disputed amount"),
  currency
}

const DisputeCreatedData = Schema.Struct({
  ...disputeFields,
  reason: providerCode("Why the payer disputes, in the provider's words, e.g. fraudulent")
}).annotations({ identifier: "DisputeCreatedData", description: "A dispute that was opened" })

const DisputeClosedData = Schema.Struct({
  ...disputeFields,
  status: providerCode("How the dispute ended, in the provider's words, e.g. won or lost")
}).annotations({ identifier: "DisputeClosedData", description: "A dispute that has ended" })

const dispute = ({ id }: Fictitious) => ({
  dispute_id: id("dp"),
  charge_id: id("ch"),
  payment_id: id("pi"),
  amount: 1500,
  currency: "brl"
})

export const disputeEvents = [
  eventType("dispute.created", {
    description: "A payer disputes a charge.",
    data: DisputeCreatedData,
    sample: (fictitious) => ({ ...dispute(fictitious), reason: "fraudulent" })
  }),
  eventType("dispute.closed", {
    description: "A dispute has ended.",
    data: DisputeClosedData,
    sample: (fictitious) => ({ ...dispute(fictitious), status: "won" })
  })
] as const
