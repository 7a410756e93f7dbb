import { Badge } from "../../components/Badge.tsx"
import { Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import { useWorkspace } from "../../state/Session.ts"
import { resultText } from "./attemptErrors.ts"
import { Countdown } from "./Countdown.tsx"
import { DeliveryState } from "./DeliveryState.tsx"
import { type Delivery, waitsToRetry } from "./timeline.ts"

interface DeliveryTableProps {
  readonly caption: string
  readonly deliveries: ReadonlyArray<Delivery>
  /** The destinations' names by id; undefined while loading. */
  readonly destinations: ReadonlyMap<string, string> | undefined
  /** What all rows share; hides that column. */
  readonly common?: "event" | "destination"
}

const nameOf = (destinations: ReadonlyMap<string, string> | undefined, id: string): string =>
  destinations === undefined ? "…" : (destinations.get(id) ?? "Deleted destination")

/** A table of deliveries, each row linking to its page. */
export const DeliveryTable = ({ caption, common, deliveries, destinations }: DeliveryTableProps) => {
  const { path } = useWorkspace()
  return (
    <Table
      caption={caption}
      head={[
        ...(common === "event" ? [] : ["Event"]),
        ...(common === "destination" ? [] : ["Destination"]),
        "State",
        "Last result",
        "Attempts",
        "Created"
      ]}
      rows={deliveries.map((delivery) => ({
        key: delivery.id,
        href: path(`/deliveries/${delivery.id}`),
        cells: [
          ...(common === "event"
            ? []
            : [
                <span class="delivery-type" key="type">
                  {delivery.type} {delivery.test ? <Badge tone="neutral">test</Badge> : null}
                </span>
              ]),
          ...(common === "destination" ? [] : [nameOf(destinations, delivery.endpointId)]),
          <DeliveryState delivery={delivery} key="state" />,
          resultText(delivery.lastErrorCode, delivery.lastHttpStatus) ?? "—",
          waitsToRetry(delivery) && delivery.nextAttemptAt !== null ? (
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
