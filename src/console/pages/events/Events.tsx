import { useState } from "preact/hooks"
import { useLocation } from "wouter-preact"
import { call } from "../../api/Call.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { TextField } from "../../components/Field.tsx"
import { Filters } from "../../components/Filters.tsx"
import { Empty, PagedTable } from "../../components/Loaded.tsx"
import { Page } from "../../components/Page.tsx"
import { Time } from "../../components/Time.tsx"
import { usePages } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { useUrlState } from "../../state/UrlState.ts"
import { TimeFields } from "../deliveries/TimeFields.tsx"
import { EventSummary } from "./EventSummary.tsx"
import { EventTypeField } from "./EventTypeField.tsx"
import { eventFilterNames, eventQuery, find, noEventFilters } from "./eventFilters.ts"

/** Finds by id: an event's id opens its page, a payment's id filters the list. */
const Find = ({ onPayment }: { readonly onPayment: (id: string) => void }) => {
  const { path } = useWorkspace()
  const [, navigate] = useLocation()
  const [written, setWritten] = useState("")
  const [problem, setProblem] = useState<string | undefined>(undefined)
  const go = () => {
    const found = find(written)
    setProblem(found.kind === "nothing" ? found.problem : undefined)
    if (found.kind === "event") navigate(path(`/events/${found.id}`))
    if (found.kind === "payment") onPayment(found.id)
  }
  return (
    <form
      class="inline-form find"
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        go()
      }}
    >
      <TextField
        name="find"
        label="Event or payment id"
        placeholder="svc_evt_… or pi_…"
        type="search"
        value={written}
        onChange={setWritten}
        maxLength={255}
        problem={problem}
        monospace
      />
      <Button type="submit">Find</Button>
    </form>
  )
}

export default function Events() {
  const { environment, path } = useWorkspace()
  const [filters, setFilters] = useUrlState(...eventFilterNames)
  const query = eventQuery(filters)
  const filtered = eventFilterNames.some((name) => filters[name] !== "")
  const list = usePages(
    `${environment}/events/list/${JSON.stringify(query)}`,
    (page, signal) => call("events", "list", { urlParams: { ...query, ...page } }, { signal }),
    { pollMillis: 10_000 }
  )
  return (
    <Page
      title="Events"
      lead="Everything that happened in this workspace, whether or not a destination takes it. Kept for 30 days."
    >
      <Find onPayment={(payment) => setFilters({ payment })} />
      <Filters onClear={filtered ? () => setFilters(noEventFilters) : undefined}>
        <EventTypeField value={filters.type} onChange={(type) => setFilters({ type })} />
        <TimeFields from={filters.from} to={filters.to} onChange={setFilters} />
      </Filters>
      {filters.payment === "" ? null : (
        <p class="quiet">
          Only events of the payment <code>{filters.payment}</code>.
        </p>
      )}
      <PagedTable
        list={list}
        empty={
          filtered ? (
            <Empty title="No event matches">Widen the filters, or clear them to see all events.</Empty>
          ) : (
            <Empty title="No events yet">
              Events come from the connected account: pay a checkout, and its events appear here automatically.
            </Empty>
          )
        }
        caption="Events, newest first"
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
    </Page>
  )
}
