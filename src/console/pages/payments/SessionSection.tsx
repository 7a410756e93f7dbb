import { useState } from "preact/hooks"
import { call } from "../../api/Call.ts"
import { Button } from "../../components/Button.tsx"
import { Copy, Id } from "../../components/Copy.tsx"
import { Confirm } from "../../components/Dialog.tsx"
import { Loaded } from "../../components/Loaded.tsx"
import { Money } from "../../components/Money.tsx"
import { Facts, Section } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import { invalidate, useQuery, useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { Metadata } from "./Metadata.tsx"
import type { CheckoutSession } from "./PaymentRecord.ts"
import { itemsAt, numberAt, textAt } from "./Reading.ts"
import { StatusBadge } from "./StatusBadge.tsx"
import { sessionStatus } from "./Statuses.ts"

/** The payer's answers to the session's custom fields. */
const answersOf = (session: CheckoutSession): ReadonlyArray<readonly [string, string]> =>
  itemsAt(session, "custom_fields").flatMap((field) => {
    const label = textAt(field, "label", "custom") ?? textAt(field, "key")
    const answer = ["text", "numeric", "dropdown"]
      .map((type) => textAt(field, type, "value"))
      .find((value) => value !== undefined)
    return label === undefined || answer === undefined ? [] : [[label, answer] as const]
  })

/** The API's limit for the line items of a session. */
const allLines = 100

const Lines = ({ session }: { readonly session: CheckoutSession }) => {
  const { environment } = useWorkspace()
  const query = useQuery(`${environment}/payments/lines/${session.id}`, (signal) =>
    call("checkoutSessions", "lineItems", { path: { id: session.id }, urlParams: { limit: allLines } }, { signal })
  )
  return (
    <Loaded query={query} lines={2}>
      {({ data }) => (
        <Table
          caption="What the session sells"
          head={["Item", { label: "Quantity", align: "end" }, { label: "Total", align: "end" }]}
          rows={data.map((line) => ({
            key: line.id,
            cells: [
              line.description ?? "–",
              line.quantity ?? "–",
              <Money key="total" amount={line.amount_total} currency={line.currency} />
            ]
          }))}
        />
      )}
    </Loaded>
  )
}

export interface SessionSectionProps {
  readonly session: CheckoutSession
  /** The key of the page's query, to invalidate it once the session has expired. */
  readonly paymentKey: string
}

/** A payment's checkout session: its items and, while it is open, its URL and a button to expire it. */
export const SessionSection = ({ paymentKey, session }: SessionSectionProps) => {
  const { can } = useWorkspace()
  const [isEnding, setEnding] = useState(false)
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
            {can("payments:write") ? (
              <Button small onClick={() => setEnding(true)}>
                End session
              </Button>
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
          [
            "Subscription",
            typeof session.subscription === "string" ? (
              <Id key="subscription" value={session.subscription} />
            ) : undefined
          ],
          ["Your reference", session.client_reference_id],
          ["Created", <Time key="created" at={session.created} />],
          ["Open until", isOpen && <Time key="until" at={numberAt(session, "expires_at")} />],
          ...answersOf(session)
        ]}
      />
      <Metadata of={session} />
      <Lines session={session} />
      {isEnding ? <EndSession session={session} paymentKey={paymentKey} onClose={() => setEnding(false)} /> : null}
    </Section>
  )
}

const EndSession = ({ onClose, paymentKey, session }: SessionSectionProps & { readonly onClose: () => void }) => {
  const { environment } = useWorkspace()
  const { busy, error, submit } = useSubmit(
    (idempotencyKey) => call("checkoutSessions", "expire", { path: { id: session.id } }, { idempotencyKey }),
    () => {
      toast("The session has ended")
      invalidate(paymentKey)
      invalidate(`${environment}/payments/sessions`)
      onClose()
    }
  )
  return (
    <Confirm
      title="End this session?"
      open
      danger
      confirmLabel="End session"
      busy={busy}
      error={error}
      onClose={onClose}
      onConfirm={submit}
    >
      <p>
        The payer's page says then that it has expired. Nothing was charged, and nothing can be paid there any more.
      </p>
    </Confirm>
  )
}
