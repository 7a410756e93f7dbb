import { useState } from "preact/hooks"
import { useParams } from "wouter-preact"
import { capitalized, numberAt, plainWords, textAt } from "../../api/Reading.ts"
import { formatAmount } from "../../components/amounts.ts"
import { StatusBadge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Id } from "../../components/Copy.tsx"
import { Loaded } from "../../components/Loaded.tsx"
import { Money } from "../../components/Money.tsx"
import { Notice } from "../../components/Notice.tsx"
import { Facts, Page, Section } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import { useQuery } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { EventsSection } from "./EventsSection.tsx"
import { Metadata } from "./Metadata.tsx"
import { type Charge, type Dispute, type PaymentRecord, type Refund, readPayment } from "./PaymentRecord.ts"
import { RefundDialog } from "./RefundDialog.tsx"
import { SessionSection } from "./SessionSection.tsx"
import {
  chargeStatus,
  disputeStatus,
  methodOf,
  needsResponse,
  paymentStatus,
  refundableOf,
  refundReason,
  refundStatus,
  sessionStatus
} from "./Statuses.ts"

const expiryOf = (charge: Charge): string | undefined => {
  const month = numberAt(charge, "payment_method_details", "card", "exp_month")
  const year = numberAt(charge, "payment_method_details", "card", "exp_year")
  return month === undefined || year === undefined ? undefined : `${String(month).padStart(2, "0")}/${year}`
}

const riskOf = (charge: Charge): string | undefined => {
  const level = textAt(charge, "outcome", "risk_level")
  return level === undefined || level === "not_assessed" ? undefined : capitalized(plainWords(level))
}

const ChargeSection = ({ charge }: { readonly charge: Charge }) => {
  const movement = textAt(charge, "balance_transaction")
  return (
    <Section title="Charge">
      <Facts
        items={[
          ["Charge", <Id key="id" value={charge.id} />],
          ["Status", <StatusBadge key="status" status={chargeStatus(charge)} />],
          ["Amount", <Money key="amount" amount={charge.amount} currency={charge.currency} />],
          ["Method", methodOf(charge)],
          ["Card expires", expiryOf(charge)],
          ["Outcome", textAt(charge, "outcome", "seller_message")],
          ["Why it failed", textAt(charge, "failure_message")],
          ["Risk", riskOf(charge)],
          ["Balance transaction", movement === undefined ? undefined : <Id key="movement" value={movement} />],
          ["Created", <Time key="created" at={charge.created} />]
        ]}
      />
    </Section>
  )
}

const DisputesSection = ({ disputes }: { readonly disputes: ReadonlyArray<Dispute> }) => (
  <Section title="Disputes">
    {disputes.some(needsResponse) ? (
      <Notice tone="warning" title="The payer's bank asks for evidence">
        Answer in the provider's own dashboard before the time is up. Without an answer the dispute is lost.
      </Notice>
    ) : null}
    <Table
      caption="Disputes, newest first"
      items={disputes}
      columns={[
        { head: "Amount", cell: ({ amount, currency }) => <Money amount={amount} currency={currency} /> },
        { head: "Status", cell: (dispute) => <StatusBadge status={disputeStatus(dispute)} /> },
        { head: "Reason", cell: (dispute) => capitalized(plainWords(textAt(dispute, "reason") ?? "–")) },
        {
          head: "Evidence until",
          cell: (dispute) =>
            needsResponse(dispute) ? <Time at={numberAt(dispute, "evidence_details", "due_by")} /> : "–"
        },
        { head: "Dispute", cell: ({ id }) => <Id value={id} /> },
        { head: "Created", cell: ({ created }) => <Time at={created} /> }
      ]}
    />
  </Section>
)

/**
 * The payer, as far as the API tells: without the permission `customers:read` it sends null, and the page then does not
 * even show that something is missing.
 */
