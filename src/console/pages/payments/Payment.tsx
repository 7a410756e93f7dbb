import { useParams } from "wouter-preact"
import { formatAmount } from "../../components/amounts.ts"
import { Loaded } from "../../components/Loaded.tsx"
import { Page } from "../../components/Page.tsx"
import { useQuery } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { ChargeSection } from "./ChargeSection.tsx"
import { DisputesSection } from "./DisputesSection.tsx"
import { EventsSection } from "./EventsSection.tsx"
import { PaymentFacts } from "./PaymentFacts.tsx"
import { type PaymentRecord, readPayment } from "./PaymentRecord.ts"
import { RefundsSection } from "./RefundsSection.tsx"
import { SessionSection } from "./SessionSection.tsx"
import { StatusBadge } from "./StatusBadge.tsx"
import { chargeStatus, paymentStatus, sessionStatus } from "./Statuses.ts"

/** The payment, or else its charge, or else its session. */
const subjectOf = ({ charge, intent, session }: PaymentRecord) => {
  if (intent !== undefined) {
    return { amount: intent.amount, currency: intent.currency, status: paymentStatus(intent, charge) }
  }
  if (charge !== undefined) {
    return { amount: charge.amount, currency: charge.currency, status: chargeStatus(charge) }
  }
  return { amount: session?.amount_total, currency: session?.currency, status: sessionStatus(session) }
}

/** The status and its meaning. */
const Headline = ({ record }: { readonly record: PaymentRecord }) => {
  const { status } = subjectOf(record)
  return (
    <p class="payment-headline">
      <StatusBadge status={status} />
      {status.meaning === undefined ? null : <span class="quiet">{status.meaning}</span>}
    </p>
  )
}

const titleOf = (record: PaymentRecord | undefined): string => {
  if (record === undefined) return "Payment"
  const { amount, currency } = subjectOf(record)
  const what = record.intent === undefined && record.charge === undefined ? "Checkout session" : "Payment"
  return typeof amount === "number" && typeof currency === "string"
    ? `${what} of ${formatAmount(amount, currency)}`
    : what
}

/** One payment, looked up by its own id or that of its charge or checkout session. */
export default function Payment() {
  const { can, environment, path } = useWorkspace()
  const { id = "" } = useParams<{ id: string }>()
  const key = `${environment}/payments/one/${id}`
  const query = useQuery(key, (signal) => readPayment(id, signal))
  return (
    <Page title={titleOf(query.data)} back={{ href: path("/payments"), label: "Payments" }}>
      <Loaded query={query}>
        {(record) => (
          <>
            <Headline record={record} />
            <PaymentFacts record={record} />
            {record.session === undefined ? null : <SessionSection session={record.session} paymentKey={key} />}
            {record.charge === undefined ? null : (
              <>
                <ChargeSection charge={record.charge} />
                <RefundsSection charge={record.charge} refunds={record.refunds} />
              </>
            )}
            {record.disputes.length === 0 ? null : <DisputesSection disputes={record.disputes} />}
            {record.intent !== undefined && can("webhook-endpoints:read") ? (
              <EventsSection paymentId={record.intent.id} onNews={query.reload} />
            ) : null}
          </>
        )}
      </Loaded>
    </Page>
  )
}
