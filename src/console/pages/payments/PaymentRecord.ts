import { type AnswerOf, call } from "../../api/Call.ts"
import { isSupported } from "../../api/Supported.ts"

/** A payment and its related objects, read by any of their ids. */

export type PaymentIntent = AnswerOf<"paymentIntents", "get">
export type Charge = AnswerOf<"charges", "get">
export type CheckoutSession = AnswerOf<"checkoutSessions", "get">
export type Refund = AnswerOf<"refunds", "get">
export type Dispute = AnswerOf<"disputes", "get">

export interface PaymentRecord {
  /** Undefined for a session without a payment so far, and for a charge without a payment intent. */
  readonly intent: PaymentIntent | undefined
  readonly charge: Charge | undefined
  readonly session: CheckoutSession | undefined
  readonly refunds: ReadonlyArray<Refund>
  readonly disputes: ReadonlyArray<Dispute>
}

/** The most refunds and disputes shown: a payment rarely has more than one. */
const shown = 100

const nothing: PaymentRecord = { intent: undefined, charge: undefined, session: undefined, refunds: [], disputes: [] }

/** The page of a list that the provider does not have. */
const none = { data: [] }

/** The refunds and disputes of a charge, or of all charges of a payment. */
const reversalsOf = async (
  of: { readonly charge: string } | { readonly payment_intent: string },
  signal: AbortSignal
): Promise<Pick<PaymentRecord, "refunds" | "disputes">> => {
  const urlParams = { ...of, limit: shown }
  const [refunds, disputes] = await Promise.all([
    isSupported("refunds.list") ? call("refunds", "list", { urlParams }, { signal }) : none,
    isSupported("disputes.list") ? call("disputes", "list", { urlParams }, { signal }) : none
  ])
  return { refunds: refunds.data, disputes: disputes.data }
}

const ofIntent = async (id: string, signal: AbortSignal): Promise<PaymentRecord> => {
  // First, so that an unknown id is refused as such, and not as an invalid filter of one of the lists
  const intent = await call("paymentIntents", "get", { path: { id } }, { signal })
  const [charge, sessions, reversals] = await Promise.all([
    typeof intent.latest_charge === "string" && isSupported("charges.get")
      ? call("charges", "get", { path: { id: intent.latest_charge } }, { signal })
      : undefined,
    isSupported("checkoutSessions.list")
      ? call("checkoutSessions", "list", { urlParams: { payment_intent: id, limit: 1 } }, { signal })
      : none,
    reversalsOf({ payment_intent: id }, signal)
  ])
  return { intent, charge, session: sessions.data[0], ...reversals }
}

export const readPayment = async (id: string, signal: AbortSignal): Promise<PaymentRecord> => {
  if (id.startsWith("cs_")) {
    const session = await call("checkoutSessions", "get", { path: { id } }, { signal })
    return typeof session.payment_intent === "string"
      ? { ...(await ofIntent(session.payment_intent, signal)), session }
      : { ...nothing, session }
  }
  if (id.startsWith("ch_") || id.startsWith("py_")) {
    const charge = await call("charges", "get", { path: { id } }, { signal })
    // The requested charge, even if the payer has since tried again
    return typeof charge.payment_intent === "string"
      ? { ...(await ofIntent(charge.payment_intent, signal)), charge }
      : { ...nothing, charge, ...(await reversalsOf({ charge: charge.id }, signal)) }
  }
  return ofIntent(id, signal)
}
