import { useState } from "preact/hooks"
import { type AnswerOf, call } from "../../api/Call.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Checkbox, FieldGroup, TextField } from "../../components/Field.tsx"
import { Form } from "../../components/Form.tsx"
import { PagedTable } from "../../components/Loaded.tsx"
import { Time } from "../../components/Time.tsx"
import { useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { instant, localAgo } from "../deliveries/times.ts"
import { type EventType, isEventType } from "../events/eventTypes.ts"
import { replayPercent } from "./progress.ts"
import type { Destination } from "./useDestinations.ts"
import { useRuns } from "./useRuns.ts"

type EventReplay = AnswerOf<"eventReplays", "get">

const hour = 60 * 60 * 1000

export const StartReplay = ({ destination }: { readonly destination: Destination }) => {
  const [since, setSince] = useState(() => localAgo(24 * hour, Date.now()))
  const [until, setUntil] = useState("")
  const subscribed = destination.events.filter(isEventType)
  const [left, setLeft] = useState<ReadonlySet<EventType>>(new Set())
  const [tried, setTried] = useState(false)
  const chosen = subscribed.filter((type) => !left.has(type))
  const from = instant(since)
  const to = instant(until)
  const problems = {
    since: from === null ? "Choose a time" : undefined,
    until: from !== null && to !== null && to <= from ? "This has to be after the start" : undefined,
    types: chosen.length === 0 ? "Choose at least one type" : undefined
  }
  const complete = Object.values(problems).every((problem) => problem === undefined)
  const submission = useSubmit(
    (idempotencyKey) => {
      const payload = {
        since: from ?? "",
        ...(to === null ? {} : { until: to }),
        ...(chosen.length === subscribed.length ? {} : { types: chosen })
      }
      return call("eventReplays", "start", { path: { id: destination.id }, payload }, { idempotencyKey })
    },
    () => toast("The replay has begun.")
  )
  return (
    <Form
      submission={submission}
      onSubmit={() => {
        setTried(true)
        if (complete) submission.submit()
      }}
    >
      <div class="inline-form">
        <TextField
          name="since"
          label="Received from"
          type="datetime-local"
          value={since}
          onChange={setSince}
          problem={tried ? problems.since : undefined}
        />
        <TextField
          name="until"
          label="Until"
          required={false}
          type="datetime-local"
          value={until}
          onChange={setUntil}
          problem={problems.until}
        />
        <Button type="submit" kind="primary" busy={submission.busy}>
          Replay
        </Button>
      </div>
      {subscribed.length < 2 ? null : (
        <details>
          <summary>
            {left.size === 0
              ? `All ${subscribed.length} event types`
              : `${chosen.length} of ${subscribed.length} event types`}
          </summary>
          <FieldGroup name="types" label="Event types" hint={tried ? problems.types : undefined}>
            {subscribed.map((type) => (
              <Checkbox
                key={type}
                name={`type ${type}`}
                label={type}
                value={!left.has(type)}
                onChange={(isChosen) =>
                  setLeft(new Set(subscribed.filter((other) => (other === type ? !isChosen : left.has(other)))))
                }
              />
            ))}
          </FieldGroup>
        </details>
      )}
    </Form>
  )
}

export const stateBadges = {
  running: <Badge tone="info">Running</Badge>,
  finished: <Badge tone="ok">Finished</Badge>,
  canceled: <Badge>Canceled</Badge>
}

const Cancel = ({ replay }: { readonly replay: EventReplay }) => {
  const { busy, submit } = useSubmit(
    () =>
      call("eventReplays", "cancel", { path: { id: replay.endpointId, replayId: replay.id } }).catch(
        (failure: unknown) => {
          toast("The replay could not be canceled. Try again.", "problem")
          throw failure
        }
      ),
    () => toast("The replay creates no more deliveries.")
  )
  return (
    <Button small busy={busy} onClick={submit} label="Cancel this replay">
      Cancel
    </Button>
  )
}

export const Replays = ({ destination }: { readonly destination: Destination }) => {
  const { can } = useWorkspace()
  const list = useRuns(`replays/${destination.id}`, (urlParams, signal) =>
    call("eventReplays", "list", { path: { id: destination.id }, urlParams }, { signal })
  )
  return (
    <PagedTable
      list={list}
      empty={<p class="quiet">Nothing was replayed yet.</p>}
      caption="Replays, newest first"
      columns={[
        { head: "Received from", cell: ({ since }) => <Time at={since} /> },
        { head: "Until", cell: ({ until }) => <Time at={until} /> },
        { head: "State", cell: ({ state }) => stateBadges[state] },
        {
          head: "Progress",
          cell: (replay) =>
            `${replay.queued} queued, ${replay.skipped} left out${replay.state === "running" ? `, ${replayPercent(replay)} % of the time` : ""}`
        },
        {
          head: "Actions",
          hidden: true,
          cell: (replay) =>
            replay.state === "running" && can("webhook-endpoints:write") ? <Cancel replay={replay} /> : null
        }
      ]}
    />
  )
}
