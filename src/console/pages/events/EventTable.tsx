import type { AnswerOf } from "../../api/Types.ts"
import { Badge } from "../../components/Badge.tsx"
import { Money } from "../../components/Money.tsx"
import { Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import { useWorkspace } from "../../state/Session.ts"
import { moneyOf, subjectOf } from "./eventSummary.ts"

export const EventSummary = ({ event }: { readonly event: unknown }) => {
  const money = moneyOf(event)
  const subject = subjectOf(event)
  return (
    <span class="event-summary">
      {money === undefined ? null : <Money {...money} />}
      {subject === undefined ? null : (
        <code title={subject}>{subject.length > 24 ? `${subject.slice(0, 23)}…` : subject}</code>
      )}
    </span>
  )
}

interface EventTableProps {
  readonly caption: string
  readonly items: AnswerOf<"events", "list">["data"]
}

export const EventTable = (props: EventTableProps) => {
  const { path } = useWorkspace()
  return (
    <Table
      {...props}
      href={({ id }) => path(`/events/${id}`)}
      columns={[
        {
          head: "Event",
          cell: ({ test, type }) => (
            <>
              {type} {test ? <Badge tone="neutral">test</Badge> : null}
            </>
          )
        },
        { head: "About", cell: ({ event }) => <EventSummary event={event} /> },
        { head: "Id", cell: ({ id }) => <code title={id}>{id.slice(0, 16)}…</code> },
        { head: "Received", cell: ({ receivedAt }) => <Time at={receivedAt} /> }
      ]}
    />
  )
}
