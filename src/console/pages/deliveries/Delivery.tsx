import { useState } from "preact/hooks"
import { Link, useParams } from "wouter-preact"
import { call } from "../../api/Call.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { JsonView } from "../../components/Code.tsx"
import { Id } from "../../components/Copy.tsx"
import { Confirm } from "../../components/Dialog.tsx"
import { Loaded } from "../../components/Loaded.tsx"
import { Notice } from "../../components/Notice.tsx"
import { Facts, Page, Section } from "../../components/Page.tsx"
import { Time } from "../../components/Time.tsx"
import { invalidate, useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { useDestinationNames } from "../destinations/useDestinations.ts"
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
  const { can, environment } = useWorkspace()
  const [asked, setAsked] = useState(false)
  const { busy, error, reset, submit } = useSubmit(
    () => call("deliveries", "retry", { path: { id: delivery.id } }),
    () => {
      setAsked(false)
      toast("Queued for one more attempt.")
      invalidate(`${environment}/deliveries`)
      invalidate(`${environment}/events`)
    }
  )
  const resend = resendOf(delivery, Date.now())
  if (!resend.allowed) {
    return delivery.state === "failed" ? <p class="quiet">Can’t be re-sent: {refusedResend[resend.reason]}</p> : null
  }
  if (!can("webhook-endpoints:write")) return null
  return (
    <div class="resend">
      <Button
        kind="primary"
        onClick={() => {
          reset()
          setAsked(true)
        }}
      >
        Re-send
      </Button>
      <p class="quiet">
        {resend.attemptsLeft} of 12 attempts left, until <Time at={resend.until} />.
      </p>
      <Confirm
        title="Re-send this delivery?"
        open={asked}
        onClose={() => setAsked(false)}
        onConfirm={submit}
        confirmLabel="Re-send"
        busy={busy}
        error={error}
      >
        <p>
          It is queued at once for one attempt, with the same event id and the secrets of its creation. If the attempt
          fails, the delivery is failed again.
        </p>
      </Confirm>
    </div>
  )
}

const Shown = ({ delivery }: { readonly delivery: DeliveryDetail }) => {
  const { path } = useWorkspace()
  const names = useDestinationNames()
  const name = names?.get(delivery.endpointId)
  const meaning =
    delivery.lastErrorCode === null ? undefined : meaningOf(delivery.lastErrorCode, delivery.lastHttpStatus)
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
            [
              "Destination",
              name === undefined ? (
                names === undefined ? (
                  "…"
                ) : (
                  "Deleted destination"
                )
              ) : (
                <Link href={path(`/destinations/${delivery.endpointId}`)} key="destination">
                  {name}
                </Link>
              )
            ],
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
        lead="The body as it is sent. The receiver verifies its signature over exactly these bytes, without the line breaks that make it readable here."
      >
        <JsonView value={delivery.event} />
      </Section>
    </>
  )
}

/** One delivery: its attempts, its next step, and what was sent. */
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
