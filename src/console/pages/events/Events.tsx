import { call } from "../../api/Call.ts"
import { Filters } from "../../components/Filters.tsx"
import { Empty, Pages } from "../../components/Loaded.tsx"
import { Page } from "../../components/Page.tsx"
import { usePages } from "../../state/Query.ts"
import { useUrlFilters } from "../../state/UrlState.ts"
import { TimeFields } from "../deliveries/TimeFields.tsx"
import { EventTable } from "./EventTable.tsx"
import { EventTypeField } from "./EventTypeField.tsx"
import { eventFilterNames, eventQuery } from "./eventFilters.ts"

export default function Events() {
  const { field, filters, onClear } = useUrlFilters(...eventFilterNames)
  const query = eventQuery(filters)
  const list = usePages(
    `events/list/${JSON.stringify(query)}`,
    (page, signal) => call("events", "list", { urlParams: { ...query, ...page } }, { signal }),
    { pollMillis: 10_000 }
  )
  return (
    <Page
      title="Events"
      lead="Everything that happened in this workspace, whether or not a destination takes it. Kept for 30 days."
    >
      <Filters onClear={onClear}>
        <EventTypeField {...field("type")} />
        <TimeFields field={field} />
      </Filters>
      {filters.payment === "" ? null : (
        <p class="quiet">
          Only events of the payment <code>{filters.payment}</code>.
        </p>
      )}
      <Pages
        list={list}
        empty={
          onClear ? (
            <Empty title="No event matches">Widen the filters, or clear them to see all events.</Empty>
          ) : (
            <Empty title="No events yet">
              Events come from the connected account: pay a checkout, and its events appear here automatically.
            </Empty>
          )
        }
      >
        {(items) => <EventTable caption="Events, newest first" items={items} />}
      </Pages>
    </Page>
  )
}
