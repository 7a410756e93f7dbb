import { Link, useParams } from "wouter-preact"
import { type AnswerOf, call } from "../../api/Call.ts"
import { Badge } from "../../components/Badge.tsx"
import { JsonView } from "../../components/Code.tsx"
import { Id } from "../../components/Copy.tsx"
import { Empty, Loaded } from "../../components/Loaded.tsx"
import { Money } from "../../components/Money.tsx"
import { Facts, Page, Section } from "../../components/Page.tsx"
import { Time } from "../../components/Time.tsx"
import { useQuery } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { DeliveryTable } from "../deliveries/DeliveryTable.tsx"
import { useDestinationNames } from "../destinations/useDestinations.ts"
import { happenedAt, moneyOf, paymentOf, providerEventOf } from "./eventSummary.ts"

type EventDetail = AnswerOf<"events", "get">

const Shown = ({ event }: { readonly event: EventDetail }) => {
  const { can, path } = useWorkspace()
  const names = useDestinationNames()
  const envelope = event.event
  const money = moneyOf(envelope)
  const payment = paymentOf(envelope)
  const provider = providerEventOf(envelope)
  return (
    <>
      <Section title="Event">
        <Facts
          items={[
            ["Type", <code key="type">{event.type}</code>],
            ["Amount", money && <Money {...money} key="amount" />],
            [
              "Payment",
              payment && (
                <span class="event-payment" key="payment">
                  {can("payments:read", "paymentIntents.get") && !event.test ? (
                    <Link href={path(`/payments/${payment}`)}>{payment}</Link>
                  ) : (
                    <code>{payment}</code>
                  )}
                  <Link href={`${path("/events")}?payment=${encodeURIComponent(payment)}`}>All its events</Link>
                </span>
              )
            ],
            ["Happened", <Time at={happenedAt(envelope)} exact key="happened" />],
            ["Received", <Time at={event.receivedAt} exact key="received" />],
            ["Event id", <Id value={event.id} full key="id" />],
            ["Provider’s event", provider && <Id value={provider} full key="provider" />]
          ]}
        />
      </Section>
      <Section title="Where it went">
        {event.deliveries.length === 0 ? (
          <Empty title="To no destination">
            No active destination subscribed to {event.type} with filters that this event passes. To send it to a newer
            destination, replay its time.
          </Empty>
        ) : (
          <DeliveryTable
            caption="Deliveries of this event, newest first"
            items={event.deliveries}
            destinations={names}
            common="event"
          />
        )}
      </Section>
      <Section title="Envelope" lead="The body as destinations get it, with line breaks that make it readable.">
        <JsonView value={envelope} />
      </Section>
    </>
  )
}

export default function Event() {
  const { path } = useWorkspace()
  const { id = "" } = useParams()
  const query = useQuery(`events/one/${id}`, (signal) => call("events", "get", { path: { id } }, { signal }), {
    pollMillis: 5000
  })
  return (
    <Page
      title={query.data?.type ?? "Event"}
      back={{ href: path("/events"), label: "Events" }}
      actions={query.data?.test === true ? <Badge tone="neutral">Test event</Badge> : null}
    >
      <Loaded query={query}>{(event) => <Shown event={event} />}</Loaded>
    </Page>
  )
}
