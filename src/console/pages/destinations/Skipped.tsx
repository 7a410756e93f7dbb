import { call } from "../../api/Call.ts"
import { ButtonLink } from "../../components/Button.tsx"
import { Empty, Pages } from "../../components/Loaded.tsx"
import { Section } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import { usePages } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { EventSummary } from "../events/EventSummary.tsx"
import type { Destination } from "./useDestinations.ts"

/** The events that matched a destination while it was paused. */
export const Skipped = ({ destination }: { readonly destination: Destination }) => {
  const { can, environment, path } = useWorkspace()
  const list = usePages(
    `${environment}/skipped/${destination.id}`,
    (after, signal) =>
      call(
        "endpoints",
        "skipped",
        {
          path: { id: destination.id },
          urlParams: { limit: 25, ...(after === undefined ? {} : { starting_after: after }) }
        },
        { signal }
      ),
    ({ eventId }) => eventId,
    { pollMillis: 15_000 }
  )
  return (
    <Section
      title="Skipped while paused"
      lead="Events that it would have got if it had been active. They have no delivery."
      actions={
        list.items.length > 0 && destination.active && can("webhook-endpoints:write") ? (
          <ButtonLink href={`${path(`/destinations/${destination.id}`)}?tab=again`} small>
            Replay their time
          </ButtonLink>
        ) : null
      }
    >
      <Pages
        list={list}
        empty={<Empty title="Nothing was skipped">What matches while it is paused is listed here.</Empty>}
      >
        {(items) => (
          <Table
            caption="Events that were skipped, newest first"
            head={["Event", "About", "Skipped"]}
            rows={items.map(({ createdAt, event, eventId, type }) => ({
              key: eventId,
              href: path(`/events/${eventId}`),
              cells: [type, <EventSummary event={event} key="about" />, <Time at={createdAt} key="at" />]
            }))}
          />
        )}
      </Pages>
    </Section>
  )
}