const payerOf = ({ charge, intent, session }: PaymentRecord) => {
  const first = (...found: ReadonlyArray<string | undefined>) => found.find((text) => text !== undefined)
  return {
    name: first(textAt(charge, "billing_details", "name"), textAt(session, "customer_details", "name")),
    email: first(
      textAt(charge, "billing_details", "email"),
      textAt(session, "customer_details", "email"),
      textAt(session, "customer_email"),
      textAt(intent, "receipt_email")
    ),
    phone: first(textAt(charge, "billing_details", "phone"), textAt(session, "customer_details", "phone"))
  }
}

const PaymentFacts = ({ record }: { readonly record: PaymentRecord }) => {
  const { charge, intent } = record
  if (intent === undefined) return null
  const payer = payerOf(record)
  const customer = textAt(intent, "customer")
  const refunded = charge?.amount_refunded ?? 0
  return (
    <Section title="Payment">
      <Facts
        items={[
          ["Payment", <Id key="id" value={intent.id} />],
          ["Created", <Time key="created" at={intent.created} />],
          ["Received", <Money key="received" amount={intent.amount_received} currency={intent.currency} />],
          ["Refunded", refunded > 0 && <Money key="refunded" amount={refunded} currency={intent.currency} />],
          ["Description", textAt(intent, "description")],
          ["On the bank statement", textAt(intent, "statement_descriptor")],
          ["Why the last attempt failed", textAt(intent, "last_payment_error", "message")],
          ["Canceled because", textAt(intent, "cancellation_reason")],
          ["Customer", customer === undefined ? undefined : <Id key="customer" value={customer} />],
          ["Name", payer.name],
          ["E-mail", payer.email],
          ["Phone", payer.phone]
        ]}
      />
      <Metadata of={intent} />
    </Section>
  )
}

const RefundsSection = ({ charge, refunds }: { readonly charge: Charge; readonly refunds: ReadonlyArray<Refund> }) => {
  const { can } = useWorkspace()
  const [isOpen, setOpen] = useState(false)
  const left = refundableOf(charge)
  const mayRefund = can("payments:write", "refunds.create") && left > 0
  if (refunds.length === 0 && !mayRefund) return null
  return (
    <Section title="Refunds" actions={mayRefund && <Button onClick={() => setOpen(true)}>Refund</Button>}>
      {refunds.length === 0 ? (
        <p class="quiet">Nothing was refunded yet.</p>
      ) : (
        <Table
          caption="Refunds, newest first"
          items={refunds}
          columns={[
            { head: "Amount", cell: ({ amount, currency }) => <Money amount={amount} currency={currency} /> },
            {
              head: "Status",
              cell: (refund) => (
                <>
                  <StatusBadge status={refundStatus(refund)} /> {textAt(refund, "failure_reason")}
                  <span class="quiet">{refundStatus(refund).meaning}</span>
                </>
              )
            },
            { head: "Reason", cell: (refund) => refundReason(refund) ?? "–" },
            { head: "Refund", cell: ({ id }) => <Id value={id} /> },
            { head: "Created", cell: ({ created }) => <Time at={created} /> }
          ]}
        />
      )}
      {isOpen ? <RefundDialog charge={charge} onClose={() => setOpen(false)} /> : null}
    </Section>
  )
}

const subjectOf = ({ charge, intent, session }: PaymentRecord) => {
  if (intent !== undefined) {
    return { amount: intent.amount, currency: intent.currency, status: paymentStatus(intent, charge) }
  }
  if (charge !== undefined) {
    return { amount: charge.amount, currency: charge.currency, status: chargeStatus(charge) }
  }
  return { amount: session?.amount_total, currency: session?.currency, status: sessionStatus(session) }
}

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

export default function Payment() {
  const { can, path } = useWorkspace()
  const { id = "" } = useParams<{ id: string }>()
  const query = useQuery(`payments/one/${id}`, (signal) => readPayment(id, signal))
  return (
    <Page title={titleOf(query.data)} back={{ href: path("/payments"), label: "Payments" }}>
      <Loaded query={query}>
        {(record) => (
          <>
            <Headline record={record} />
            <PaymentFacts record={record} />
            {record.session === undefined ? null : <SessionSection session={record.session} />}
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
