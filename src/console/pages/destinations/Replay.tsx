import { useState } from "preact/hooks"
import { type AnswerOf, call } from "../../api/Call.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Checkbox, FieldGroup, TextField } from "../../components/Field.tsx"
import { Form } from "../../components/Form.tsx"
import { Pages } from "../../components/Loaded.tsx"
import { Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import { invalidate, useSubmit } from "../../state/Query.ts"
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
  const { environment } = useWorkspace()
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
  const { busy, error, submit } = useSubmit(
    (idempotencyKey) =>
      call(
        "eventReplays",
        "start",
        {
          path: { id: destination.id },
          payload: {
            since: from ?? "",
            ...(to === null ? {} : { until: to }),
            ...(chosen.length === subscribed.length ? {} : { types: chosen })
          }
        },
        { idempotencyKey }
      ),
    () => {
      toast("The replay has begun.")
      invalidate(`${environment}/replays/${destination.id}`)
      invalidate(`${environment}/deliveries`)
    }
  )
  return (
    <Form
      busy={busy}
      error={error}
      labels={{ since: "Received from", until: "Until", types: "Event types" }}
      onSubmit={() => {
        setTried(true)
        if (complete) submit()
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
        <Button type="submit" kind="primary" busy={busy}>
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
          <FieldGroup label="Event types" hint={tried ? problems.types : undefined}>
            {subscribed.map((type) => (
              <Checkbox
                key={type}
                name={`type ${type}`}
                label={type}
                checked={!left.has(type)}
                onChange={(checked) => {
                  const next = new Set(left)
                  if (checked) next.delete(type)
                  else next.add(type)
                  setLeft(next)
                }}
              />
            ))}
          </FieldGroup>
        </details>
      )}
    </Form>
  )
}

const stateBadges = {
  running: { tone: "info", word: "Running" },
  finished: { tone: "ok", word: "Finished" },
  canceled: { tone: "neutral", word: "Canceled" }
} as const

const Cancel = ({ replay }: { readonly replay: EventReplay }) => {
  const { environment } = useWorkspace()
  const { busy, submit } = useSubmit(
    () =>
      call("eventReplays", "cancel", { path: { id: replay.endpointId, replayId: replay.id } }).catch(
        (failure: unknown) => {
          toast("The replay could not be canceled. Try again.", "problem")
          throw failure
        }
      ),
    () => {
      toast("The replay creates no more deliveries.")
      invalidate(`${environment}/replays/${replay.endpointId}`)
    }
  )
  return (
    <Button small busy={busy} onClick={submit} label="Cancel this replay">
      Cancel
    </Button>
  )
}

export const Replays = ({ destination }: { readonly destination: Destination }) => {
  const { can, environment } = useWorkspace()
  const list = useRuns(`${environment}/replays/${destination.id}`, (urlParams, signal) =>
    call("eventReplays", "list", { path: { id: destination.id }, urlParams }, { signal })
  )
  return (
    <Pages list={list} empty={<p class="quiet">Nothing was replayed yet.</p>}>
      {(items) => (
        <Table
          caption="Replays, newest first"
          head={["Received from", "Until", "State", "Progress", { label: "Actions", hidden: true }]}
          rows={items.map((replay) => {
            const { tone, word } = stateBadges[replay.state]
            return {
              key: replay.id,
              cells: [
                <Time at={replay.since} key="since" />,
                <Time at={replay.until} key="until" />,
                <Badge tone={tone} key="state">
                  {word}
                </Badge>,
                <span key="progress">
                  {replay.queued} queued, {replay.skipped} left out
                  {replay.state === "running" ? `, ${replayPercent(replay)} % of the time` : null}
                </span>,
                replay.state === "running" && can("webhook-endpoints:write") ? (
                  <Cancel replay={replay} key="cancel" />
                ) : null
              ]
            }
          })}
        />
      )}
    </Pages>
  )
}
