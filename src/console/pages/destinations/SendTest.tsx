import { useState } from "preact/hooks"
import { Link } from "wouter-preact"
import { type AnswerOf, call } from "../../api/Call.ts"
import { Button } from "../../components/Button.tsx"
import { SelectField } from "../../components/forms/Field.tsx"
import { Form } from "../../components/forms/Form.tsx"
import { Loaded } from "../../components/Loaded.tsx"
import { Notice } from "../../components/Notice.tsx"
import { Section } from "../../components/Page.tsx"
import { useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { AttemptTimeline } from "../deliveries/AttemptTimeline.tsx"
import { DeliveryState } from "../deliveries/DeliveryState.tsx"
import { waitsToRetry } from "../deliveries/timeline.ts"
import { useDelivery } from "../deliveries/useDelivery.ts"
import { isEventType } from "../events/eventTypes.ts"
import type { Destination } from "./useDestinations.ts"
import { Warnings } from "./Warnings.tsx"

const OnItsWay = ({ id }: { readonly id: string }) => {
  const { path } = useWorkspace()
  const query = useDelivery(id)
  return (
    <div class="test-on-its-way" role="status" aria-label="The test event">
      <Loaded query={query} lines={2}>
        {(delivery) => (
          <>
            <p class="test-state">
              <DeliveryState delivery={delivery} />{" "}
              {delivery.state === "delivered" ? "It arrived: the receiver answered 2xx." : null}
              {delivery.state === "failed" ? "It did not arrive. Fix the receiver, then re-send it." : null}
              {delivery.state === "queued" && !waitsToRetry(delivery) ? "On its way…" : null}{" "}
              <Link href={path(`/deliveries/${delivery.id}`)}>Open this delivery</Link>
            </p>
            <AttemptTimeline delivery={delivery} />
          </>
        )}
      </Loaded>
    </div>
  )
}

export const SendTest = ({ destination }: { readonly destination: Destination }) => {
  const { environment, path } = useWorkspace()
  const types = destination.events.filter(isEventType)
  const [type, setType] = useState(types[0])
  const [sent, setSent] = useState<AnswerOf<"endpoints", "test"> | null>(null)
  const chosen = type !== undefined && types.includes(type) ? type : types[0]
  const submission = useSubmit(async (idempotencyKey) => {
    if (chosen === undefined) return null
    return call("endpoints", "test", { path: { id: destination.id }, payload: { type: chosen } }, { idempotencyKey })
  }, setSent)
  if (environment === "production") {
    return (
      <Section title="Test event">
        <Notice tone="info">
          <p>
            Test events exist in the sandbox only. Create a destination with the same URL there to try the receiver.
          </p>
        </Notice>
      </Section>
    )
  }
  return (
    <Section
      title="Test event"
      lead="Fictitious data with test: true, signed and sent like a real event, whatever the filters. At most 5 a minute."
    >
      {!destination.active ? (
        <Notice tone="info">
          <p>A paused destination gets no test events. Activate it first.</p>
        </Notice>
      ) : chosen === undefined ? null : (
        <Form submission={submission}>
          <div class="inline-form">
            <SelectField
              name="type"
              label="Event type"
              value={chosen}
              onChange={setType}
              options={types.map((value) => ({ value, label: value }))}
            />
            <Button type="submit" kind="primary" busy={submission.busy}>
              {sent === null ? "Send a test event" : "Send another"}
            </Button>
          </div>
          {submission.error?.code === "provider_account_not_connected" ? (
            <p>
              <Link href={path("/account")}>Connect the account first</Link>
            </p>
          ) : null}
        </Form>
      )}
      {sent === null ? null : (
        <>
          <Warnings of={sent} />
          <OnItsWay id={sent.id} key={sent.id} />
        </>
      )}
    </Section>
  )
}
