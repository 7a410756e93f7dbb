import { useEffect, useRef, useState } from "preact/hooks"
import { Link } from "wouter-preact"
import { type AnswerOf, call } from "../../api/Call.ts"
import { Badge } from "../../components/Badge.tsx"
import { Pages } from "../../components/Loaded.tsx"
import { ErrorNote } from "../../components/Notice.tsx"
import { Section } from "../../components/Page.tsx"
import { Time } from "../../components/Time.tsx"
import { usePages, useQuery } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { DeliveryState } from "../deliveries/DeliveryState.tsx"
import { useDestinationNames } from "../destinations/useDestinations.ts"

type StoredDelivery = AnswerOf<"events", "get">["deliveries"][number]
type StoredEvent = AnswerOf<"events", "list">["data"][number]

const pollMillis = 4000

/** Events per page: each one needs a request for its deliveries, and a payment rarely has more. */
const pageSize = 10

export const EventsSection = ({
  onNews,
  paymentId
}: {
  readonly paymentId: string
  /** Called when an event arrives while the page is open, which means that the payment has changed. */
  readonly onNews: () => void
}) => {
  const list = usePages<StoredEvent>(
    `events/of-payment/${paymentId}`,
    (page, signal) => call("events", "list", { urlParams: { payment_id: paymentId, ...page } }, { signal }),
    { limit: pageSize, pollMillis }
  )
  const newest = list.items[0]?.id
  const seen = useRef<{ id: string | undefined } | undefined>(undefined)
  useEffect(() => {
    if (list.loading) return
    if (seen.current !== undefined && seen.current.id !== newest) onNews()
    seen.current = { id: newest }
  }, [list.loading, newest, onNews])
  return (
    <Section title="Events and where they went">
      <Pages
        list={list}
        empty={
          <p class="quiet">
            No event has arrived yet. The provider reports what happens to a payment within seconds; this page shows it
            by itself.
          </p>
        }
      >
        {(events) => (
          <ol class="payment-events">
            {events.map((event) => (
              <PaymentEvent key={event.id} event={event} />
            ))}
          </ol>
        )}
      </Pages>
    </Section>
  )
}

const PaymentEvent = ({ event }: { readonly event: StoredEvent }) => {
  const { path } = useWorkspace()
  const names = useDestinationNames()
  const [isMoving, setMoving] = useState(true)
  const query = useQuery(
    `events/one/${event.id}`,
    (signal) => call("events", "get", { path: { id: event.id } }, { signal }),
    isMoving ? { pollMillis } : {}
  )
  const deliveries = query.data?.deliveries
  // A delivered or failed delivery changes only if someone re-sends it on another page
  const isSettled = deliveries?.every(({ state }) => state !== "queued") === true && !isRecent(event.receivedAt)
  useEffect(() => setMoving(!isSettled), [isSettled])
  return (
    <li>
      <div class="payment-event">
        <Link href={path(`/events/${event.id}`)} className="payment-event-type">
          {event.type}
        </Link>
        {event.test ? <Badge tone="info">Test</Badge> : null}
        <Time at={event.receivedAt} relative />
      </div>
      {deliveries === undefined && query.error !== undefined ? (
        <ErrorNote error={query.error} retry={query.reload} />
      ) : null}
      {deliveries?.length === 0 ? <p class="quiet">Sent nowhere: no destination listens for it.</p> : null}
      {deliveries === undefined || deliveries.length === 0 ? null : (
        <ul class="payment-deliveries">
          {deliveries.map((delivery) => (
            <li key={delivery.id}>
              <Link href={path(`/deliveries/${delivery.id}`)}>
                {names?.get(delivery.endpointId) ?? (names === undefined ? "Delivery" : "Deleted destination")}
              </Link>
              <DeliveryState delivery={delivery} />
              <span class="quiet">{attemptsOf(delivery)}</span>
            </li>
          ))}
        </ul>
      )}
    </li>
  )
}

/** Whether an event is so recent that its deliveries may not exist yet. */
const isRecent = (receivedAt: string): boolean => Date.now() - Date.parse(receivedAt) < 60_000

const attemptsOf = ({ attemptCount, lastHttpStatus }: StoredDelivery): string => {
  const attempts = attemptCount === 1 ? "1 attempt" : `${attemptCount} attempts`
  return lastHttpStatus === null ? attempts : `${attempts}, answered ${lastHttpStatus}`
}
