import { Id } from "../../components/Copy.tsx"
import { Money } from "../../components/Money.tsx"
import { Notice } from "../../components/Notice.tsx"
import { Section } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import type { Dispute } from "./PaymentRecord.ts"
import { capitalized, numberAt, plainWords, textAt } from "./Reading.ts"
import { StatusBadge } from "./StatusBadge.tsx"
import { disputeStatus, needsResponse } from "./Statuses.ts"

/** A payment's disputes, with the deadlines for a response. */
export const DisputesSection = ({ disputes }: { readonly disputes: ReadonlyArray<Dispute> }) => (
  <Section title="Disputes">
    {disputes.some(needsResponse) ? (
      <Notice tone="warning" title="The payer's bank asks for evidence">
        Answer in the provider's own dashboard before the time is up. Without an answer the dispute is lost.
      </Notice>
    ) : null}
    <Table
      caption="Disputes, newest first"
      head={["Amount", "Status", "Reason", "Evidence until", "Dispute", "Created"]}
      rows={disputes.map((dispute) => {
        const reason = textAt(dispute, "reason")
        const until = numberAt(dispute, "evidence_details", "due_by")
        return {
          key: dispute.id,
          cells: [
            <Money key="amount" amount={dispute.amount} currency={dispute.currency} />,
            <StatusBadge key="status" status={disputeStatus(dispute)} />,
            reason === undefined ? "–" : capitalized(plainWords(reason)),
            until === undefined || !needsResponse(dispute) ? "–" : <Time key="until" at={until} />,
            <Id key="id" value={dispute.id} />,
            <Time key="created" at={dispute.created} />
          ]
        }
      })}
    />
  </Section>
)
