import { capitalized, isAt, numberAt, plainWords, textAt } from "../../api/Reading.ts"
import type { Tone } from "../../components/charts/chartScales.ts"

/**
 * The provider's statuses in words, each with its badge's tone. An unknown status is shown as the provider's own word.
 */

export interface Status {
  readonly words: string
  readonly tone: Tone
  /** A sentence that explains the words, if they need it. */
  readonly meaning?: string
}

const known = (statuses: Readonly<Record<string, Status>>, word: string | undefined): Status =>
  word === undefined
    ? { words: "Unknown", tone: "neutral" }
    : (statuses[word] ?? { words: capitalized(plainWords(word)), tone: "neutral" })

const intentStatuses: Readonly<Record<string, Status>> = {
  succeeded: { words: "Succeeded", tone: "ok" },
  processing: {
    words: "Processing",
    tone: "info",
    meaning: "The payer's bank has not decided yet. Methods such as boleto can take days."
  },
  requires_payment_method: {
    words: "Not paid",
    tone: "neutral",
    meaning: "The payer has not paid yet. The amount is open until a payment succeeds."
  },
  requires_confirmation: { words: "To be confirmed", tone: "neutral" },
  requires_action: {
    words: "Waits for the payer",
    tone: "warning",
    meaning: "The payer has a step left to take, such as paying a boleto or confirming with the bank."
  },
  requires_capture: {
    words: "Authorized",
    tone: "warning",
    meaning: "The amount is held on the payer's card, and has not been captured yet."
  },
  canceled: { words: "Canceled", tone: "neutral", meaning: "It can't be paid any more." }
}

export const intentStatus = (intent: unknown): Status => {
  const status = textAt(intent, "status")
  if (status === "requires_payment_method" && textAt(intent, "last_payment_error", "type") !== undefined) {
    return {
      words: "Failed",
      tone: "problem",
      meaning: "The last attempt to pay was refused. The payer can try again."
    }
  }
  return known(intentStatuses, status)
}

export const chargeStatus = (charge: unknown): Status => {
  const status = textAt(charge, "status")
  if (status === "failed") return { words: "Failed", tone: "problem" }
  if (status === "pending") return { words: "Pending", tone: "info" }
  if (isAt(charge, "disputed")) return { words: "Disputed", tone: "problem" }
  if (isAt(charge, "refunded")) return { words: "Refunded", tone: "neutral" }
  if ((numberAt(charge, "amount_refunded") ?? 0) > 0) return { words: "Partly refunded", tone: "warning" }
  if (status === "succeeded" && !isAt(charge, "captured")) return { words: "Authorized", tone: "warning" }
  return status === "succeeded" ? { words: "Succeeded", tone: "ok" } : known({}, status)
}

/** The status of a payment including its last charge, if there is one: the first thing a reader looks for. */
export const paymentStatus = (intent: unknown, charge: unknown): Status =>
  textAt(intent, "status") === "succeeded" && charge !== undefined ? chargeStatus(charge) : intentStatus(intent)

/** The status of a checkout session; a complete one may still wait for a payment that takes days. */
export const sessionStatus = (session: unknown): Status => {
  const status = textAt(session, "status")
  if (status === "open") {
    return { words: "Open", tone: "info", meaning: "The payer has not finished yet." }
  }
  if (status === "expired") {
    return { words: "Expired", tone: "neutral", meaning: "The payer did not finish in time, or it was ended." }
  }
  if (status !== "complete") return known({}, status)
  switch (textAt(session, "payment_status")) {
    case "paid":
      return { words: "Paid", tone: "ok" }
    case "no_payment_required":
      return { words: "Complete", tone: "ok", meaning: "There was nothing to pay." }
    default:
      return {
        words: "Waits for payment",
        tone: "warning",
        meaning: "The payer has finished, and the payment is still on its way. It can fail."
      }
  }
}

const refundStatuses: Readonly<Record<string, Status>> = {
  succeeded: { words: "Succeeded", tone: "ok" },
  pending: { words: "Pending", tone: "info", meaning: "It is on its way to the payer. It can still fail." },
  requires_action: {
    words: "Waits for the payer",
    tone: "warning",
    meaning: "The payer has to tell the provider where to send the money."
  },
  failed: {
    words: "Failed",
    tone: "problem",
    meaning: "The payer has not got the money, which is in your balance again. Give it back in another way."
  },
  canceled: {
    words: "Canceled",
    tone: "problem",
    meaning: "The payer has not got the money, which is in your balance again."
  }
}

export const refundStatus = (refund: unknown): Status => known(refundStatuses, textAt(refund, "status"))

const disputeStatuses: Readonly<Record<string, Status>> = {
  needs_response: { words: "Needs a response", tone: "problem" },
  under_review: { words: "Under review", tone: "info" },
  won: { words: "Won", tone: "ok" },
  lost: { words: "Lost", tone: "problem" },
  warning_needs_response: { words: "Inquiry: needs a response", tone: "warning" },
  warning_under_review: { words: "Inquiry: under review", tone: "info" },
  warning_closed: { words: "Inquiry closed", tone: "neutral" },
  prevented: { words: "Prevented", tone: "ok" }
}

export const disputeStatus = (dispute: unknown): Status => known(disputeStatuses, textAt(dispute, "status"))

export const needsResponse = (dispute: unknown): boolean =>
  /^(?:warning_)?needs_response$/.test(textAt(dispute, "status") ?? "")

export const refundReasons = [
  { value: "requested_by_customer", label: "Requested by the customer" },
  { value: "duplicate", label: "Duplicate payment" },
  { value: "fraudulent", label: "Fraudulent" }
] as const

export const refundReason = (refund: unknown): string | undefined => {
  const reason = textAt(refund, "reason")
  const known = refundReasons.find(({ value }) => value === reason)
  return known?.label ?? (reason && capitalized(plainWords(reason)))
}

const brands: Readonly<Record<string, string>> = {
  amex: "American Express",
  diners: "Diners Club",
  discover: "Discover",
  elo: "Elo",
  jcb: "JCB",
  mastercard: "Mastercard",
  unionpay: "UnionPay",
  visa: "Visa"
}

/** A charge's payment method: `Visa •••• 4242`, `Boleto`; undefined if the provider does not say. */
export const methodOf = (charge: unknown): string | undefined => {
  const type = textAt(charge, "payment_method_details", "type")
  if (type !== "card") return type === undefined ? undefined : capitalized(plainWords(type))
  const brand = textAt(charge, "payment_method_details", "card", "brand") ?? "card"
  const last4 = textAt(charge, "payment_method_details", "card", "last4")
  const name = brands[brand] ?? capitalized(plainWords(brand))
  return last4 === undefined ? name : `${name} •••• ${last4}`
}

/** The amount of a charge that can still be refunded, in the smallest currency unit. */
export const refundableOf = (charge: unknown): number =>
  textAt(charge, "status") === "succeeded" && isAt(charge, "captured")
    ? Math.max(0, (numberAt(charge, "amount_captured") ?? 0) - (numberAt(charge, "amount_refunded") ?? 0))
    : 0
