import { useEffect, useRef, useState } from "preact/hooks"
import { Link, useParams } from "wouter-preact"
import { type AnswerOf, call } from "../../api/Call.ts"
import { capitalized, itemsAt, numberAt, plainWords, textAt } from "../../api/Reading.ts"
import { formatAmount } from "../../components/amounts.ts"
import { Badge, StatusBadge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Copy, Id } from "../../components/Copy.tsx"
import { Confirm, ConfirmButton } from "../../components/Dialog.tsx"
import { SelectField } from "../../components/forms/Field.tsx"
import { MoneyField } from "../../components/forms/MoneyField.tsx"
import { filled } from "../../components/forms/Reader.ts"
import { Loaded, Pages } from "../../components/Loaded.tsx"
import { Money } from "../../components/Money.tsx"
import { ErrorNote, Notice } from "../../components/Notice.tsx"
import { Facts, Page, Section } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import { usePages, useQuery, useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { DeliveryState } from "../deliveries/DeliveryState.tsx"
import { useDestinationNames } from "../destinations/useDestinations.ts"
import { Metadata } from "./Metadata.tsx"
import {
  type Charge,
  type CheckoutSession,
  type Dispute,
  type PaymentRecord,
  type Refund,
  readPayment
} from "./PaymentRecord.ts"
import {
  chargeStatus,
  disputeStatus,
  methodOf,
  needsResponse,
  paymentStatus,
  refundableOf,
  refundReason,
  refundReasons,
  refundStatus,
  sessionStatus
} from "./Statuses.ts"

type StoredDelivery = AnswerOf<"events", "get">["deliveries"][number]
type StoredEvent = AnswerOf<"events", "list">["data"][number]

const pollMillis = 4000

/** Events per page: each one needs a request for its deliveries, and a payment rarely has more. */
const pageSize = 10

const EventsSection = ({
  onNews,
  paymentId
}: {
  readonly paymentId: string
  /** Called when an event arrives while the page is open, which means that the payment has changed. */
  readonly onNews: () => void
}) => {
  const list = usePages<StoredEvent>(
    `events/of-payment/${paymentId}`,
    (page, signal) => call("events", "list", { urlParams: { payment_id: paymentId, ...page } }, { signal }),
    { limit: pageSize, pollMillis }
  )
  const newest = list.items[0]?.id
  const seen = useRef<{ id: string | undefined } | undefined>(undefined)
  useEffect(() => {
    if (list.loading) return
    if (seen.current !== undefined && seen.current.id !== newest) onNews()
    seen.current = { id: newest }
  }, [list.loading, newest, onNews])
  return (
    <Section title="Events and where they went">
      <Pages
        list={list}
        empty={
          <p class="quiet">
            No event has arrived yet. The provider reports what happens to a payment within seconds; this page shows it
            by itself.
          </p>
        }
      >
        {(events) => (
          <ol class="payment-events">
            {events.map((event) => (
              <PaymentEvent key={event.id} event={event} />
            ))}
          </ol>
        )}
      </Pages>
    </Section>
  )
}

const PaymentEvent = ({ event }: { readonly event: StoredEvent }) => {
  const { path } = useWorkspace()
  const names = useDestinationNames()
  const [isMoving, setMoving] = useState(true)
  const query = useQuery(
    `events/one/${event.id}`,
    (signal) => call("events", "get", { path: { id: event.id } }, { signal }),
    isMoving ? { pollMillis } : {}
  )
  const deliveries = query.data?.deliveries
  // A delivered or failed delivery changes only if someone re-sends it on another page
  const isSettled = deliveries?.every(({ state }) => state !== "queued") === true && !isRecent(event.receivedAt)
  useEffect(() => setMoving(!isSettled), [isSettled])
  return (
    <li>
      <div class="payment-event">
        <Link href={path(`/events/${event.id}`)} className="payment-event-type">
          {event.type}
        </Link>
        {event.test ? <Badge tone="info">Test</Badge> : null}
        <Time at={event.receivedAt} relative />
      </div>
      {deliveries === undefined && query.error !== undefined ? (
        <ErrorNote error={query.error} retry={query.reload} />
      ) : null}
      {deliveries?.length === 0 ? <p class="quiet">Sent nowhere: no destination listens for it.</p> : null}
      {deliveries === undefined || deliveries.length === 0 ? null : (
        <ul class="payment-deliveries">
          {deliveries.map((delivery) => (
            <li key={delivery.id}>
              <Link href={path(`/deliveries/${delivery.id}`)}>
                {names?.get(delivery.endpointId) ?? (names === undefined ? "Delivery" : "Deleted destination")}
              </Link>
              <DeliveryState delivery={delivery} />
              <span class="quiet">{attemptsOf(delivery)}</span>
            </li>
          ))}
        </ul>
      )}
    </li>
  )
}

/** Whether an event is so recent that its deliveries may not exist yet. */
const isRecent = (receivedAt: string): boolean => Date.now() - Date.parse(receivedAt) < 60_000

const attemptsOf = ({ attemptCount, lastHttpStatus }: StoredDelivery): string => {
  const attempts = attemptCount === 1 ? "1 attempt" : `${attemptCount} attempts`
  return lastHttpStatus === null ? attempts : `${attempts}, answered ${lastHttpStatus}`
}

const answersOf = (session: CheckoutSession): ReadonlyArray<readonly [string, string]> =>
  itemsAt(session, "custom_fields").flatMap((field) => {
    const label = textAt(field, "label", "custom") ?? textAt(field, "key")
    const answer = ["text", "numeric", "dropdown"]
      .map((type) => textAt(field, type, "value"))
      .find((value) => value !== undefined)
    return label === undefined || answer === undefined ? [] : [[label, answer] as const]
  })

const allLines = 100

const Lines = ({ session }: { readonly session: CheckoutSession }) => {
  const query = useQuery(`payments/lines/${session.id}`, (signal) =>
    call("checkoutSessions", "lineItems", { path: { id: session.id }, urlParams: { limit: allLines } }, { signal })
  )
  return (
    <Loaded query={query} lines={2}>
      {({ data }) => (
        <Table
          caption="Items of the session"
          items={data}
          columns={[
            { head: "Item", cell: ({ description }) => description ?? "–" },
            { head: "Quantity", align: "end", cell: ({ quantity }) => quantity ?? "–" },
            {
              head: "Total",
              align: "end",
              cell: ({ amount_total: total, currency }) => <Money amount={total} currency={currency} />
            }
          ]}
        />
      )}
    </Loaded>
  )
}

/** A payment's checkout session: its items and, while it is open, its URL and a button to expire it. */
const SessionSection = ({ session }: { readonly session: CheckoutSession }) => {
  const { can } = useWorkspace()
  const isOpen = session.status === "open"
  const discount = numberAt(session, "total_details", "amount_discount") ?? 0
  const status = sessionStatus(session)
  return (
    <Section
      title="Checkout session"
      actions={
        isOpen && (
          <>
            {typeof session.url === "string" ? <Copy text={session.url} label="Copy the payer's link" /> : null}
            {can("payments:write", "checkoutSessions.expire") ? (
              <ConfirmButton
                button="End session"
                small
                title="End this session?"
                danger
                action={(idempotencyKey) =>
                  call("checkoutSessions", "expire", { path: { id: session.id } }, { idempotencyKey })
                }
                onDone={() => toast("The session has ended")}
              >
                <p>
                  The payer's page then says that it has expired. Nothing was charged, and nothing can be paid there.
                </p>
              </ConfirmButton>
            ) : null}
          </>
        )
      }
    >
      <Facts
        items={[
          ["Session", <Id key="id" value={session.id} />],
          ["Status", <StatusBadge key="status" status={status} />],
          ["Total", <Money key="total" amount={session.amount_total} currency={session.currency} />],
          ["Discount", discount > 0 && <Money key="discount" amount={discount} currency={session.currency} />],
          ["Sells", session.mode === "subscription" ? "A subscription" : undefined],
          ["Subscription", typeof session.subscription === "string" && <Id key="id" value={session.subscription} />],
          ["Your reference", session.client_reference_id],
          ["Created", <Time key="created" at={session.created} />],
          ["Open until", isOpen && <Time key="until" at={numberAt(session, "expires_at")} />],
          ...answersOf(session)
        ]}
      />
      <Metadata of={session} />
      <Lines session={session} />
    </Section>
  )
}

const reasons = [{ value: "", label: "No reason given" }, ...refundReasons] as const

type Reason = (typeof reasons)[number]["value"]

const problemWith = (amount: number | undefined, left: number, currency: string): string | undefined => {
  if (amount === undefined) return "Write how much to refund."
  if (amount < 1) return "Refund more than nothing."
  return amount > left ? `At most ${formatAmount(left, currency)} can still be refunded.` : undefined
}

const RefundDialog = ({ charge, onClose }: { readonly charge: Charge; readonly onClose: () => void }) => {
  const currency = charge.currency ?? ""
  const left = refundableOf(charge)
  const [amount, setAmount] = useState<number | undefined>(left)
  const [reason, setReason] = useState<Reason>("")
  const [isChecked, setChecked] = useState(false)
  const problem = problemWith(amount, left, currency)
  const submission = useSubmit(
    (idempotencyKey) => {
      const payload = { charge: charge.id, ...filled({ amount }), ...(reason === "" ? {} : { reason }) }
      return call("refunds", "create", { payload }, { idempotencyKey })
    },
    (refund) => {
      const given = formatAmount(refund.amount ?? 0, refund.currency ?? currency)
      toast(refund.status === "succeeded" ? `${given} refunded` : `${given} on the way to the payer`)
      onClose()
    },
    `refunds/${charge.id}`
  )
  return (
    <Confirm
      title="Refund this payment"
      danger
      typed="REFUND"
      confirmLabel={problem === undefined ? `Refund ${formatAmount(amount ?? 0, currency)}` : "Refund"}
      submission={submission}
      onClose={onClose}
      onConfirm={() => {
        setChecked(true)
        // NaN, for unreadable text, is neither too little nor too much
        if (problem === undefined && Number.isInteger(amount)) submission.submit()
      }}
    >
      <p>
        The money goes back to the payer, by the way in which it was paid. A refund can't be taken back, and the
        provider may keep its fee. Destinations that listen for it get <code>payment.refunded</code>. If the refund
        fails later, owners and admins get a mail.
      </p>
      <MoneyField
        name="amount"
        label="Amount"
        value={amount}
        currency={currency}
        onChange={setAmount}
        hint={`${formatAmount(left, currency)} can still be refunded.`}
        problem={isChecked || (amount ?? 0) > left ? problem : undefined}
      />
      <SelectField name="reason" label="Reason" value={reason} onChange={setReason} options={reasons} />
    </Confirm>
  )
}

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
