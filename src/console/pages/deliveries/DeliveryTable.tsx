import { Link } from "wouter-preact"
import { Badge } from "../../components/Badge.tsx"
import { Money } from "../../components/Money.tsx"
import { Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import { useWorkspace } from "../../state/Session.ts"
import { type DestinationNames, nameOf } from "../destinations/useDestinations.ts"
import { resultText } from "./attemptErrors.ts"
import { Countdown } from "./Countdown.tsx"
import { DeliveryState } from "./DeliveryState.tsx"
import { type Delivery, resendOf, waitsToRetry } from "./timeline.ts"

interface DeliveryTableProps {
  readonly caption: string
  readonly items: ReadonlyArray<Delivery>
  readonly destinations?: DestinationNames
  /** What all rows share; hides that column. */
  readonly common?: "event" | "destination" | undefined
  /** The failed deliveries that are chosen for a re-send; absent if the reader can't choose any. */
  readonly selection?: Selection | undefined
}

export interface Selection {
  readonly chosen: ReadonlySet<string>
  readonly onChange: (chosen: ReadonlySet<string>) => void
}

const shortId = (id: string): string => (id.length > 14 ? `${id.slice(0, 13)}…` : id)

const toggled = (chosen: ReadonlySet<string>, id: string): ReadonlySet<string> => {
  const next = new Set(chosen)
  if (!next.delete(id)) next.add(id)
  return next
}

const About = ({ amount, currency, paymentId, test }: Delivery) => {
  const { can, path } = useWorkspace()
  return (
    <span class="event-summary">
      {amount === null ? null : <Money amount={amount} currency={currency} />}
      {paymentId === null ? null : test || !can("payments:read", "paymentIntents.get") ? (
        <code>{shortId(paymentId)}</code>
      ) : (
        <Link href={path(`/payments/${paymentId}`)} title={paymentId}>
          {shortId(paymentId)}
        </Link>
      )}
    </span>
  )
}

const LastResult = (delivery: Delivery) => (
  <>
    {resultText(delivery.lastErrorCode, delivery.lastHttpStatus) ?? "—"}{" "}
    <span class="quiet">
      ({delivery.attemptCount === 1 ? "1 attempt" : `${delivery.attemptCount} attempts`}
      {waitsToRetry(delivery) && delivery.nextAttemptAt !== null ? (
        <>
          , next <Countdown to={delivery.nextAttemptAt} />
        </>
      ) : null}
      )
    </span>
  </>
)

export const DeliveryTable = ({ caption, common, destinations, items, selection }: DeliveryTableProps) => {
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
        common !== "event" && { head: "About", cell: (delivery) => <About {...delivery} /> },
        { head: "State", cell: (delivery) => <DeliveryState delivery={delivery} /> },
        { head: "Last result", cell: LastResult },
        { head: "Created", cell: ({ createdAt }) => <Time at={createdAt} /> },
        selection !== undefined && {
          head: "Choose",
          hidden: true,
          cell: (delivery) =>
            resendOf(delivery, Date.now()).allowed ? (
              <input
                type="checkbox"
                aria-label={`Choose the delivery of ${delivery.type} ${delivery.id}`}
                checked={selection.chosen.has(delivery.id)}
                onChange={() => selection.onChange(toggled(selection.chosen, delivery.id))}
              />
            ) : null
        }
      ]}
    />
  )
}
