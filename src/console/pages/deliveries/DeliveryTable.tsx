import { Badge } from "../../components/Badge.tsx"
import { Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import { useWorkspace } from "../../state/Session.ts"
import { resultText } from "./attemptErrors.ts"
import { Countdown } from "./Countdown.tsx"
import { DeliveryState } from "./DeliveryState.tsx"
import type { Delivery } from "./timeline.ts"

interface DeliveryTableProps {
  readonly caption: string
  readonly deliveries: ReadonlyArray<Delivery>
  /** The destinations' names by id; without them the column is left out. */
  readonly destinations?: ReadonlyMap<string, string> | undefined
}

/** Deliveries, each row leading to its page. */
export const DeliveryTable = ({ caption, deliveries, destinations }: DeliveryTableProps) => {
  const { path } = useWorkspace()
  return (
    <Table
      caption={caption}
      head={[
        "Event",
        ...(destinations === undefined ? [] : ["Destination"]),
        "State",
        "Last result",
        "Attempts",
        "Created"
      ]}
      rows={deliveries.map((delivery) => ({
        key: delivery.id,
        href: path(`/deliveries/${delivery.id}`),
        cells: [
          <span class="delivery-type" key="type">
            {delivery.type} {delivery.test ? <Badge tone="neutral">test</Badge> : null}
          </span>,
          ...(destinations === undefined
            ? []
            : [<span key="destination">{destinations.get(delivery.endpointId) ?? "Deleted destination"}</span>]),
          <DeliveryState delivery={delivery} key="state" />,
          resultText(delivery.lastErrorCode, delivery.lastHttpStatus) ?? "—",
          delivery.state === "queued" && delivery.nextAttemptAt !== null ? (
            <span key="attempts">
              {delivery.attemptCount}, next <Countdown to={delivery.nextAttemptAt} />
            </span>
          ) : (
            String(delivery.attemptCount)
          ),
          <Time at={delivery.createdAt} key="created" />
        ]
      }))}
    />
  )
}
