import { Struct } from "effect"
import * as Params from "../../api/Params.ts"
import type { Route } from "../../api/Route.ts"
import { newId } from "../../Ids.ts"
import { type Charge, nulls, type PaymentIntent } from "../../Records.ts"
import { resource } from "../Resource.ts"

/** The card network's answer: approved, or declined without a reason. */
export type CardOutcome = "approved" | "declined"

/** The provider's details of a card that was declined without a reason. */
export const decline = {
  code: "card_declined",
  declineCode: "generic_decline",
  message: "Your card was declined."
} as const

const outcomes: { readonly [O in CardOutcome]: NonNullable<Charge["outcome"]> } = {
  approved: {
    ...nulls("advice_code network_advice_code network_decline_code reason"),
    network_status: "approved_by_network",
    risk_level: "normal",
    risk_score: 1,
    seller_message: "Payment complete.",
    type: "authorized"
  },
  declined: {
    advice_code: "try_again_later",
    network_advice_code: null,
    network_decline_code: "01",
    network_status: "declined_by_network",
    reason: decline.declineCode,
    risk_level: "normal",
    risk_score: 1,
    seller_message: "The bank did not return any further details with this decline.",
    type: "issuer_declined"
  }
}

export type PaymentMethod = "card" | "boleto" | "pix"

/** The provider's test cards, one for each outcome. */
const cardDetails = (outcome: CardOutcome, amount: number): Charge["payment_method_details"] => ({
  card: {
    amount_authorized: outcome === "approved" ? amount : null,
    authorization_code: outcome === "approved" ? "000000" : null,
    brand: "visa",
    checks: { address_line1_check: null, address_postal_code_check: null, cvc_check: "pass" },
    country: "US",
    ...nulls("electronic_commerce_indicator installments mandate network_transaction_id three_d_secure"),
    ...nulls("transaction_link_id wallet"),
    exp_month: 12,
    exp_year: 2034,
    extended_authorization: { status: "disabled" },
    fingerprint: outcome === "approved" ? "emulatedCard4242" : "emulatedCard0002",
    funding: "credit",
    incremental_authorization: { status: "unavailable" },
    last4: outcome === "approved" ? "4242" : "0002",
    multicapture: { status: "unavailable" },
    network: "visa",
    network_token: { used: false },
    overcapture: { maximum_amount_capturable: amount, status: "unavailable" },
    regulated_status: "unregulated"
  },
  type: "card"
})

const detailsOf = (method: PaymentMethod, outcome: CardOutcome, amount: number): Charge["payment_method_details"] => {
  switch (method) {
    case "card":
      return cardDetails(outcome, amount)
    case "boleto":
      return { boleto: { tax_id: "000.000.000-00" }, type: "boleto" }
    case "pix":
      return { pix: { bank_transaction_id: "E00000000000000000000000000000000" }, type: "pix" }
  }
}

interface ChargeTerms {
  readonly created: number
  readonly outcome: CardOutcome
  readonly method: PaymentMethod
  readonly paymentMethod: string
  readonly email: string | null
}

/** One attempt to charge a payment method for a payment intent. An attempt other than by card is a payment (`py_`). */
export const makeCharge = (
  intent: PaymentIntent,
  { created, email, method, outcome, paymentMethod }: ChargeTerms
): Charge => {
  const approved = outcome === "approved"
  return {
    id: newId(method === "card" ? "ch_" : "py_"),
    object: "charge",
    amount: intent.amount,
    amount_captured: approved ? intent.amount : 0,
    amount_refunded: 0,
    ...nulls("application application_fee application_fee_amount balance_transaction failure_balance_transaction"),
    ...nulls("on_behalf_of receipt_number receipt_url review shipping source source_transfer transfer_data"),
    ...nulls("transfer_group"),
    billing_details: { address: null, email, name: null, phone: null, tax_id: null },
    calculated_statement_descriptor: intent.statement_descriptor,
    captured: approved,
    created,
    ...Struct.pick(intent, "currency", "customer", "description", "metadata", "receipt_email"),
    ...Struct.pick(intent, "statement_descriptor", "statement_descriptor_suffix"),
    disputed: false,
    failure_code: approved ? null : decline.code,
    failure_message: approved ? null : decline.message,
    fraud_details: {},
    livemode: false,
    outcome: outcomes[outcome],
    paid: approved,
    payment_intent: intent.id,
    payment_method: paymentMethod,
    payment_method_details: detailsOf(method, outcome, intent.amount),
    refunded: false,
    status: approved ? "succeeded" : "failed"
  }
}

const charges = resource("/v1/charges", "charge")

export const chargeRoutes: ReadonlyArray<Route> = [
  charges.list(Params.optionals({ created: Params.range, payment_intent: Params.text() })),
  charges.get
]
