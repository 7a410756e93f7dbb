import { Badge } from "../../components/Badge.tsx"
import { Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import { useWorkspace } from "../../state/Session.ts"
import { nameOf } from "../destinations/useDestinations.ts"
import { resultText } from "./attemptErrors.ts"
import { Countdown } from "./Countdown.tsx"
import { DeliveryState } from "./DeliveryState.tsx"
import { type Delivery, waitsToRetry } from "./timeline.ts"

interface DeliveryTableProps {
  readonly caption: string
  readonly items: ReadonlyArray<Delivery>
  readonly destinations: ReadonlyMap<string, string> | undefined
  /** What all rows share; hides that column. */
  readonly common?: "event" | "destination" | undefined
}

export const DeliveryTable = ({ caption, common, destinations, items }: DeliveryTableProps) => {
  const { path } = useWorkspace()
  return (
    <Table
      caption={caption}
      items={items}
      href={({ id }) => path(`/deliveries/${id}`)}
      columns={[
        common !== "event" && {
          head: "Event",
          cell: ({ test, type }) => (
            <span class="delivery-type">
              {type} {test ? <Badge tone="neutral">test</Badge> : null}
            </span>
          )
        },
        common !== "destination" && {
          head: "Destination",
          cell: ({ endpointId }) => nameOf(destinations, endpointId)
        },
        { head: "State", cell: (delivery) => <DeliveryState delivery={delivery} /> },
        {
          head: "Last result",
          cell: ({ lastErrorCode, lastHttpStatus }) => resultText(lastErrorCode, lastHttpStatus) ?? "—"
        },
        {
          head: "Attempts",
          cell: (delivery) =>
            waitsToRetry(delivery) && delivery.nextAttemptAt !== null ? (
              <>
                {delivery.attemptCount}, next <Countdown to={delivery.nextAttemptAt} />
              </>
            ) : (
              String(delivery.attemptCount)
            )
        },
        { head: "Created", cell: ({ createdAt }) => <Time at={createdAt} /> }
      ]}
    />
  )
}
