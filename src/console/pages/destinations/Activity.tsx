import { Link } from "wouter-preact"
import { call } from "../../api/Call.ts"
import { Empty, Pages } from "../../components/Loaded.tsx"
import { Section } from "../../components/Page.tsx"
import { usePages } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { DeliveryTable } from "../deliveries/DeliveryTable.tsx"
import { historyPath } from "../deliveries/historyFilters.ts"
import { SendTest } from "./SendTest.tsx"
import type { Destination } from "./useDestinations.ts"

/** A destination's activity: a test event, and its newest deliveries as they arrive. */
export const Activity = ({ destination }: { readonly destination: Destination }) => {
  const { can, environment, path } = useWorkspace()
  const list = usePages(
    `${environment}/deliveries/of/${destination.id}`,
    (after, signal) =>
      call(
        "deliveries",
        "list",
        {
          path: { id: destination.id },
          urlParams: { limit: 5, ...(after === undefined ? {} : { starting_after: after }) }
        },
        { signal }
      ),
    ({ id }) => id,
    { pollMillis: 5000 }
  )
  return (
    <>
      {can("webhook-endpoints:write") ? <SendTest destination={destination} /> : null}
      <Section
        title="Newest deliveries"
        actions={<Link href={path(historyPath({ destination: destination.id }))}>All of them, with filters</Link>}
      >
        <Pages
          list={list}
          empty={
            <Empty title="Nothing was sent to it yet">
              A delivery appears here as soon as an event happens that it subscribes to.
            </Empty>
          }
        >
          {(items) => (
            <DeliveryTable
              caption={`Deliveries to ${destination.name}, newest first`}
              deliveries={items}
              destinations={undefined}
              common="destination"
            />
          )}
        </Pages>
      </Section>
    </>
  )
}
