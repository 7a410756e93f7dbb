/** `payout.*` (contract 6.3). */
import { Schema } from "effect"
import { amount, currency, flag, providerCode, providerId, unixSeconds } from "../Fields.ts"
import { orAbsent } from "./ProviderEvent.ts"
import { type Translator, translator } from "./Translator.ts"

const Payout = Schema.Struct({ id: providerId("The payout"), amount: amount("The payout's amount"), currency })

const arrival = { arrival_date: unixSeconds("When the money is expected at the bank") }

const PaidPayout = Schema.Struct({ ...Payout.fields, ...arrival })

const FailedPayout = Schema.Struct({ ...Payout.fields, failure_code: orAbsent(providerCode("Why it failed")) })

const PayoutWithStatus = Schema.Struct({
  ...Payout.fields,
  ...arrival,
  status: providerCode("The payout's status"),
  automatic: flag("Whether the payout schedule created it")
})

const common = (payout: typeof Payout.Type) => ({
  payout_id: payout.id,
  amount: payout.amount,
  currency: payout.currency
})

const statusTranslator = (type: "payout.created" | "payout.updated"): Translator =>
  translator(PayoutWithStatus, (payout, make) => [
    make(type, {
      ...common(payout),
      status: payout.status,
      arrival_date: payout.arrival_date,
      automatic: payout.automatic
    })
  ])

/** The translators by the provider's event type. */
export const payoutTranslators = {
  "payout.paid": translator(PaidPayout, (payout, make) => [
    make("payout.paid", { ...common(payout), arrival_date: payout.arrival_date })
  ]),
  "payout.failed": translator(FailedPayout, (payout, make) => [
    make("payout.failed", { ...common(payout), failure_code: payout.failure_code })
  ]),
  "payout.created": statusTranslator("payout.created"),
  "payout.updated": statusTranslator("payout.updated"),
  "payout.canceled": translator(Payout, (payout, make) => [make("payout.canceled", common(payout))])
} satisfies Record<string, Translator>
