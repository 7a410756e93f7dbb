import { type AnswerOf, call } from "../../api/Call.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { useDraft } from "../../components/forms/Draft.ts"
import { Checkbox, FieldGroup, TextField } from "../../components/forms/Field.tsx"
import { Form } from "../../components/forms/Form.tsx"
import { Reader } from "../../components/forms/Reader.ts"
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

const noTypes: ReadonlySet<EventType> = new Set()

const lastDay = () => ({ since: localAgo(24 * hour, Date.now()), until: "", leftOut: noTypes })
type ReplayDraft = ReturnType<typeof lastDay>

const endProblem = ({ since, until }: ReplayDraft): string | undefined => {
  const from = instant(since)
  const to = instant(until)
  return from !== null && to !== null && to <= from ? "This has to be after the start" : undefined
}

const chosenTypes = (subscribed: ReadonlyArray<EventType>, leftOut: ReadonlySet<EventType>) =>
  subscribed.filter((type) => !leftOut.has(type))

const readReplay = (draft: ReplayDraft, subscribed: ReadonlyArray<EventType>) => {
  const reader = new Reader()
  const since = instant(draft.since)
  const until = instant(draft.until)
  const types = chosenTypes(subscribed, draft.leftOut)
  const wrongEnd = endProblem(draft)
  if (since === null) reader.problems["since"] = "Choose a time"
  if (wrongEnd !== undefined) reader.problems["until"] = wrongEnd
  if (types.length === 0) reader.problems["types"] = "Choose at least one type"
  return reader.done({
    since: since ?? "",
    ...(until === null ? {} : { until }),
    ...(types.length === subscribed.length ? {} : { types })
  })
}

export const StartReplay = ({ destination }: { readonly destination: Destination }) => {
  const subscribed = destination.events.filter(isEventType)
  const { draft, field, form } = useDraft({
    initial: lastDay,
    read: (draft) => readReplay(draft, subscribed),
    send: (payload, idempotencyKey) =>
      call("eventReplays", "start", { path: { id: destination.id }, payload }, { idempotencyKey }),
    onDone: () => toast("The replay has begun.")
  })
  return (
    <Form {...form}>
      <div class="inline-form">
        <TextField {...field("since")} label="Received from" type="datetime-local" />
        <TextField
          {...field("until")}
          label="Until"
          required={false}
          type="datetime-local"
          problem={endProblem(draft)}
        />
        <Button type="submit" kind="primary" busy={form.submission.busy}>
          Replay
        </Button>
      </div>
      {subscribed.length < 2 ? null : <ReplayedTypes {...field("leftOut", "types")} subscribed={subscribed} />}
    </Form>
  )
}

interface ReplayedTypesProps {
  readonly subscribed: ReadonlyArray<EventType>
  /** Those left out, so that a type to which the destination subscribes meanwhile is chosen. */
  readonly value: ReadonlySet<EventType>
  readonly onChange: (leftOut: ReadonlySet<EventType>) => void
  readonly problem: string | undefined
}

const ReplayedTypes = ({ onChange, problem, subscribed, value: leftOut }: ReplayedTypesProps) => (
  <details>
    <summary>
      {leftOut.size === 0
        ? `All ${subscribed.length} event types`
        : `${chosenTypes(subscribed, leftOut).length} of ${subscribed.length} event types`}
    </summary>
    <FieldGroup name="types" label="Event types" hint={problem}>
      {subscribed.map((type) => (
        <Checkbox
          key={type}
          name={`type ${type}`}
          label={type}
          value={!leftOut.has(type)}
          onChange={(isChosen) =>
            onChange(new Set(subscribed.filter((other) => (other === type ? !isChosen : leftOut.has(other)))))
          }
        />
      ))}
    </FieldGroup>
  </details>
)

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
