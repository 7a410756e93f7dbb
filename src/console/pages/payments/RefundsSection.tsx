import { useState } from "preact/hooks"
import { Button } from "../../components/Button.tsx"
import { Id } from "../../components/Copy.tsx"
import { Money } from "../../components/Money.tsx"
import { Section } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import { useWorkspace } from "../../state/Session.ts"
import type { Charge, Refund } from "./PaymentRecord.ts"
import { textAt } from "./Reading.ts"
import { RefundDialog } from "./RefundDialog.tsx"
import { StatusBadge } from "./StatusBadge.tsx"
import { refundableOf, refundReason, refundStatus } from "./Statuses.ts"

export interface RefundsSectionProps {
  readonly charge: Charge
  readonly refunds: ReadonlyArray<Refund>
}

/** A payment's refunds, and a button to refund more. */
export const RefundsSection = ({ charge, refunds }: RefundsSectionProps) => {
  const { can } = useWorkspace()
  const [isOpen, setOpen] = useState(false)
  const left = refundableOf(charge)
  const mayRefund = can("payments:write") && left > 0
  if (refunds.length === 0 && !mayRefund) return null
  return (
    <Section title="Refunds" actions={mayRefund && <Button onClick={() => setOpen(true)}>Refund</Button>}>
      {refunds.length === 0 ? (
        <p class="quiet">Nothing was refunded yet.</p>
      ) : (
        <Table
          caption="Refunds, newest first"
          head={["Amount", "Status", "Reason", "Refund", "Created"]}
          rows={refunds.map((refund) => ({
            key: refund.id,
            cells: [
              <Money key="amount" amount={refund.amount} currency={refund.currency} />,
              <span key="status">
                <StatusBadge status={refundStatus(refund)} /> {textAt(refund, "failure_reason")}
                <span class="quiet">{refundStatus(refund).meaning}</span>
              </span>,
              refundReason(refund) ?? "–",
              <Id key="id" value={refund.id} />,
              <Time key="created" at={refund.created} />
            ]
          }))}
        />
      )}
      {isOpen ? <RefundDialog charge={charge} onClose={() => setOpen(false)} /> : null}
    </Section>
  )
}
