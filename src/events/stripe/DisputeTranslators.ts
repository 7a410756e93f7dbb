/** `dispute.*` (contract 6.3). */
import { Schema } from "effect"
import { amount, currency, providerCode, providerId } from "../Fields.ts"
import { orAbsent, Reference } from "./ProviderEvent.ts"
import { type Translator, translator } from "./Translator.ts"

const Dispute = Schema.Struct({
  id: providerId("The dispute"),
  charge: Reference,
  payment_intent: orAbsent(Reference),
  amount: amount("The disputed amount"),
  currency
})

const OpenedDispute = Schema.Struct({ ...Dispute.fields, reason: providerCode("Why the payer disputes") })

const ClosedDispute = Schema.Struct({ ...Dispute.fields, status: providerCode("How the dispute ended") })

const common = (dispute: typeof Dispute.Type) => ({
  dispute_id: dispute.id,
  charge_id: dispute.charge,
  payment_id: dispute.payment_intent,
  amount: dispute.amount,
  currency: dispute.currency
})

/** The translators by the provider's event type. */
export const disputeTranslators = {
  "charge.dispute.created": translator(OpenedDispute, (dispute, make) => [
    make("dispute.created", { ...common(dispute), reason: dispute.reason })
  ]),
  "charge.dispute.closed": translator(ClosedDispute, (dispute, make) => [
    make("dispute.closed", { ...common(dispute), status: dispute.status })
  ])
} satisfies Record<string, Translator>
