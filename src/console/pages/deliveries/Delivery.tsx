import { Link, useParams } from "wouter-preact"
import { call } from "../../api/Call.ts"
import { Badge } from "../../components/Badge.tsx"
import { JsonView } from "../../components/Code.tsx"
import { Id } from "../../components/Copy.tsx"
import { ConfirmButton } from "../../components/Dialog.tsx"
import { Loaded } from "../../components/Loaded.tsx"
import { Notice } from "../../components/Notice.tsx"
import { Facts, Page, Section } from "../../components/Page.tsx"
import { Time } from "../../components/Time.tsx"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { nameOf, useDestinationNames } from "../destinations/useDestinations.ts"
import { AttemptTimeline } from "./AttemptTimeline.tsx"
import { meaningOf } from "./attemptErrors.ts"
import { Countdown } from "./Countdown.tsx"
import { DeliveryState } from "./DeliveryState.tsx"
import { durationText } from "./durations.ts"
import {
  automaticAttempts,
  type DeliveryDetail,
  maxAttempts,
  refusedResend,
  resendOf,
  type Delivery as StoredDelivery,
  waitsToRetry
} from "./timeline.ts"
import { useDelivery } from "./useDelivery.ts"

/** Re-sends a failed delivery, with the conditions; shows why if that is not possible. */
const Resend = ({ delivery }: { readonly delivery: StoredDelivery }) => {
  const { can } = useWorkspace()
  const resend = resendOf(delivery, Date.now())
  if (!resend.allowed) {
    return delivery.state === "failed" ? <p class="quiet">Can’t be re-sent: {refusedResend[resend.reason]}</p> : null
  }
  if (!can("webhook-endpoints:write")) return null
  return (
    <div class="resend">
      <ConfirmButton
        button="Re-send"
        kind="primary"
        title="Re-send this delivery?"
        action={() => call("deliveries", "retry", { path: { id: delivery.id } })}
        onDone={() => toast("Queued for one more attempt.")}
      >
        <p>
          It is queued at once for one attempt, with the same event id and the secrets of its creation. If the attempt
          fails, the delivery is failed again.
        </p>
      </ConfirmButton>
      <p class="quiet">
        {resend.attemptsLeft} of 12 attempts left, until <Time at={resend.until} />.
      </p>
    </div>
  )
}

const Shown = ({ delivery }: { readonly delivery: DeliveryDetail }) => {
  const { path } = useWorkspace()
  const names = useDestinationNames()
  const name = names?.get(delivery.endpointId)
  const meaning =
    delivery.lastErrorCode === null ? undefined : meaningOf(delivery.lastErrorCode, delivery.lastHttpStatus)
  const destination =
    name === undefined ? (
      nameOf(names, delivery.endpointId)
    ) : (
      <Link href={path(`/destinations/${delivery.endpointId}`)}>{name}</Link>
    )
  const took = delivery.attempts.at(-1)?.durationMs ?? null
  return (
    <>
      {meaning === undefined || delivery.state === "delivered" ? null : (
        <Notice tone={delivery.state === "failed" ? "problem" : "warning"} title={meaning.label}>
          <p>
            {meaning.meaning} {meaning.remedy}
          </p>
          {waitsToRetry(delivery) && delivery.nextAttemptAt !== null ? (
            <p>
              The next attempt is made <Countdown to={delivery.nextAttemptAt} />.
            </p>
          ) : null}
        </Notice>
      )}
      <Section title="Delivery" actions={<DeliveryState delivery={delivery} />}>
        <Facts
          items={[
            [
              "Event",
              <Link href={path(`/events/${delivery.eventId}`)} key="event">
                {delivery.type}
              </Link>
            ],
            ["Event id", <Id value={delivery.eventId} full key="id" />],
            ["Destination", destination],
            ["Delivery id", <Id value={delivery.id} full key="delivery" />],
            ["Created", <Time at={delivery.createdAt} key="created" />],
            ["Finished", delivery.finishedAt === null ? null : <Time at={delivery.finishedAt} key="finished" />],
            ["Last answer", delivery.lastHttpStatus === null ? null : `HTTP ${delivery.lastHttpStatus}`],
            ["Took", took === null ? null : durationText(took)],
            ["Attempts", `${delivery.attemptCount} (up to ${automaticAttempts} are automatic, ${maxAttempts} in all)`]
          ]}
        />
        <Resend delivery={delivery} />
      </Section>
      <Section title="Attempts">
        <AttemptTimeline delivery={delivery} />
      </Section>
      <Section
        title="Event"
        lead="The body as it is sent. The receiver verifies its signature over exactly these bytes, without the line breaks added here."
      >
        <JsonView value={delivery.event} />
      </Section>
    </>
  )
}

export default function Delivery() {
  const { path } = useWorkspace()
  const { id = "" } = useParams()
  const query = useDelivery(id)
  return (
    <Page
      title={query.data?.type ?? "Delivery"}
      back={{ href: path("/deliveries"), label: "Deliveries" }}
      actions={query.data?.test === true ? <Badge tone="neutral">Test event</Badge> : null}
    >
      <Loaded query={query}>{(delivery) => <Shown delivery={delivery} />}</Loaded>
    </Page>
  )
}
